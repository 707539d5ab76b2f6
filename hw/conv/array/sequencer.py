"""The order of work: which rows are multiplied in each cycle."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.golden.spec.conv.params import CHANNELS_AT_ONCE

from ...lib.stream import ShallowQueue
from ..layouts import PlanLayout, SetLayout
from .layouts import StepLayout

__all__ = ["Sequencer"]


class Sequencer(wiring.Component):
    """Takes sets of feature rows in order, and multiplies each with one row of every channel (docs/conv.md).

    Weight rows of channel t lie in the t-th quarter of the slaves' memories, which is a ring: the loader says with
    ``written`` how far it has come, and ``freed`` says from where on rows are still needed. Both count bytes of a
    quarter, and once round more than it has. In a pass whose weights stay, each tile goes back to where the pass began.
    In lane-private mode the word is the number of the set.

    Latency: a step leaves in the cycle after its set is there, if nothing else is missing. Throughput: a step a cycle,
    from set to set and from tile to tile.

    Parameters
    ----------
    params : ConvUnitParams
    latency : int
        Cycles from a step until its sums can be read.

    Members
    -------
    plan : In(PlanLayout(params))
    start : In(1)
        Strobe: a job begins; ``plan`` is there, and nothing is under way.
    active : In(1)
        A job is under way.
    sets : In(stream of SetLayout)
        Complete sets of feature rows, in order.
    release : Out(1)
        Strobe: the oldest set has been read.
    set : Out(range(params.sets))
        Number of the set of ``step``.
    valid : Out(1)
    step : Out(StepLayout(params))
        Registered.
    written : In(range(params.conv.weight_bytes // 2))
        As of ``WeightWriter``.
    freed : Out(range(params.conv.weight_bytes // 2))
        As of ``WeightLoader``.
    tile : Out(stream of unsigned(1))
        A tile has begun whose weights do not stay; the payload is 1 for the last one of its pass.
    tiles : Out(stream of unsigned(1))
        A tile is complete: its bank. It is free again after the handshake.
    stall_features, stall_weights, stall_results : Out(1)
        High in cycles in which a step waits for nothing but that, for counters.
    """

    def __init__(self, params, latency):
        self._params, self._latency = params, latency
        self.ring_bytes = params.conv.weight_bytes // CHANNELS_AT_ONCE
        ring = range(2 * self.ring_bytes)
        #: For proofs: the set, and where its rows begin in each quarter.
        self.number, self.row = Signal(range(params.sets)), Signal(ring)
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "start": In(1),
                "active": In(1),
                "sets": In(stream.Signature(SetLayout())),
                "release": Out(1),
                "set": Out(range(params.sets)),
                "valid": Out(1),
                "step": Out(StepLayout(params)),
                "written": In(ring),
                "freed": Out(ring),
                "tile": Out(stream.Signature(1)),
                "tiles": Out(stream.Signature(1)),
                "stall_features": Out(1),
                "stall_weights": Out(1),
                "stall_results": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        conv, plan = self._params.conv, self.plan
        set_flags, step = self.sets.payload, self.step
        number, row = self.number, self.row
        channel = Signal(range(CHANNELS_AT_ONCE))
        bank = Signal()
        free = Signal(2, init=0b11)  # banks of accumulators that nobody reads

        # Channels of the slave with the most of them, behind those of earlier passes: none is left out.
        left = Signal(range((1 << 17) // conv.slaves + 1))
        last_channel = Signal(range(CHANNELS_AT_ONCE))
        m.d.comb += last_channel.eq(Mux(plan.lanes, 0, Mux(left >= CHANNELS_AT_ONCE, CHANNELS_AT_ONCE - 1, left - 1)))

        # Weights of the set's row are there: they are so for the row's first channel if for the last one.
        ahead = Signal.like(self.freed)
        has_weights, has_bank, has_told = Signal(), Signal(), Signal()
        told = Signal()  # the loader knows of this tile
        m.d.comb += [
            ahead.eq(self.written - row),
            has_weights.eq(plan.lanes | (ahead != 0)),
            has_bank.eq(~set_flags.first | free.bit_select(bank, 1)),
            has_told.eq(plan.lanes | plan.stays | told),
        ]
        going, last = Signal(), Signal()
        m.d.comb += [
            going.eq(self.sets.valid & has_weights & has_bank & has_told),
            last.eq(going & (channel == last_channel)),
            self.sets.ready.eq(last),
            self.tile.valid.eq(self.sets.valid & set_flags.first & ~has_told),
            self.tile.payload.eq(set_flags.final),
            self.stall_features.eq(self.active & ~self.sets.valid),
            self.stall_weights.eq(self.sets.valid & has_bank & ~(has_weights & has_told)),
            self.stall_results.eq(self.sets.valid & ~has_bank),
        ]
        with m.If(self.tile.valid & self.tile.ready):
            m.d.sync += told.eq(1)

        whole = exact_log2(conv.row_bytes)
        quarter = Signal(range(self.ring_bytes // conv.row_bytes))
        m.d.comb += quarter.eq(row[whole:])
        m.d.sync += [
            self.valid.eq(going),
            self.release.eq(last),
            self.set.eq(number),
            step.channel.eq(channel),
            step.bank.eq(bank),
            step.first.eq(set_flags.first),
            step.part.eq(row[:whole] >> plan.granularity),
            step.word.eq(Mux(plan.lanes, number, quarter | channel << len(quarter))),
        ]
        with m.If(going):
            m.d.sync += channel.eq(channel + 1)
        after = Signal.like(row)
        m.d.comb += after.eq(row + Mux(plan.lanes, 0, 1 << plan.granularity))
        with m.If(last):
            m.d.sync += [channel.eq(0), number.eq(number + 1), row.eq(after)]
            with m.If(~plan.stays):
                m.d.sync += self.freed.eq(after)
            with m.If(set_flags.last):
                m.d.sync += [bank.eq(~bank), told.eq(0)]
                with m.If(~set_flags.final):
                    with m.If(plan.stays):
                        m.d.sync += row.eq(self.freed)  # where the pass began
                with m.Else():
                    m.d.sync += [self.freed.eq(after), left.eq(left - CHANNELS_AT_ONCE)]
        self._complete(m, last & set_flags.last, bank, free)
        with m.If(self.start):
            m.d.sync += [row.eq(0), self.freed.eq(0)]
            m.d.sync += left.eq((plan.out_channels + conv.slaves - 1) >> exact_log2(conv.slaves))
        return m

    def _complete(self, m, completed, bank, free):
        """Tells of tiles when the sums of their last step can be read; two at most are under way."""
        m.submodules.queue = queue = ShallowQueue(1, 2)
        first = completed
        for cycle in range(self._latency + 1):
            before, first = first, Signal(name=f"completed{cycle + 1}")
            m.d.sync += first.eq(before)
        told_bank = Signal()
        m.d.comb += [queue.i.valid.eq(first), queue.i.payload.eq(told_bank)]
        with m.If(first):
            m.d.sync += told_bank.eq(~told_bank)
        wiring.connect(m, queue=queue.o, tiles=wiring.flipped(self.tiles))
        with m.If(completed):
            m.d.sync += free.bit_select(bank, 1).eq(0)
        with m.If(self.tiles.valid & self.tiles.ready):
            m.d.sync += free.bit_select(self.tiles.payload, 1).eq(1)
