"""The read-out: finished accumulators, transfer by transfer, with what belongs to them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import CHANNELS_AT_ONCE

from ...lib.logic import delay
from ...lib.stream import ShallowQueue
from ..layouts import AccumulatorReadLayout, AccumulatorsLayout, PlanLayout, float_flag
from .layouts import GroupLayout, GroupPlaceLayout, ResultSizes
from .operands import adds

__all__ = ["ReadOut"]

#: Groups that wait, so that the addends of so many are asked for meanwhile.
_GROUPS = 16
#: Transfers under way: places of post-processing.
_UNDER_WAY = 32
#: Cycles from a transfer's beginning to its accumulators: a register, and the array.
_READ = 1 + 3


class ReadOut(wiring.Component):
    """Reads the results of groups out of the array, R accumulators a cycle (docs/conv.md, "Results").

    A group is read in its tile's turn: for each channel of a slave its parts, in lane-private mode R elements after R
    elements. Channels from Co on are left out where a transfer has no other. The bias is added here; sums of floats
    began with theirs. The largest of floats, which was kept as an integer, becomes a float again.

    A transfer begins only if there is a place for it in post-processing: 32 are under way at most, up to ``left``. So
    nothing on the way has to stop. Latency: ``LATENCY`` cycles from the cycle in which a transfer begins to ``o``. One
    transfer a cycle. Masks are ones: the assembler knows without them what is written.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        Must hold while anything is under way.
    start : In(1)
        Strobe, before the first place of a job.
    i : In(stream of GroupPlaceLayout(params))
        ``ready`` is from registers.
    tiles : In(stream of range(params.accumulator_banks))
        A tile is complete, in that bank. Taken when its last read has begun: that is at ``read`` one cycle later.
    read : Out(AccumulatorReadLayout(params))
        Always served. Registered.
    acc : In(array of params.conv.results 32)
        What was read three cycles ago.
    table_loaded : In(1)
    table_release : Out(1)
    table_row : Out(range(2 * ResultSizes(params).steps))
    bias : In(array of params.conv.results 32)
    scale : In(array of params.conv.results 32)
        Those of a ``TableLoader``.
    addend_loaded : In(1)
    addend_release : Out(1)
    addend_group : Out(range(16))
    addend_step : Out(range(ResultSizes(params).steps))
    addend : In(array of params.conv.results 8)
        Those of an ``AddendReader``.
    o : Out(stream of AccumulatorsLayout(params.conv))
        Registered. Never waits.
    flush : Out(stream of 1)
        For each transfer, before it is at ``o``: the last one that the assembler collects in a buffer.
    left : In(1)
        Strobe: a transfer has left post-processing, and its ``flush`` has been taken.
    idle : Out(1)
        No group waits, and no transfer is under way. From registers.
    """

    LATENCY = _READ + 1

    def __init__(self, params):
        self._params, self._sizes = params, ResultSizes(params)
        self.groups = ShallowQueue(GroupLayout(params), _GROUPS)
        self.flushes = ShallowQueue(1, _UNDER_WAY)
        self.under_way = Signal(range(_UNDER_WAY + 1))
        steps, results = self._sizes.steps, params.conv.results
        self.step = Signal(range(steps))  # transfer of the group
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "start": In(1),
                "i": In(stream.Signature(GroupPlaceLayout(params))),
                "tiles": In(stream.Signature(range(params.accumulator_banks))),
                "read": Out(AccumulatorReadLayout(params)),
                "acc": In(data.ArrayLayout(32, results)),
                "table_loaded": In(1),
                "table_release": Out(1),
                "table_row": Out(range(2 * steps)),
                "bias": In(data.ArrayLayout(32, results)),
                "scale": In(data.ArrayLayout(32, results)),
                "addend_loaded": In(1),
                "addend_release": Out(1),
                "addend_group": Out(range(_GROUPS)),
                "addend_step": Out(range(steps)),
                "addend": In(data.ArrayLayout(8, results)),
                "o": Out(stream.Signature(AccumulatorsLayout(params.conv))),
                "flush": Out(stream.Signature(1)),
                "left": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.groups, m.submodules.flushes = self.groups, self.flushes
        self._wait(m)
        begins, half, number = self._begin(m)
        self._read(m)
        self._finish(m, begins, half, number)
        m.d.sync += self.under_way.eq(self.under_way + begins - self.left)
        m.d.comb += [
            self.idle.eq(~self.groups.o.valid & (self.under_way == 0)),
            self.flush.valid.eq(self.flushes.o.valid),
            self.flush.p.eq(self.flushes.o.p),
            self.flushes.o.ready.eq(self.flush.ready),
        ]
        return m

    def _wait(self, m):
        """Of the places of a group only the last one counts here."""
        i, groups = self.i, self.groups.i
        # Groups without a place, and not at a tile's end, need nothing.
        counts = i.p.group_last & (i.p.any | i.p.tile_last)
        m.d.comb += [
            i.ready.eq(groups.ready),
            groups.valid.eq(i.valid & counts),
            *(getattr(groups.p, name).eq(getattr(i.p, name)) for name, _ in GroupLayout(self._params)),
        ]

    def _begin(self, m):
        """Whether a transfer begins, in which half of the table, and the number of its group among those that add."""
        plan, group, conv = self.plan, self.groups.o, self._params.conv
        ours = conv.results // self._sizes.together  # results of a transfer for each of its places
        distinct = exact_log2(min(conv.results, conv.slaves))
        begins, over, leaves = Signal(), Signal(), Signal()
        half, number = Signal(), Signal(range(_GROUPS))
        last = Signal.like(self.step)
        enough = Signal(range(self._sizes.piece_bytes * self._sizes.together // conv.results))  # of a flush, less one
        transfers = Signal.like(enough)
        m.d.comb += [
            last.eq(Mux(plan.lanes, group.p.channels >> exact_log2(conv.results), group.p.channels >> distinct)),
            transfers.eq(
                Mux(plan.lanes, max(1, self._sizes.piece_bytes // conv.results), self._sizes.piece_bytes // ours) - 1
            ),
            enough.eq(transfers >> plan.result_log2),
            begins.eq(
                group.valid
                & group.p.any
                & self.tiles.valid
                & ~self.under_way[-1]
                & (self.table_loaded | ~plan.table)
                & (self.addend_loaded | ~adds(plan))
            ),
            over.eq(self.step == last),
            leaves.eq(Mux(group.p.any, begins & over, group.valid & self.tiles.valid)),
            group.ready.eq(leaves),
            self.tiles.ready.eq(leaves & group.p.tile_last),
            self.table_release.eq(leaves & group.p.pass_last & plan.table),
            self.addend_release.eq(begins & over & adds(plan)),
            self.flushes.i.valid.eq(begins),
            self.flushes.i.p.eq(over | ((self.step & enough) == enough)),
        ]
        with m.If(begins):
            m.d.sync += self.step.eq(Mux(over, 0, self.step + 1))
        m.d.sync += [number.eq(number + self.addend_release), half.eq(half ^ (leaves & group.p.pass_last))]
        with m.If(self.start):
            m.d.sync += half.eq(0)
        return begins, half, number

    def _read(self, m):
        """Which accumulators the transfer has, one cycle later."""
        plan, group, conv = self.plan, self.groups.o.p, self._params.conv
        row = exact_log2(conv.row_bytes)
        parts = exact_log2(max(1, conv.slaves // conv.results))
        place = Signal(len(group.place) + row)  # where it begins in the rows of a lane-private tile, in bytes
        m.d.comb += place.eq(group.place << plan.granularity)
        first = group.place & ~(self._sizes.together - 1)  # of the group
        with m.If(plan.lanes):
            element = (place[:row] >> plan.wide) & ~(conv.results - 1)
            if self._params.halves > 1:
                element |= Mux(group.second, self._params.sums // 2, 0)
            m.d.sync += [
                self.read.t.eq(0),
                self.read.part.eq(place[row:]),
                self.read.index.eq(element + (self.step << exact_log2(conv.results))),
            ]
        with m.Else():
            m.d.sync += [
                self.read.t.eq((self.step >> parts)[: exact_log2(CHANNELS_AT_ONCE)]),
                self.read.part.eq(self.step[:parts]),
                self.read.index.eq(first),
            ]
        m.d.sync += self.read.bank.eq(self.tiles.p)

    def _finish(self, m, begins, half, number):
        """Brings together accumulators, table and addends."""
        plan, o = self.plan, self.o
        arrives = Signal(_READ)
        m.d.sync += [arrives.eq(Cat(begins, arrives)), o.valid.eq(arrives[-1])]
        width = len(self.step)
        m.d.comb += [
            self.table_row.eq(delay(m, Cat(self.step, half), _READ, name="row")),
            self.addend_step.eq(self.table_row[:width]),
            self.addend_group.eq(delay(m, number, _READ, name="group")),
            o.p.mask.eq(~0),
        ]
        adds_bias = plan.bias & ~float_flag(self._params, plan, "floats")
        ordered = float_flag(self._params, plan, "ordered")
        for lane in range(self._params.conv.results):
            acc = self.acc[lane]
            turned = Cat(acc[:15] ^ (ordered & acc[15]).replicate(15), acc[15:])
            m.d.sync += [
                o.p.acc[lane].eq(turned + Mux(adds_bias, self.bias[lane], 0)),
                o.p.scale[lane].eq(self.scale[lane]),
                o.p.addend[lane].eq(self.addend[lane]),
            ]
