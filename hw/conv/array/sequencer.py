"""The order of work: which rows are multiplied in each cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from tilewright.spec.conv import CHANNELS_AT_ONCE

from ...lib.stream import ShallowQueue
from ..layouts import HalvesLayout, LaneReadLayout, PlanLayout, SetLayout, StepLayout
from .weights import next_word, ring_shape

__all__ = ["Sequencer"]


class Sequencer(wiring.Component):
    """Takes sets of feature rows in order, and multiplies each with one row of every channel (docs/conv.md).

    Weight rows of channel t are in quarter t of the slaves' memories, which is a ring. The loader reports in
    ``written`` up to where it is filled, and ``freed`` tells the loader from where on rows are still needed. Both count
    bytes of a quarter, continue over jobs, and wrap after two rounds; a job begins with a whole word. In a pass whose
    weights stay, each tile returns to where the pass began, and the last tile frees its rows. Weights that are loaded
    for the next job wait until that job begins. In lane-private mode each set is a word of all slaves, as ``LaneSteps``
    says.

    Sums of floats are rounded in each step, so that a step waits for the previous step with the same accumulators. The
    first step of a pass waits for its biases.

    Latency: a step leaves in the cycle after its set is complete, if nothing else is missing. Throughput: a step a
    cycle, also from set to set and from tile to tile. With floats, the first step of a set that does not begin a tile
    is at least ``loop`` cycles later than the first step of the previous set.

    Parameters
    ----------
    params : ConvUnitParams
    latency : int
        Cycles from a step until its sums can be read.
    loop : int
        Cycles from a step of floats until the next one with the same accumulators can leave.
    """

    def __init__(self, params, latency, loop=1):
        self._params, self._latency, self._loop = params, latency, loop
        #: For proofs: the set, and where its rows begin in each quarter.
        self.number, self.row = Signal(range(params.sets)), Signal(ring_shape(params))
        super().__init__(
            # Strobe: the biases of one more pass are loaded; at most two passes ahead.
            ({"biases": In(1)} if params.floats else {})
            | {
                "plan": In(PlanLayout(params)),  # constant from ``start`` on while ``busy``
                "start": In(1),  # Strobe: a job begins; only while not ``busy``.
                # The next job has the same array mode: its steps may come before all sums of this one can be read.
                "overlaps": In(1),
                # From the cycle after ``start`` until all steps have left and all sums can be read, or ``overlaps``.
                "busy": Out(1),
                "sets": In(stream.Signature(SetLayout())),  # complete sets of feature rows, in order
                # In lane-private mode: what is read for the set, and what units do with it.
                "lane_read": In(LaneReadLayout(params)),
                "halves": In(HalvesLayout(params)),
                "release": Out(1),  # Strobe: the oldest set has been read. Not in lane-private mode.
                "set": Out(range(params.sets)),  # number of the set of ``step``
                "valid": Out(1),
                "step": Out(StepLayout(params)),
                "written": In(ring_shape(params)),  # of ``WeightWriter``
                "freed": Out(ring_shape(params)),  # for ``WeightLoader``
                # A tile has begun whose weights do not stay; 1 for the last tile of its pass.
                "tile": Out(stream.Signature(1)),
                # The bank of a complete tile; free again after the transfer.
                "tiles": Out(stream.Signature(range(params.accumulator_banks))),
                # For counters: a step waits for nothing else. Biases count as weights.
                "stall_features": Out(1),
                "stall_weights": Out(1),
                "stall_results": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        conv, plan, flags, step = self._params.conv, self.plan, self.sets.payload, self.step
        number, row, banks = self.number, self.row, self._params.accumulator_banks
        channel, bank = Signal(range(CHANNELS_AT_ONCE)), Signal(range(banks))
        free = Signal(banks, init=-1)  # banks whose accumulators are not in use

        # Channels are counted for the slave that has the most of them.
        running, passes, more = Signal(), Signal.like(plan.last_pass), Signal()  # passes after this one; there are any
        last_channel, rest = Signal(range(CHANNELS_AT_ONCE)), Signal(range(CHANNELS_AT_ONCE))
        m.d.comb += [
            rest.eq((plan.out_channels - 1) >> exact_log2(conv.slaves)),
            last_channel.eq(Mux(plan.lanes, 0, Mux(more, CHANNELS_AT_ONCE - 1, rest))),
        ]

        # If the row of the last channel is loaded, so are those of all channels.
        ahead = Signal.like(self.freed)
        has_weights, has_bank, reported = Signal(), Signal(), Signal()
        sums_ready, has_bias = Signal(init=1), Signal(init=1)  # always true without floats
        tile_sent = Signal()  # the loader knows of this tile
        m.d.comb += [
            ahead.eq(self.written - row),
            has_weights.eq((plan.lanes | (ahead != 0)) & has_bias),
            has_bank.eq(~flags.first | free.bit_select(bank, 1)),
            reported.eq(plan.lanes | plan.stays | tile_sent),
        ]
        # ``sets.valid`` arrives late, so that each of these has it as its last input.
        offered, able, leaves, last = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            offered.eq(running & self.sets.valid),
            able.eq(running & has_weights & has_bank & reported & sums_ready),
            leaves.eq(self.sets.valid & able),
            last.eq(self.sets.valid & (able & (channel == last_channel))),
            self.sets.ready.eq(last),
            self.tile.valid.eq(offered & flags.first & ~reported),
            self.tile.payload.eq(flags.final),
            self.stall_features.eq(running & ~self.sets.valid),
            self.stall_weights.eq(offered & has_bank & ~(has_weights & reported)),
            self.stall_results.eq(offered & ~has_bank),
        ]
        with m.If(self.tile.valid & self.tile.ready):
            m.d.sync += tile_sent.eq(1)

        whole = exact_log2(conv.row_bytes)
        quarter = Signal(range(self._params.quarter_bytes // conv.row_bytes))
        next_row = Signal.like(row)
        m.d.comb += [quarter.eq(row[whole:]), next_row.eq(row + Mux(plan.lanes, 0, 1 << plan.granularity))]
        m.d.sync += [
            self.valid.eq(leaves),
            self.release.eq(last & ~plan.lanes),
            self.set.eq(number),
            step.channel.eq(channel),
            step.bank.eq(bank),
            step.halves.first.eq(Mux(plan.lanes, self.halves.first, flags.first.replicate(self._params.halves))),
            step.halves.off.eq(Mux(plan.lanes, self.halves.off, 0)),
            step.part.eq(row[:whole] >> plan.granularity),
            step.read.turn.eq(Mux(plan.lanes, self.lane_read.turn, 0)),
        ]
        for word, lane_word in zip(step.read.words, self.lane_read.words, strict=True):
            m.d.sync += word.eq(Mux(plan.lanes, lane_word, quarter | channel << len(quarter)))
        with m.If(leaves):
            m.d.sync += channel.eq(channel + 1)
        with m.If(last):
            m.d.sync += [channel.eq(0), number.eq(number + ~plan.lanes), row.eq(next_row)]
            with m.If(~plan.stays | flags.final):
                m.d.sync += self.freed.eq(next_row)
            with m.If(flags.last):
                m.d.sync += [bank.eq(bank + 1), tile_sent.eq(0)]
                with m.If(flags.final):
                    m.d.sync += [passes.eq(passes - 1), more.eq(passes != 1), running.eq(more)]
                with m.Elif(plan.stays):
                    m.d.sync += row.eq(self.freed)  # where the pass began
        finishing = self._complete(m, last & flags.last, bank, free)
        m.d.comb += self.busy.eq(running | (finishing & ~self.overlaps))
        if self._params.floats:
            self._wait(m, sums_ready, has_bias, begins=leaves & (channel == 0), within=channel != 0, last=last)
        with m.If(self.start):
            m.d.sync += [row.eq(next_word(self._params, row)), self.freed.eq(next_word(self._params, row))]
            m.d.sync += [running.eq(1), passes.eq(plan.last_pass), more.eq(plan.last_pass != 0)]
        return m

    def _wait(self, m, sums_ready, has_bias, *, begins, within, last):
        """For sums of floats: waits until the accumulators have the previous sum, and biases are loaded."""
        plan, flags = self.plan, self.sets.payload
        cycles_left = Signal(range(self._loop))
        passes, half = Signal(range(3)), Signal()  # passes with biases; the half of the bias memory that is next
        has_biases, pass_over = plan.floats & plan.bias, last & flags.last & flags.final
        m.d.comb += [sums_ready.eq(within | flags.first | (cycles_left == 0)), has_bias.eq(~has_biases | (passes != 0))]
        m.d.sync += [
            passes.eq(passes + self.biases - (pass_over & has_biases)),
            half.eq(half ^ pass_over),
            self.step.half.eq(half),
        ]
        with m.If(begins & plan.floats):
            m.d.sync += cycles_left.eq(self._loop - 1)
        with m.Elif(cycles_left != 0):
            m.d.sync += cycles_left.eq(cycles_left - 1)
        with m.If(self.start):
            m.d.sync += [passes.eq(0), half.eq(0)]

    def _complete(self, m, completed, bank, free):
        """Offers tiles when the sums of their last step can be read. Returns whether one is not offered yet."""
        banks = self._params.accumulator_banks
        m.submodules.queue = queue = ShallowQueue(range(banks), banks)  # room for all banks
        finishing = Signal(self._latency + 1)  # one bit for each cycle since a tile was completed
        next_bank = Signal(range(banks))
        m.d.sync += finishing.eq(Cat(completed, finishing))
        m.d.comb += [queue.i.valid.eq(finishing[-1]), queue.i.payload.eq(next_bank)]
        with m.If(finishing[-1]):
            m.d.sync += next_bank.eq(next_bank + 1)
        connect(m, queue.o, flipped(self.tiles))
        with m.If(completed):
            m.d.sync += free.bit_select(bank, 1).eq(0)
        with m.If(self.tiles.valid & self.tiles.ready):
            m.d.sync += free.bit_select(self.tiles.payload, 1).eq(1)
        return finishing.any()
