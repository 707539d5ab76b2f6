"""The read-out of finished accumulators, transfer by transfer, with their operands."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from tilewright.spec.conv import CHANNELS_AT_ONCE

from ...lib.logic import delay
from ...lib.stream import ShallowQueue
from ..layouts import AccumulatorReadLayout, AccumulatorsLayout, PlanLayout, float_flag
from .layouts import GroupLayout, GroupPlaceLayout, ResultSizes
from .operands import adds

__all__ = ["ReadOut"]

#: Groups that wait; their addends are requested meanwhile.
_GROUPS = 16
#: Transfers under way: entries of post-processing.
_UNDER_WAY = 32
#: Cycles from the beginning of a transfer to its accumulators: a register, and the array.
_READ = 1 + 3


class ReadOut(wiring.Component):
    """Reads the results of groups from the array, R accumulators a cycle (docs/conv.md, "Results").

    The groups of a tile are read when it is complete: all parts of a channel of the slaves, channel after channel, or
    in lane-private mode R elements after R elements. Transfers with channels from Co on only are skipped. Biases are
    added here, except to sums of floats, which began with them. The maximum of floats becomes a float again.

    A transfer begins only if post-processing has room for it: at most 32 are under way until they have ``departed``, so
    that nothing has to stall. Latency: ``LATENCY`` cycles from the beginning of a transfer to ``o``. Throughput: one
    transfer a cycle.

    Parameters
    ----------
    params : ConvUnitParams
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
                "plan": In(PlanLayout(params)),  # constant while anything is under way
                "start": In(1),  # Strobe, before the first place of a job.
                "i": In(stream.Signature(GroupPlaceLayout(params))),
                # The bank of a complete tile. Transferred when its last read begins, one cycle before that is at
                # ``read``.
                "tiles": In(stream.Signature(range(params.accumulator_banks))),
                "read": Out(AccumulatorReadLayout(params)),  # always served; registered
                "acc": In(data.ArrayLayout(32, results)),  # of the read of three cycles ago
                # To and from a ``TableLoader``.
                "table_loaded": In(1),
                "table_release": Out(1),
                "table_row": Out(range(2 * steps)),
                "bias": In(data.ArrayLayout(32, results)),
                "scale": In(data.ArrayLayout(32, results)),
                # To and from an ``AddendReader``.
                "addend_loaded": In(1),
                "addend_release": Out(1),
                "addend_group": Out(range(_GROUPS)),
                "addend_step": Out(range(steps)),
                "addend": In(data.ArrayLayout(8, results)),
                "o": Out(stream.Signature(AccumulatorsLayout(params.conv))),  # registered; ``ready`` is ignored
                # For each transfer, before it is at ``o``: it is the last one that the assembler collects in a buffer.
                "flush": Out(stream.Signature(1)),
                "departed": In(1),  # Strobe: a transfer has left post-processing, and its ``flush`` was accepted.
                "idle": Out(1),  # no group waits, and no transfer is under way
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.groups, m.submodules.flushes = self.groups, self.flushes
        self._collect(m)
        begins, half, number = self._begin(m)
        self._read(m)
        self._finish(m, begins, half, number)
        m.d.sync += self.under_way.eq(self.under_way + begins - self.departed)
        m.d.comb += self.idle.eq(~self.groups.o.valid & (self.under_way == 0))
        connect(m, self.flushes.o, flipped(self.flush))
        return m

    def _collect(self, m):
        """Queues groups, each by its last place; those without results are needed only at the end of a tile."""
        i, groups, place = self.i, self.groups.i, self.i.payload
        m.d.comb += [
            i.ready.eq(groups.ready),
            groups.valid.eq(i.valid & place.group_last & (place.any | place.tile_last)),
            *(groups.payload[name].eq(place[name]) for name, _ in GroupLayout(self._params)),
        ]

    def _begin(self, m):
        """Begins transfers. Returns whether one begins, its half of the table, and the number of its group among those
        with addends."""
        plan, groups, conv = self.plan, self.groups.o, self._params.conv
        group, piece_bytes = groups.payload, self._sizes.piece_bytes
        place_results = conv.results // self._sizes.together  # results of a transfer for each of its places
        distinct = exact_log2(min(conv.results, conv.slaves))
        begins, over, leaves = Signal(), Signal(), Signal()
        half, number = Signal(), Signal(range(_GROUPS))
        last = Signal.like(self.step)
        # Transfers of a flush, minus one: of bytes, and of results.
        byte_transfers, transfers = (
            Signal(range(piece_bytes * self._sizes.together // conv.results), name=name)
            for name in ("byte_transfers", "transfers")
        )
        m.d.comb += [
            last.eq(Mux(plan.lanes, group.channels >> exact_log2(conv.results), group.channels >> distinct)),
            byte_transfers.eq(Mux(plan.lanes, max(1, piece_bytes // conv.results), piece_bytes // place_results) - 1),
            transfers.eq(byte_transfers >> plan.result_log2),
            begins.eq(
                groups.valid
                & group.any
                & self.tiles.valid
                & ~self.under_way[-1]
                & (self.table_loaded | ~plan.table)
                & (self.addend_loaded | ~adds(plan))
            ),
            over.eq(self.step == last),
            leaves.eq(Mux(group.any, begins & over, groups.valid & self.tiles.valid)),
            groups.ready.eq(leaves),
            self.tiles.ready.eq(leaves & group.tile_last),
            self.table_release.eq(leaves & group.pass_last & plan.table),
            self.addend_release.eq(begins & over & adds(plan)),
            self.flushes.i.valid.eq(begins),
            self.flushes.i.payload.eq(over | ((self.step & transfers) == transfers)),
        ]
        with m.If(begins):
            m.d.sync += self.step.eq(Mux(over, 0, self.step + 1))
        m.d.sync += [number.eq(number + self.addend_release), half.eq(half ^ (leaves & group.pass_last))]
        with m.If(self.start):
            m.d.sync += half.eq(0)
        return begins, half, number

    def _read(self, m):
        """Reads the accumulators of the transfer that begins."""
        plan, group, conv = self.plan, self.groups.o.payload, self._params.conv
        row = exact_log2(conv.row_bytes)
        parts = exact_log2(max(1, conv.slaves // conv.results))
        place = Signal(len(group.place) + row)  # its first byte in the rows of a lane-private tile
        m.d.comb += place.eq(group.place << plan.granularity)
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
                self.read.index.eq(group.place & ~(self._sizes.together - 1)),
            ]
        m.d.sync += self.read.bank.eq(self.tiles.payload)

    def _finish(self, m, begins, half, number):
        """Combines accumulators with their operands."""
        plan, o = self.plan, self.o
        stages = Signal(_READ)
        m.d.sync += [stages.eq(Cat(begins, stages)), o.valid.eq(stages[-1])]
        m.d.comb += [
            self.table_row.eq(delay(m, Cat(self.step, half), _READ, name="row")),
            self.addend_step.eq(self.table_row[: len(self.step)]),
            self.addend_group.eq(delay(m, number, _READ, name="group")),
        ]
        adds_bias = plan.bias & ~float_flag(self._params, plan, "floats")
        ordered = float_flag(self._params, plan, "ordered")
        for lane in range(self._params.conv.results):
            acc = self.acc[lane]
            value = Cat(acc[:15] ^ (ordered & acc[15]).replicate(15), acc[15:])
            m.d.sync += [
                o.payload.acc[lane].eq(value + Mux(adds_bias, self.bias[lane], 0)),
                o.payload.scale[lane].eq(self.scale[lane]),
                o.payload.addend[lane].eq(self.addend[lane]),
            ]
