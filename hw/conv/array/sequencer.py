"""The order of work: which rows are multiplied in each cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import CHANNELS_AT_ONCE

from ...lib.stream import ShallowQueue
from ..layouts import HalvesLayout, LaneReadLayout, PlanLayout, SetLayout, StepLayout
from .weights import next_word, ring_shape

__all__ = ["Sequencer"]


class Sequencer(wiring.Component):
    """Takes sets of feature rows in order, and multiplies each with one row of every channel (docs/conv.md).

    Weight rows of channel t lie in the t-th quarter of the slaves' memories, which is a ring: the loader says with
    ``written`` how far it has come, and ``freed`` says from where on rows are still needed. Both count bytes of a
    quarter, over jobs, and once round more than it has; a job begins with a whole word. In a pass whose weights stay,
    each tile goes back to where the pass began, and the last one frees its rows. What is there for the next job waits
    until that begins.
    In lane-private mode each set is a word of all slaves, the oldest one of ``LaneSteps``.

    Sums of floats are rounded in each step, so that a step waits for the one before with the same accumulators. The
    first one of a pass waits for its biases.

    Latency: a step leaves in the cycle after its set is there, if nothing else is missing. Throughput: a step a cycle,
    from set to set and from tile to tile; of floats the first step of a set, if it does not begin a tile, is
    ``loop`` cycles behind that of the set before, or later.

    Parameters
    ----------
    params : ConvUnitParams
    latency : int
        Cycles from a step until its sums can be read.
    loop : int
        Cycles from a step of floats until the next one with the same accumulators can leave.

    Members
    -------
    plan : In(PlanLayout(params))
        Constant from the cycle of ``start`` on while ``busy``.
    start : In(1)
        Strobe, while not ``busy``: a job begins.
    alike : In(1)
        The array needs nothing else for the next job: its steps may come while sums of this one are on the way.
    busy : Out(1)
        From the cycle after ``start`` until all steps of the job have been made, and all of its sums can be read or
        jobs are ``alike``.
    sets : In(stream of SetLayout)
        Complete sets of feature rows, in order.
    lane_read : In(LaneReadLayout(params))
    halves : In(HalvesLayout(params))
        In lane-private mode what is read for the set, and what units do with it.
    release : Out(1)
        Strobe: the oldest set has been read. Not in lane-private mode.
    set : Out(range(params.sets))
        Number of the set of ``step``.
    valid : Out(1)
    step : Out(StepLayout(params))
        Registered.
    written : In(ring_shape(params))
        As of ``WeightWriter``.
    freed : Out(ring_shape(params))
        As of ``WeightLoader``.
    tile : Out(stream of unsigned(1))
        A tile has begun whose weights do not stay; the payload is 1 for the last one of its pass.
    tiles : Out(stream of range(params.accumulator_banks))
        A tile is complete: its bank. It is free again after the handshake.
    stall_features, stall_weights, stall_results : Out(1)
        High in cycles in which a step waits for nothing but that, for counters; biases are waited for with weights.
    biases : In(1) if params.floats
        Strobe: those of one more pass are there, for sums of floats; of two at most that have not been computed.
    """

    def __init__(self, params, latency, loop=1):
        self._params, self._latency, self._loop = params, latency, loop
        #: For proofs: the set, and where its rows begin in each quarter.
        self.number, self.row = Signal(range(params.sets)), Signal(ring_shape(params))
        super().__init__(
            ({"biases": In(1)} if params.floats else {})
            | {
                "plan": In(PlanLayout(params)),
                "start": In(1),
                "alike": In(1),
                "busy": Out(1),
                "sets": In(stream.Signature(SetLayout())),
                "lane_read": In(LaneReadLayout(params)),
                "halves": In(HalvesLayout(params)),
                "release": Out(1),
                "set": Out(range(params.sets)),
                "valid": Out(1),
                "step": Out(StepLayout(params)),
                "written": In(ring_shape(params)),
                "freed": Out(ring_shape(params)),
                "tile": Out(stream.Signature(1)),
                "tiles": Out(stream.Signature(range(params.accumulator_banks))),
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
        banks = self._params.accumulator_banks
        bank = Signal(range(banks))
        free = Signal(banks, init=-1)  # banks of accumulators that nobody reads

        # Channels of the slave with the most of them: none is left out.
        running, passes, more = Signal(), Signal.like(plan.last_pass), Signal()  # passes behind this one; there are any
        last_channel, rest = Signal(range(CHANNELS_AT_ONCE)), Signal(range(CHANNELS_AT_ONCE))
        m.d.comb += [
            rest.eq((plan.out_channels - 1) >> exact_log2(conv.slaves)),
            last_channel.eq(Mux(plan.lanes, 0, Mux(more, CHANNELS_AT_ONCE - 1, rest))),
        ]

        # Weights of the set's row are there: they are so for the row's first channel if for the last one.
        ahead = Signal.like(self.freed)
        has_weights, has_bank, has_told = Signal(), Signal(), Signal()
        rested, has_bias = Signal(init=1), Signal(init=1)  # without floats nothing is waited for
        told = Signal()  # the loader knows of this tile
        m.d.comb += [
            ahead.eq(self.written - row),
            has_weights.eq((plan.lanes | (ahead != 0)) & has_bias),
            has_bank.eq(~set_flags.first | free.bit_select(bank, 1)),
            has_told.eq(plan.lanes | plan.stays | told),
        ]
        # Whether a set is there is known late: nothing else stands behind that.
        there, able, going, last = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            there.eq(running & self.sets.valid),
            able.eq(running & has_weights & has_bank & has_told & rested),
            going.eq(self.sets.valid & able),
            last.eq(self.sets.valid & (able & (channel == last_channel))),
            self.sets.ready.eq(last),
            self.tile.valid.eq(there & set_flags.first & ~has_told),
            self.tile.payload.eq(set_flags.final),
            self.stall_features.eq(running & ~self.sets.valid),
            self.stall_weights.eq(there & has_bank & ~(has_weights & has_told)),
            self.stall_results.eq(there & ~has_bank),
        ]
        with m.If(self.tile.valid & self.tile.ready):
            m.d.sync += told.eq(1)

        whole = exact_log2(conv.row_bytes)
        quarter = Signal(range(self._params.quarter_bytes // conv.row_bytes))
        m.d.comb += quarter.eq(row[whole:])
        m.d.sync += [
            self.valid.eq(going),
            self.release.eq(last & ~plan.lanes),
            self.set.eq(number),
            step.channel.eq(channel),
            step.bank.eq(bank),
            step.halves.first.eq(Mux(plan.lanes, self.halves.first, set_flags.first.replicate(self._params.halves))),
            step.halves.off.eq(Mux(plan.lanes, self.halves.off, 0)),
            step.part.eq(row[:whole] >> plan.granularity),
            step.read.turn.eq(Mux(plan.lanes, self.lane_read.turn, 0)),
            *(
                word.eq(Mux(plan.lanes, of_lane, quarter | channel << len(quarter)))
                for word, of_lane in zip(step.read.words, self.lane_read.words, strict=True)
            ),
        ]
        with m.If(going):
            m.d.sync += channel.eq(channel + 1)
        after = Signal.like(row)
        m.d.comb += after.eq(row + Mux(plan.lanes, 0, 1 << plan.granularity))
        with m.If(last):
            m.d.sync += [channel.eq(0), number.eq(number + ~plan.lanes), row.eq(after)]
            with m.If(~plan.stays | set_flags.final):
                m.d.sync += self.freed.eq(after)
            with m.If(set_flags.last):
                m.d.sync += [bank.eq(bank + 1), told.eq(0)]
                with m.If(~set_flags.final):
                    with m.If(plan.stays):
                        m.d.sync += row.eq(self.freed)  # where the pass began
                with m.Else():
                    m.d.sync += [passes.eq(passes - 1), more.eq(passes != 1), running.eq(more)]
        finishing = self._complete(m, last & set_flags.last, bank, free)
        m.d.comb += self.busy.eq(running | (finishing & ~self.alike))
        if self._params.floats:
            self._wait(m, rested, has_bias, begins=going & (channel == 0), within=channel != 0, last=last)
        with m.If(self.start):
            m.d.sync += [row.eq(next_word(self._params, row)), self.freed.eq(next_word(self._params, row))]
            m.d.sync += [running.eq(1), passes.eq(plan.last_pass), more.eq(plan.last_pass != 0)]
        return m

    def _wait(self, m, rested, has_bias, *, begins, within, last):
        """For sums of floats: the accumulators have what was added last, and biases are there."""
        plan, flags = self.plan, self.sets.payload
        resting = Signal(range(self._loop))
        passes, half = Signal(range(3)), Signal()  # whose biases are there; which of both halves of them is next
        biased, over = plan.floats & plan.bias, last & flags.last & flags.final
        m.d.comb += [
            rested.eq(within | flags.first | (resting == 0)),
            has_bias.eq(~biased | (passes != 0)),
        ]
        m.d.sync += [passes.eq(passes + self.biases - (over & biased)), half.eq(half ^ over), self.step.half.eq(half)]
        with m.If(begins & plan.floats):
            m.d.sync += resting.eq(self._loop - 1)
        with m.Elif(resting != 0):
            m.d.sync += resting.eq(resting - 1)
        with m.If(self.start):
            m.d.sync += [passes.eq(0), half.eq(0)]

    def _complete(self, m, completed, bank, free):
        """Tells of tiles when the sums of their last step can be read; at most all banks are under way.

        Returns whether there is a tile of which that is not so yet.
        """
        banks = self._params.accumulator_banks
        m.submodules.queue = queue = ShallowQueue(range(banks), banks)
        on_the_way = Signal(self._latency + 1)  # by cycles since the tile was completed
        m.d.sync += on_the_way.eq(Cat(completed, on_the_way))
        told_bank = Signal(range(banks))
        m.d.comb += [queue.i.valid.eq(on_the_way[-1]), queue.i.payload.eq(told_bank)]
        with m.If(on_the_way[-1]):
            m.d.sync += told_bank.eq(told_bank + 1)
        wiring.connect(m, queue=queue.o, tiles=wiring.flipped(self.tiles))
        with m.If(completed):
            m.d.sync += free.bit_select(bank, 1).eq(0)
        with m.If(self.tiles.valid & self.tiles.ready):
            m.d.sync += free.bit_select(self.tiles.payload, 1).eq(1)
        return on_the_way.any()
