"""Reader: accesses become reads of shared memory, tags for what comes back, and words to store."""

from amaranth import unsigned
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..lib.logic import chosen
from ..lib.stream import DeepQueue, ShallowQueue, SkidBuffer
from ..smem.layouts import CHUNK_BITS, ReadLayout, read_data_layout
from .layouts import AccessKind, AccessLayout, ColumnsLayout, LaneWriteLayout, access_fields
from .line_cache import PickLayout, PlaceLayout, RowsLayout, pick_places, pick_positions
from .params import LANES
from .stores import StoreWordsLayout

__all__ = ["ReadReturn", "Reader", "TagLayout"]

#: Accesses that are read at once: more than the cycles from a read to its answer, so that none is lost. In a block
#: memory there may be more.
_TAGS, _MANY_TAGS = 8, 32


def _tag_fields(params):
    return {name: shape for name, shape in access_fields(params).items() if name not in ("ka", "data")}


class TagLayout(data.StructLayout):
    """What is to be done with the chunks that were read, of an access that is no STORE."""

    def __init__(self, params):
        lane = data.StructLayout(
            {
                "enable": 1,
                "byte": unsigned(4),  # PICK: 2·p for position p of the line cache
                "lower": 1,  # the byte's highest bit is 0: for who chooses what nothing else shall share parts of
                "keep": unsigned(8),
            }
        )
        super().__init__(
            {
                "reads": 1,  # chunks come; otherwise there is none to wait for
                "picks": 1,  # it is a PICK
                "complement": 3,  # as of RowsLayout
                "lanes": data.ArrayLayout(lane, LANES),
                "places": data.ArrayLayout(PlaceLayout(params), LANES),  # of a PICK in the line cache
                **_tag_fields(params),
            }
        )


class Reader(wiring.Component):
    """Sends each access where it belongs, in an order in which reads and stores see one another.

    What may read waits until all words before it were stored in the cycle before, and a store until all chunks before
    it have been read. Accesses without a lane to read, and PICK, have a tag but no read.

    Latency: 1 cycle to the read, 1 to the tag, 3 with ``params.paced``, none to the store. Throughput: one access a
    cycle.

    Members
    -------
    accesses : In(stream of AccessLayout)
    reads : Out(stream of ReadLayout)
        From one of two registers.
    tags : Out(stream of TagLayout)
        One an access that is no STORE, in order; those with ``reads`` belong to the answers. From a memory,
        with ``params.paced`` from a register behind it.
    stores : Out(stream of StoreWordsLayout)
        Combinational from ``accesses``.
    stores_idle : In(1)
        All stored words are in shared memory. Falls in the cycle after one was taken.
    idle : Out(1)
        No tag is waiting or on its way.
    line_fill : Out(range(LANES + 1))
        Rows that go to the line cache, in the cycle after their access: to be counted.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "accesses": In(stream.Signature(AccessLayout(params))),
                "reads": Out(stream.Signature(ReadLayout(params.smem))),
                "tags": Out(stream.Signature(TagLayout(params))),
                "stores": Out(stream.Signature(StoreWordsLayout(params))),
                "stores_idle": In(1),
                "idle": Out(1),
                "line_fill": Out(range(LANES + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # A read of two parts takes longer than a block memory, whose register gives what hangs on a tag more time.
        queue = DeepQueue if self._params.paced else ShallowQueue
        depth = _MANY_TAGS if self._params.paced else _TAGS
        m.submodules.tags = tags = queue(TagLayout(self._params), depth)
        m.submodules.reads = reads = SkidBuffer(ReadLayout(self._params.smem))
        wiring.connect(m, queue=tags.o, tags=wiring.flipped(self.tags))
        wiring.connect(m, twin=reads.o, reads=wiring.flipped(self.reads))

        access, kind = self.accesses.payload, self.accesses.payload.kind
        enabled, picks = Cat(lane.enable for lane in access.lanes), kind == AccessKind.PICK
        store, reading, read, free, go = Signal(), Signal(), Signal(), Signal(), Signal()
        stored = Signal(init=1)  # all words were stored in the cycle before, and none was taken in it
        m.d.sync += stored.eq(self.stores_idle & ~(self.stores.valid & self.stores.ready))
        m.d.comb += [
            store.eq(kind == AccessKind.STORE),
            reading.eq((kind == AccessKind.COLUMNS) | (kind == AccessKind.FILL) | (kind == AccessKind.LOAD)),
            read.eq(enabled.any() & reading),
            # Whether a lane reads is found too late to be waited for.
            free.eq(~store & tags.i.ready & (~reading | (reads.i.ready & stored))),
            go.eq(self.accesses.valid & free),
            tags.i.valid.eq(go),
            reads.i.valid.eq(go & read),
            self.stores.valid.eq(self.accesses.valid & store & self.idle),
            self.accesses.ready.eq(Mux(store, self.idle & self.stores.ready, free)),
            self.idle.eq(tags.level == 0),
        ]
        m.d.sync += self.line_fill.eq(Mux(go & (kind == AccessKind.FILL), sum(lane.enable for lane in access.lanes), 0))

        m.d.comb += [
            reads.i.payload.lanes.eq(enabled),
            reads.i.payload.chunks.eq(Cat(lane.chunk for lane in access.lanes)),
            tags.i.payload.reads.eq(read),
            tags.i.payload.picks.eq(picks),
            tags.i.payload.complement.eq(~Cat(access.octet, access.wide)),
            self.stores.payload.last.eq(access.last),
        ]
        for field in _tag_fields(self._params):
            m.d.comb += tags.i.payload[field].eq(access[field])
        positions = pick_positions(m, access)
        for place, known in zip(tags.i.payload.places, pick_places(m, self._params, access), strict=True):
            m.d.comb += place.eq(known)
        for tag, word, lane, value, position in zip(
            tags.i.payload.lanes, self.stores.payload.lanes, access.lanes, access.data, positions, strict=True
        ):
            m.d.comb += [
                tag.enable.eq(lane.enable),
                tag.byte.eq(Mux(picks, position << 1, lane.byte)),
                tag.lower.eq(~tag.byte[3]),
                tag.keep.eq(lane.keep),
                word.chunk.eq(lane.chunk),
                word.word.eq(lane.byte[2:]),
                word.data.eq(value),
                word.strobe.eq(Mux(lane.enable, lane.keep[:4], 0)),
            ]
        return m


class ReadReturn(wiring.Component):
    """Cuts units or words out of chunks, and hands whole chunks to the line cache.

    Chunks for the line cache stay until it has taken them. Their tag does not: picks behind it go on meanwhile.

    With ``params.smem.chunks_a_cycle`` of 4 what is read comes in two parts, and what is picked is picked in two: units
    and words are cut out of four chunks at once. Of rows for the line cache the first part is kept here.

    Latency: 1 cycle. Throughput: one part a cycle, if its chunks are there, and the line cache is ready for it. A tag
    that neither reads nor picks has one.

    Members
    -------
    tags : In(stream of TagLayout)
    read_data : In(stream of read_data_layout(params.smem.chunks_a_cycle))
        One answer for each part of a tag with ``reads``.
    fill : Out(stream of RowsLayout)
    pick : Out(PickLayout(params))
    pickable : In(1)
        What ``pick`` needs is there.
    units : In(array of params.smem.chunks_a_cycle data.ArrayLayout(params.unit_bits, 2))
        Those of ``pick``, in the same cycle, by halves of the positions.
    inside : In(array of params.smem.chunks_a_cycle params.unit_bytes)
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
        self._filling = Signal()  # chunks are for the line cache, and their tag has been taken
        self._ways = ways = params.smem.chunks_a_cycle
        self._part = Signal(range(LANES // ways))  # of the tag at the input
        self._many = Signal()  # that tag has as many parts as there are
        super().__init__(
            {
                "tags": In(stream.Signature(TagLayout(params))),
                "read_data": In(stream.Signature(read_data_layout(ways))),
                "fill": Out(stream.Signature(RowsLayout())),
                "pick": Out(PickLayout(params)),
                "pickable": In(1),
                "units": In(data.ArrayLayout(data.ArrayLayout(params.unit_bits, 2), ways)),
                "inside": In(data.ArrayLayout(params.unit_bytes, ways)),
                "columns": Out(stream.Signature(ColumnsLayout(params))),
                "loads": Out(stream.Signature(LaneWriteLayout(params))),
                "load_done": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        tag, filling = self.tags.payload, self._filling
        here, free, moves = Signal(), Signal(), Signal()  # chunks have come; there is space for them; both
        ends = Signal()  # it is the last part
        fills, picks = tag.kind == AccessKind.FILL, tag.picks
        for_columns = (tag.kind == AccessKind.COLUMNS) | picks
        for_loads = (tag.kind == AccessKind.LOAD) | (tag.kind == AccessKind.NOTHING)
        m.d.comb += [
            here.eq(self.tags.valid & (~tag.reads | (self.read_data.valid & ~filling))),
            moves.eq(here & free),
            self._many.eq(tag.reads | picks),
            ends.eq((self._part == LANES // self._ways - 1) | ~self._many),
            self.tags.ready.eq(moves & ends),
        ]
        with m.If(moves):
            m.d.sync += self._part.eq(Mux(ends, 0, self._part + 1))
        lanes = self._lanes(tag)
        columns_free = self._columns(m, moves & for_columns, ends, lanes)
        loads_free = self._loads(m, moves & for_loads, ends, lanes)
        m.d.comb += free.eq(
            (~for_columns | columns_free) & (~for_loads | loads_free) & (~fills | ~filling) & (~picks | self.pickable)
        )
        begins, read = Signal(), Signal()  # chunks for the line cache come; those that are there were read
        m.d.comb += begins.eq(here & fills & ~filling & ends)
        self._fill(m, begins, read, moves & fills & ~ends)
        m.d.comb += [
            self.read_data.ready.eq(
                Mux(begins | filling, self.fill.ready & read, self.tags.valid & tag.reads & ~(fills & ends) & free)
            ),
            self.pick.slot.eq(tag.slot),
            self.pick.kb.eq(tag.kb),
            self.pick.wide.eq(tag.wide),
            self.pick.place.eq(tag.place),
            self.pick.part.eq(self._part),
            self.pick.places.eq(tag.places),
            *(position.eq(byte[1:]) for position, (byte, *_) in zip(self.pick.positions, lanes, strict=True)),
        ]
        return m

    def _lanes(self, tag):
        """Of the lanes of the part: the first byte of a unit or word, its ``lower``, and which bytes are inside."""
        lanes = []
        for way in range(self._ways):
            mine = [tag.lanes[lane] for lane in range(way, LANES, self._ways)]
            byte = chosen(self._part, {part: lane.byte for part, lane in enumerate(mine)})
            lower = chosen(self._part, {part: lane.lower for part, lane in enumerate(mine)})
            kept = {part: lane.keep & lane.enable.replicate(len(lane.keep)) for part, lane in enumerate(mine)}
            lanes.append((byte, lower, chosen(self._part, kept)))
        return lanes

    def _fill(self, m, begins, read, keeps):
        """What the line cache gets: with its tag, and from the next cycle on with what is known of that."""
        tag, fill, filling = self.tags.payload, self.fill, self._filling
        m.d.comb += fill.valid.eq(begins | filling)
        for way, chunk in enumerate(self.read_data.p):
            *before, last = range(way, LANES, self._ways)
            for lane in before:
                row = Signal(CHUNK_BITS, name=f"row{lane}", reset_less=True)
                m.d.comb += fill.p.rows[lane].eq(row)
                with m.If(keeps & (self._part == lane // self._ways)):
                    m.d.sync += row.eq(chunk)
            m.d.comb += fill.p.rows[last].eq(chunk)
        m.d.sync += filling.eq(fill.valid & ~fill.ready)
        for value, target in (
            (tag.slot, fill.p.slot),
            (tag.octet, fill.p.octet),
            (tag.wide, fill.p.wide),
            (tag.complement, fill.p.complement),
            (Cat(lane.enable for lane in tag.lanes), fill.p.enable),
            (tag.reads, read),
        ):
            kept = Signal.like(target, name="kept")
            m.d.comb += target.eq(Mux(filling, kept, value))
            with m.If(~filling):
                m.d.sync += kept.eq(value)

    def _columns(self, m, moves, ends, lanes):
        """The register for columns; returns whether it is free."""
        tag, columns, unit_bytes = self.tags.payload, self.columns, self._params.unit_bytes
        free = Signal(name="columns_free")
        m.d.comb += free.eq(~columns.valid | columns.ready)
        with m.If(free):
            m.d.sync += columns.valid.eq(moves & ends)
            for name in ("on", "register", "first_member", "last"):
                m.d.sync += columns.payload[name].eq(tag[name])
        places = CHUNK_BITS // self._params.unit_bits  # of units in a chunk
        for way, (chunk, picked, (byte, _, kept)) in enumerate(
            zip(self.read_data.payload, self.units, lanes, strict=True)
        ):
            # Those of the chunk and two of the line cache make one choice: four inputs, two bits of code.
            code = Cat(byte[self._unit_log2 :], tag.picks)
            units = {place: chunk.word_select(place, self._params.unit_bits) for place in range(places)}
            unit = chosen(code, units | {places + half * places // 2: value for half, value in enumerate(picked)})
            inside = Mux(tag.picks, self.inside[way], kept[:unit_bytes])
            self._keep(m, free, columns.payload.units, way, unit, inside)
        return free

    def _loads(self, m, moves, ends, lanes):
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
                full.eq(moves & ends),
                some.eq((tag.kind == AccessKind.LOAD) & tag.on.any()),
                last.eq(tag.last),
                loads.payload.register.eq(tag.register),
                loads.payload.group.eq(tag.group),
                loads.payload.lanes.eq(tag.on),
            ]
        for way, (chunk, (byte, lower, kept)) in enumerate(zip(self.read_data.payload, lanes, strict=True)):
            # Not by the bit that chooses units: of a choice of four, halves would be shared, and the others tables too.
            words = {place: chunk.word_select(place, 32) for place in range(CHUNK_BITS // 32)}
            self._keep(m, free, loads.payload.data, way, chosen(Cat(byte[2], ~lower), words), kept[:4])
        return free

    def _keep(self, m, free, targets, way, value, inside):
        """Registers that take over bytes that are inside. The others are zero by their reset, which is no table.

        One for each part; all of a tag with one part, which has no byte that is inside.
        """
        for part, lane in enumerate(range(way, LANES, self._ways)):
            register = Signal.like(targets[lane], name="kept", reset_less=True)
            m.d.comb += targets[lane].eq(register)
            for byte, bit in enumerate(inside):
                with m.If(free & ((self._part == part) | ~self._many)):
                    m.d.sync += register.word_select(byte, 8).eq(value.word_select(byte, 8))
                    with m.If(~bit):
                        m.d.sync += register.word_select(byte, 8).eq(0)
