"""Reader: accesses become reads of shared memory, tags for what comes back, and words to store."""

from amaranth import unsigned
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...lib.stream import DeepQueue, ShallowQueue
from ...lib.twin import TwinBuffer
from ...smem.layouts import ReadLayout
from ..layouts import AccessKind, AccessLayout, access_fields
from ..params import LANES
from .line_cache import PlaceLayout, pick_places, pick_positions
from .store_merger import StoreWordsLayout

__all__ = ["Reader", "TagLayout"]

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
        m.submodules.reads = reads = TwinBuffer(ReadLayout(self._params.smem))
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
