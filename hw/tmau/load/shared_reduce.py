"""Reductions into shared memory, sixteen bytes a cycle."""

from amaranth import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS, CHUNK_BYTES, Reduction

from ...lib.stream import Queue, SkidBuffer
from ...reduce.lane import ReduceLane
from ...smem.layouts import CHUNK_BITS
from ...smem.signatures import LineReadSignature
from .layouts import AlignedLayout

__all__ = ["IN_FLIGHT", "SharedReducer"]

#: Chunks from the fetch of what they are added to until they leave: more than the cycles that it takes.
IN_FLIGHT = 16
_CHUNK_LOG2 = CHUNK_BYTES.bit_length() - 1


class _FetchLayout(data.StructLayout):
    """A chunk to be fetched, and what it is combined with."""

    def __init__(self, params):
        super().__init__(
            {
                "chunk": _chunk(params),  # byte address >> 4
                "source": unsigned(CHUNK_BITS),
                "reduction": unsigned(4),  # golden.spec.Reduction
                "element": unsigned(4),  # golden.spec.Element
            }
        )


class SharedReducer(wiring.Component):
    """Passes pieces on, and combines those of reductions with what lies in shared memory, chunk by chunk.

    Pieces of reductions have data only, whole chunks of sixteen bytes. Each leaves as pieces of one chunk. No chunk
    comes twice in a transfer, so chunks of one transfer do not wait for each other. The first one is fetched when all
    that left before has been written, and the transfer ends with an empty piece, when all its chunks have left. Other
    pieces pass combinationally.

    Latency: that of :class:`ReduceLane` and 4 cycles from a chunk to what becomes of it. Throughput: one chunk a cycle.

    Members
    -------
    i : In(stream of AlignedLayout)
        ``ready`` depends combinationally on ``o.ready`` unless it is of a reduction that has chunks left.
    o : Out(stream of AlignedLayout)
    fetch : Out(LineReadSignature(params.smem))
        The row of a chunk that is read in the cycle of the handshake.
    written : In(1)
        All that has left is written.
    """

    def __init__(self, params):
        self._params = params
        self.fetches = SkidBuffer(_FetchLayout(params))
        self.places = Queue(_chunk(params), IN_FLIGHT)
        self.results = Queue(unsigned(CHUNK_BITS), IN_FLIGHT)
        self.begun = Signal()  # chunks of the transfer may be fetched
        self.started = Signal()  # a chunk of the piece is on its way
        self.following = Signal(4)  # the chunk behind it, counted from the start of the piece's line
        self.lane = ReduceLane(params.has("reductions_float"))
        self.moving = Signal(2 + self.lane.latency)  # stages from the fetch to the end of the lane that hold a chunk
        self.in_flight = Signal(range(IN_FLIGHT + 1))
        super().__init__(
            {
                "i": In(stream.Signature(AlignedLayout(params))),
                "o": Out(stream.Signature(AlignedLayout(params))),
                "fetch": Out(LineReadSignature(params.smem)),
                "written": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.fetches = self.fetches
        m.submodules.places = places = self.places
        m.submodules.results = results = self.results
        i, o, piece = self.i.p, self.o.p, self.i.p.piece

        reduces, covered, final = (Signal(name=name) for name in ("reduces", "covered", "final"))
        issued, combined, ends = (Signal(name=name) for name in ("issued", "combined", "ends"))
        chunk, end = Signal(4), piece.end[_CHUNK_LOG2:]
        m.d.comb += [
            reduces.eq((i.context.reduction != Reduction.NONE) & ~i.context.stage),
            chunk.eq(Mux(self.started, self.following, piece.first[_CHUNK_LOG2:])),
            covered.eq(chunk == end),
            final.eq(chunk + 1 == end),
            issued.eq(self.fetches.i.valid & self.fetches.i.ready),
            combined.eq(results.o.valid & self.o.ready),
            ends.eq(piece.last & covered & (self.in_flight == 0)),
        ]
        self._fetch(m, reduces & ~covered, chunk, issued)
        self._combine(m)

        taken = self.i.valid & self.i.ready
        m.d.sync += self.in_flight.eq(self.in_flight + issued - combined)
        with m.If(issued):
            m.d.sync += [self.started.eq(1), self.following.eq(chunk + 1)]
        with m.If(taken):
            m.d.sync += self.started.eq(0)
        with m.If(taken & piece.last):
            m.d.sync += self.begun.eq(0)
        with m.Elif(self.i.valid & reduces & self.written):
            m.d.sync += self.begun.eq(1)

        m.d.comb += [o.eq(i), results.o.ready.eq(self.o.ready), places.o.ready.eq(combined)]
        with m.If(results.o.valid):
            # Of chunks of different pieces, so nothing here depends on what is at the input.
            first = places.o.p[:3] << _CHUNK_LOG2
            m.d.comb += [
                o.eq(0),
                o.word.eq(results.o.p.replicate(self._params.bus_bytes // CHUNK_BYTES)),
                o.piece.line.eq(places.o.p[3:]),
                *(start.eq(first) for start in (o.piece.first, o.piece.data_first)),
                *(stop.eq(first + CHUNK_BYTES) for stop in (o.piece.end, o.piece.data_end)),
                self.o.valid.eq(1),
            ]
        with m.Elif(reduces):
            m.d.comb += [o.piece[name].eq(0) for name in ("first", "end", "data_first", "data_end")]
            m.d.comb += self.o.valid.eq(self.i.valid & ends)
        with m.Else():
            m.d.comb += self.o.valid.eq(self.i.valid)
        m.d.comb += self.i.ready.eq(
            Mux(reduces, Mux(piece.last, ends & self.o.ready, covered | (issued & final)), self.o.ready)
        )
        return m

    def _fetch(self, m, wanted, chunk, issued):
        """Chunks of the piece, one after the other, to the port."""
        i, fetches, places = self.i.p, self.fetches, self.places
        inner = range(self._params.bus_bytes // CHUNK_BYTES)
        sources = Array(i.word.word_select(k, CHUNK_BITS) for k in inner)
        m.d.comb += [
            fetches.i.valid.eq(self.i.valid & wanted & self.begun & (self.in_flight != IN_FLIGHT)),
            fetches.i.p.chunk.eq((i.piece.line << 3) + chunk),
            fetches.i.p.source.eq(sources[chunk[: (len(inner) - 1).bit_length()]]),
            fetches.i.p.reduction.eq(i.context.reduction),
            fetches.i.p.element.eq(i.context.element),
            places.i.p.eq(fetches.i.p.chunk),
            places.i.valid.eq(issued),
            self.fetch.rows.valid.eq(fetches.o.valid),
            self.fetch.rows.p.eq(fetches.o.p.chunk[3:]),
            fetches.o.ready.eq(self.fetch.rows.ready),
        ]

    def _combine(self, m):
        """What was fetched, through the lane. Nothing waits: there is space for whatever is in flight."""
        fetches, results = self.fetches, self.results
        m.submodules.lane = lane = self.lane
        asked, fetched = Signal.like(fetches.o.p), Signal.like(fetches.o.p)
        old = Signal(CHUNK_BITS)
        chunks = Array(self.fetch.line.word_select(bank, CHUNK_BITS) for bank in range(BANKS))
        m.d.sync += [
            asked.eq(fetches.o.p),
            fetched.eq(asked),
            old.eq(chunks[asked.chunk[:3]]),
            self.moving.eq(Cat(fetches.o.valid & fetches.o.ready, self.moving)),
        ]
        m.d.comb += [
            lane.enable.eq(1),
            lane.old.eq(old),
            *(getattr(lane, name).eq(fetched[name]) for name in ("source", "reduction", "element")),
            results.i.valid.eq(self.moving[-1]),
            results.i.p.eq(lane.o),
        ]


def _chunk(params):
    """Byte address >> 4."""
    return unsigned(params.smem.addr_width - _CHUNK_LOG2)
