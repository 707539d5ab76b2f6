"""Read return: what has been read goes where its tag says."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...smem.layouts import read_data_layout
from ..layouts import AccessKind, ColumnsLayout, LaneWriteLayout
from ..params import LANES
from .line_cache import PickLayout, RowsLayout
from .reader import TagLayout

__all__ = ["ReadReturn"]


class ReadReturn(wiring.Component):
    """Cuts units or words out of chunks, and hands whole chunks to the line cache.

    Latency: 1 cycle. Throughput: one tag a cycle, if its chunks are there, and the line cache is ready for it.

    Members
    -------
    tags : In(stream of TagLayout)
    read_data : In(stream of read_data_layout())
        One answer for each tag with ``reads``.
    fill : Out(stream of RowsLayout)
    pick : Out(PickLayout)
    pickable : In(1)
        What ``pick`` needs is there.
    units : In(array of LANES params.unit_bits)
        Those of ``pick``, in the same cycle.
    inside : In(array of LANES params.unit_bytes)
        Bytes of them that count.
    columns : Out(stream of ColumnsLayout)
        Registered. One item for each COLUMNS and PICK.
    loads : Out(stream of LaneWriteLayout)
        Registered. One for each LOAD with a lane that is on.
    load_done : Out(1)
        High for one cycle when the last word of a LOAD is taken, or is not needed.
    idle : Out(1)
        Nothing waits to be taken.
    """

    def __init__(self, params):
        self._params = params
        self._unit_log2 = params.unit_bytes.bit_length() - 1
        self._units = [Signal(params.unit_bits, name=f"unit{lane}") for lane in range(LANES)]  # out of the chunks
        super().__init__(
            {
                "tags": In(stream.Signature(TagLayout(params))),
                "read_data": In(stream.Signature(read_data_layout())),
                "fill": Out(stream.Signature(RowsLayout())),
                "pick": Out(PickLayout()),
                "pickable": In(1),
                "units": In(data.ArrayLayout(params.unit_bits, LANES)),
                "inside": In(data.ArrayLayout(params.unit_bytes, LANES)),
                "columns": Out(stream.Signature(ColumnsLayout(params))),
                "loads": Out(stream.Signature(LaneWriteLayout(params))),
                "load_done": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        tag = self.tags.payload
        here, free, moves = Signal(), Signal(), Signal()  # chunks have come; there is space for them; both
        m.d.comb += [
            here.eq(self.tags.valid & (~tag.reads | self.read_data.valid)),
            moves.eq(here & free),
            self.tags.ready.eq(moves),
            self.read_data.ready.eq(self.tags.valid & tag.reads & free),
        ]
        for_columns = (tag.kind == AccessKind.COLUMNS) | (tag.kind == AccessKind.PICK)
        fills, picks = tag.kind == AccessKind.FILL, tag.kind == AccessKind.PICK
        for_loads = (tag.kind == AccessKind.LOAD) | (tag.kind == AccessKind.NOTHING)
        for index, unit in enumerate(self._units):
            place = tag.lanes[index].byte[self._unit_log2 :]
            m.d.comb += unit.eq(self.read_data.payload[index].word_select(place, self._params.unit_bits))
        columns_free = self._columns(m, moves & for_columns)
        loads_free = self._loads(m, moves & for_loads)
        m.d.comb += free.eq(
            (~for_columns | columns_free)
            & (~for_loads | loads_free)
            & (~fills | self.fill.ready)
            & (~picks | self.pickable)
        )

        m.d.comb += [
            self.fill.valid.eq(here & fills),
            self.fill.payload.slot.eq(tag.slot),
            self.fill.payload.octet.eq(tag.octet),
            self.fill.payload.wide.eq(tag.wide),
            self.fill.payload.enable.eq(Cat(lane.enable for lane in tag.lanes)),
            self.fill.payload.rows.eq(self.read_data.payload),
            self.pick.slot.eq(tag.slot),
            self.pick.kb.eq(tag.kb),
            self.pick.wide.eq(tag.wide),
            self.pick.place.eq(tag.place),
        ]
        return m

    def _columns(self, m, moves):
        """The register for columns; returns whether it is free."""
        tag, columns, unit_bytes = self.tags.payload, self.columns, self._params.unit_bytes
        free = Signal(name="columns_free")
        m.d.comb += free.eq(~columns.valid | columns.ready)
        with m.If(free):
            m.d.sync += columns.valid.eq(moves)
            for name in ("on", "register", "first_member", "last"):
                m.d.sync += columns.payload[name].eq(tag[name])
            picks = tag.kind == AccessKind.PICK
            for index, (unit, picked) in enumerate(zip(self._units, self.units, strict=True)):
                inside = Mux(picks, self.inside[index], self._kept(index, unit_bytes))
                kept = Mux(picks, picked, unit) & Cat(bit.replicate(8) for bit in inside)
                m.d.sync += columns.payload.units[index].eq(kept)
        return free

    def _loads(self, m, moves):
        """The register for loaded words, which ends of instructions go through too; returns whether it is free."""
        tag, loads = self.tags.payload, self.loads
        full, some, last = Signal(), Signal(), Signal()  # it holds something; a word; the instruction's end
        free = Signal(name="loads_free")
        m.d.comb += [
            loads.valid.eq(full & some),
            free.eq(~full | ~some | loads.ready),
            self.load_done.eq(full & last & (~some | loads.ready)),
            self.idle.eq(~full & ~self.columns.valid),
        ]
        with m.If(free):
            m.d.sync += [
                full.eq(moves),
                some.eq((tag.kind == AccessKind.LOAD) & tag.on.any()),
                last.eq(tag.last),
                loads.payload.register.eq(tag.register),
                loads.payload.group.eq(tag.group),
                loads.payload.lanes.eq(tag.on),
            ]
            for index, (unit, word) in enumerate(zip(self._units, loads.payload.data, strict=True)):
                place = tag.lanes[index].byte[2 : self._unit_log2]  # of the word in its unit
                m.d.sync += word.eq(unit.word_select(place, 32) & Cat(bit.replicate(8) for bit in self._kept(index, 4)))
        return free

    def _kept(self, index, size):
        """Which of the first bytes of a lane's unit, or word, are inside."""
        lane = self.tags.payload.lanes[index]
        return lane.keep[:size] & lane.enable.replicate(size)
