"""Reads of shared memory: accesses become reads with tags, and each tag says where the data goes that is returned."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.logic import mux_tree
from ..lib.stream import DeepQueue, ShallowQueue, SkidBuffer
from ..smem.layouts import CHUNK_BITS, ReadLayout, read_data_layout
from .layouts import AccessKind, AccessLayout, ColumnsLayout, LaneWriteLayout, access_fields
from .line_cache import PickLayout, PlaceLayout, RowsLayout, pick_places, pick_positions
from .params import LANES
from .stores import StoreWordsLayout

__all__ = ["ReadReturn", "Reader", "TagLayout"]

#: Accesses in flight: more than the cycles from a read to its answer, for full throughput; more fit in a block RAM.
_TAGS, _MANY_TAGS = 8, 32


def _tag_fields(params):
    return {name: shape for name, shape in access_fields(params).items() if name not in ("ka", "data")}


class TagLayout(data.StructLayout):
    """What is done with the chunks of an access, of any kind but STORE."""

    def __init__(self, params):
        lane = data.StructLayout(
            {
                "enable": 1,
                "byte": unsigned(4),  # of PICK: 2·p for position p of the line cache
                "lower": 1,  # ~byte[3], from a register of its own, so that synthesis does not share logic of its users
                "keep": unsigned(8),
            }
        )
        super().__init__(
            {
                "reads": 1,  # chunks are returned
                "picks": 1,  # it is a PICK
                "lanes": data.ArrayLayout(lane, LANES),
                "places": data.ArrayLayout(PlaceLayout(params), LANES),  # of PICK, in the line cache
                **_tag_fields(params),
            }
        )


class Reader(wiring.Component):
    """Sends accesses to shared memory or to the store merger, in an order that keeps reads and stores consistent.

    An access that may read waits until all words before it were stored by the previous cycle, and a store until all
    chunks before it have been read. Accesses without an enabled lane, and PICK, have a tag but no read.

    Latency: 1 cycle to ``reads``, which is registered; 1 to ``tags``, or 3 with ``params.paced``; 0 to ``stores``.
    Throughput: one access a cycle.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "accesses": In(stream.Signature(AccessLayout(params))),
                "reads": Out(stream.Signature(ReadLayout(params.smem))),
                # One for each access but STORE, in order; those with ``reads`` match the answers of shared memory.
                "tags": Out(stream.Signature(TagLayout(params))),
                "stores": Out(stream.Signature(StoreWordsLayout(params))),
                # All stored words are in shared memory. Falls in the cycle after a word is accepted.
                "stores_idle": In(1),
                "idle": Out(1),  # there is no tag
                # Rows that are read into the line cache, in the cycle after their access, to be counted.
                "line_fill": Out(range(LANES + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, access, kind = self._params, self.accesses.payload, self.accesses.payload.kind
        # A read of two parts takes longer than a block RAM, whose output register gives users of a tag more time.
        queue, depth = (DeepQueue, _MANY_TAGS) if params.paced else (ShallowQueue, _TAGS)
        m.submodules.tags = tags = queue(TagLayout(params), depth)
        m.submodules.reads = reads = SkidBuffer(ReadLayout(params.smem))
        connect(m, queue=tags.o, tags=flipped(self.tags))
        connect(m, buffer=reads.o, reads=flipped(self.reads))

        enabled, picks = Cat(lane.enable for lane in access.lanes), kind == AccessKind.PICK
        is_store, may_read, reads_chunks, free, accepted = Signal(), Signal(), Signal(), Signal(), Signal()
        stored = Signal(init=1)  # all words were stored by the previous cycle, and none was accepted in it
        m.d.sync += stored.eq(self.stores_idle & ~(self.stores.valid & self.stores.ready))
        m.d.comb += [
            is_store.eq(kind == AccessKind.STORE),
            may_read.eq((kind == AccessKind.COLUMNS) | (kind == AccessKind.FILL) | (kind == AccessKind.LOAD)),
            reads_chunks.eq(enabled.any() & may_read),
            # Depends on ``may_read``, because ``reads_chunks`` is too late.
            free.eq(~is_store & tags.i.ready & (~may_read | (reads.i.ready & stored))),
            accepted.eq(self.accesses.valid & free),
            tags.i.valid.eq(accepted),
            reads.i.valid.eq(accepted & reads_chunks),
            self.stores.valid.eq(self.accesses.valid & is_store & self.idle),
            self.accesses.ready.eq(Mux(is_store, self.idle & self.stores.ready, free)),
            self.idle.eq(tags.level == 0),
        ]
        fills = accepted & (kind == AccessKind.FILL)
        m.d.sync += self.line_fill.eq(Mux(fills, sum(lane.enable for lane in access.lanes), 0))

        tag = tags.i.payload
        m.d.comb += [
            reads.i.payload.lanes.eq(enabled),
            reads.i.payload.chunks.eq(Cat(lane.chunk for lane in access.lanes)),
            tag.reads.eq(reads_chunks),
            tag.picks.eq(picks),
            *(tag[field].eq(access[field]) for field in _tag_fields(params)),
            *(target.eq(place) for target, place in zip(tag.places, pick_places(m, params, access), strict=True)),
            self.stores.payload.last.eq(access.last),
        ]
        positions = pick_positions(m, access)
        for number, lane in enumerate(access.lanes):
            tag_lane, word = tag.lanes[number], self.stores.payload.lanes[number]
            m.d.comb += [
                tag_lane.enable.eq(lane.enable),
                tag_lane.byte.eq(Mux(picks, positions[number] << 1, lane.byte)),
                tag_lane.lower.eq(~tag_lane.byte[3]),
                tag_lane.keep.eq(lane.keep),
                word.chunk.eq(lane.chunk),
                word.word.eq(lane.byte[2:]),
                word.data.eq(access.data[number]),
                word.strobe.eq(Mux(lane.enable, lane.keep[:4], 0)),
            ]
            if params.units:
                # A single element is anywhere in its word.
                value, keep = access.data[number], (lane.keep[:4] << lane.byte[:2])[:4]
                single = access.element != 0
                m.d.comb += word.data.eq(
                    Mux(access.element == 1, value[:8].replicate(4), Mux(single, value[:16].replicate(2), value))
                )
                with m.If(single):
                    m.d.comb += [tag_lane.keep.eq(keep), word.strobe.eq(Mux(lane.enable, keep, 0))]
        return m


class ReadReturn(wiring.Component):
    """Extracts units or words from chunks, and forwards whole chunks to the line cache.

    Chunks for the line cache are held until it accepts them, but their tag is not: picks after it proceed meanwhile.

    With ``params.smem.chunks_a_cycle`` of 4, data is returned in two parts, and picked in two: units and words are
    extracted from four chunks at once. The first part of rows for the line cache is buffered here.

    Latency: 1 cycle. Throughput: one part a cycle, if its chunks are there, and the line cache is ready for it. A tag
    that neither reads nor picks has one part. ``columns`` and ``loads`` are registered; with arithmetic, single
    elements are widened after the register.
    """

    def __init__(self, params):
        self._params = params
        self._filling = Signal()  # chunks are for the line cache, and their tag has been accepted
        self._ways = ways = params.smem.chunks_a_cycle
        self._part = Signal(range(LANES // ways))  # of the tag at the input
        self._all_parts = Signal()  # that tag has all parts, not one
        super().__init__(
            {
                "tags": In(stream.Signature(TagLayout(params))),
                "read_data": In(stream.Signature(read_data_layout(ways))),  # one answer for each part of a read
                "fill": Out(stream.Signature(RowsLayout())),
                "pick": Out(PickLayout(params)),
                "pickable": In(1),  # the data that ``pick`` needs has been written
                # Answers to ``pick`` in the same cycle; see LineCache.
                "units": In(data.ArrayLayout(data.ArrayLayout(params.unit_bits, 2), ways)),
                "inside": In(data.ArrayLayout(params.unit_bytes, ways)),
                "columns": Out(stream.Signature(ColumnsLayout(params))),  # one item for each COLUMNS and PICK
                "loads": Out(stream.Signature(LaneWriteLayout(params))),  # one for each LOAD with a lane that is on
                "load_done": Out(1),  # strobe: the last word of a LOAD is accepted, or not needed
                "idle": Out(1),  # no output is valid
            }
        )

    def elaborate(self, platform):
        m = Module()
        tag, filling = self.tags.payload, self._filling
        available, free, moves = Signal(), Signal(), Signal()  # chunks have come; there is space for them; both
        ends = Signal()  # it is the last part
        fills, picks = tag.kind == AccessKind.FILL, tag.picks
        for_columns = (tag.kind == AccessKind.COLUMNS) | picks
        for_loads = (tag.kind == AccessKind.LOAD) | (tag.kind == AccessKind.NOTHING)
        m.d.comb += [
            available.eq(self.tags.valid & (~tag.reads | (self.read_data.valid & ~filling))),
            moves.eq(available & free),
            self._all_parts.eq(tag.reads | picks),
            ends.eq((self._part == LANES // self._ways - 1) | ~self._all_parts),
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
        begins, was_read = Signal(), Signal()  # chunks for the line cache come; those at ``fill`` were read
        m.d.comb += begins.eq(available & fills & ~filling & ends)
        self._fill(m, begins, was_read, moves & fills & ~ends)
        m.d.comb += [
            self.read_data.ready.eq(
                Mux(begins | filling, self.fill.ready & was_read, self.tags.valid & tag.reads & ~(fills & ends) & free)
            ),
            self.pick.part.eq(self._part),
            *(self.pick[name].eq(tag[name]) for name in ("slot", "kb", "wide", "place", "places")),
            *(position.eq(byte[1:]) for position, (byte, *_) in zip(self.pick.positions, lanes, strict=True)),
        ]
        return m

    def _lanes(self, tag):
        """For each lane of the part: the first byte of its unit or word, its ``lower``, and the bytes to keep."""
        lanes = []
        for way in range(self._ways):
            sources = [tag.lanes[lane] for lane in range(way, LANES, self._ways)]
            byte = mux_tree(self._part, {part: lane.byte for part, lane in enumerate(sources)})
            lower = mux_tree(self._part, {part: lane.lower for part, lane in enumerate(sources)})
            keep = {part: lane.keep & lane.enable.replicate(len(lane.keep)) for part, lane in enumerate(sources)}
            lanes.append((byte, lower, mux_tree(self._part, keep)))
        return lanes

    def _fill(self, m, begins, was_read, buffers):
        """The output to the line cache: from the tag, and from the next cycle on from a copy of its fields."""
        tag, fill, filling = self.tags.payload, self.fill, self._filling
        m.d.comb += fill.valid.eq(begins | filling)
        for way, chunk in enumerate(self.read_data.payload):
            *earlier, last = range(way, LANES, self._ways)
            for lane in earlier:
                row = Signal(CHUNK_BITS, name=f"row{lane}", reset_less=True)
                m.d.comb += fill.payload.rows[lane].eq(row)
                with m.If(buffers & (self._part == lane // self._ways)):
                    m.d.sync += row.eq(chunk)
            m.d.comb += fill.payload.rows[last].eq(chunk)
        m.d.sync += filling.eq(fill.valid & ~fill.ready)
        for value, target in (
            *((tag[name], fill.payload[name]) for name in ("slot", "octet", "wide")),
            (Cat(lane.enable for lane in tag.lanes), fill.payload.enable),
            (tag.reads, was_read),
        ):
            copy = Signal.like(target, name="copy")
            m.d.comb += target.eq(Mux(filling, copy, value))
            with m.If(~filling):
                m.d.sync += copy.eq(value)

    def _columns(self, m, moves, ends, lanes):
        """The register for columns; returns whether it is free."""
        tag, columns = self.tags.payload, self.columns
        unit_bytes, unit_bits = self._params.unit_bytes, self._params.unit_bits
        free = Signal(name="columns_free")
        m.d.comb += free.eq(~columns.valid | columns.ready)
        with m.If(free):
            m.d.sync += columns.valid.eq(moves & ends)
            for name in ("on", "register", "first_member", "last"):
                m.d.sync += columns.payload[name].eq(tag[name])
        count = CHUNK_BITS // unit_bits  # units in a chunk
        for way, (chunk, picked, (byte, _, keep)) in enumerate(
            zip(self.read_data.payload, self.units, lanes, strict=True)
        ):
            # Two units of the chunk and two of the line cache are one 4-to-1 multiplexer with two select bits.
            code = Cat(byte[unit_bytes.bit_length() - 1 :], tag.picks)
            units = {place: chunk.word_select(place, unit_bits) for place in range(count)}
            unit = mux_tree(code, units | {count + half * count // 2: value for half, value in enumerate(picked)})
            inside = Mux(tag.picks, self.inside[way], keep[:unit_bytes])
            self._store(m, free, columns.payload.units, way, unit, inside)
        return free

    def _loads(self, m, moves, ends, lanes):
        """The register for loaded words and for ends of instructions; returns whether it is free."""
        tag, loads = self.tags.payload, self.loads
        full, has_word, last = Signal(), Signal(), Signal()  # the register is full; with a word; with an end
        free = Signal(name="loads_free")
        m.d.comb += [
            loads.valid.eq(full & has_word),
            free.eq(~full | ~has_word | loads.ready),
            self.load_done.eq(full & last & (~has_word | loads.ready)),
            self.idle.eq(~full & ~self.columns.valid),
        ]
        with m.If(free):
            m.d.sync += [
                full.eq(moves & ends),
                has_word.eq((tag.kind == AccessKind.LOAD) & tag.on.any()),
                last.eq(tag.last),
                loads.payload.register.eq(tag.register),
                loads.payload.group.eq(tag.group),
                loads.payload.lanes.eq(tag.on),
            ]
        kept = loads.payload.data
        if self._params.units:
            kept = Signal.like(kept)
            self._extract(m, free, kept, tag)
        for way, (chunk, (byte, lower, keep)) in enumerate(zip(self.read_data.payload, lanes, strict=True)):
            # Not byte[3], which selects units: synthesis would share halves of the two 4-to-1 multiplexers.
            words = {place: chunk.word_select(place, 32) for place in range(CHUNK_BITS // 32)}
            self._store(m, free, kept, way, mux_tree(Cat(byte[2], ~lower), words), keep[:4])
        return free

    def _extract(self, m, free, kept, tag):
        """The loaded words, of which single elements are widened."""
        element, is_signed, places = Signal(2), Signal(), Signal(data.ArrayLayout(2, LANES))
        with m.If(free):
            m.d.sync += [element.eq(tag.element), is_signed.eq(tag.signed)]
            m.d.sync += [place.eq(lane.byte[:2]) for place, lane in zip(places, tag.lanes, strict=True)]
        for word, place, target in zip(kept, places, self.loads.payload.data, strict=True):
            byte = mux_tree(place, {n: word.word_select(n, 8) for n in range(4)})
            half = Mux(place[1], word[16:], word[:16])
            narrow = Mux(element[0], byte, half[:8])
            sign = is_signed & Mux(element[0], byte[7], half[15])
            widened = Cat(narrow, Mux(element[0], sign.replicate(8), half[8:]), sign.replicate(16))
            m.d.comb += target.eq(Mux(element == 0, word, widened))

    def _store(self, m, free, targets, way, value, inside):
        """Registers for the bytes that are inside. The others are cleared by the registers' reset, without LUTs.

        One register for each part. With a tag of one part, which has no byte that is inside, all of them.
        """
        for part, lane in enumerate(range(way, LANES, self._ways)):
            register = Signal.like(targets[lane], name="kept", reset_less=True)
            m.d.comb += targets[lane].eq(register)
            for byte, bit in enumerate(inside):
                with m.If(free & ((self._part == part) | ~self._all_parts)):
                    m.d.sync += register.word_select(byte, 8).eq(value.word_select(byte, 8))
                    with m.If(~bit):
                        m.d.sync += register.word_select(byte, 8).eq(0)
