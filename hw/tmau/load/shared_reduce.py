"""Reductions into shared memory, one bus word a cycle."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BANKS, CHUNK_BYTES, Reduction

from ...lib.stream import Queue, ShallowQueue, SkidBuffer
from ...reduce.floats import FloatSums, is_summed
from ...reduce.integer import IntegerReducer, decode_operation, reduce_integers
from ...smem.layouts import CHUNK_BITS
from ...smem.signatures import LineReadSignature
from .layouts import AlignedLayout

__all__ = ["IN_FLIGHT", "SharedReducer"]

#: Parts in flight, from the fetch of their old value until they leave: more than the latency in cycles.
IN_FLIGHT = 16
_CHUNK_LOG2 = CHUNK_BYTES.bit_length() - 1


class _FetchLayout(data.StructLayout):
    """A row to fetch."""

    def __init__(self, params):
        super().__init__(
            {"row": unsigned(params.smem.row_width), "first": unsigned(3)}
        )  # first chunk of the part in it


class _PlaceLayout(data.StructLayout):
    """Destination of a part, or the end of a transfer that ends without a part."""

    def __init__(self, params):
        super().__init__(
            {
                "part": unsigned(1),
                "row": unsigned(params.smem.row_width),
                "first": unsigned(3),  # chunk in the row
                "end": unsigned(4),  # equal to ``first`` without a part
                "last": unsigned(1),  # of the transfer
            }
        )


class SharedReducer(wiring.Component):
    """Forwards pieces; combines the pieces of reductions with the contents of shared memory, part by part.

    Pieces of reductions consist of whole chunks of sixteen bytes, without fill. A *part* is the portion of a piece in
    one line, for floats a single chunk, because there are adders for one. Each part leaves as a piece of its own. A
    transfer contains no chunk twice, so its parts do not wait for each other. The first part is fetched when everything
    that left before has been written. A transfer that follows another one with the same operation need not wait, as
    long as it fetches none of the other's rows; it ends after the other one has been written. Other pieces pass
    combinationally when all reductions have left.

    Latency: 6 cycles from a part to its result, 10 for sums of floats. Throughput: one part a cycle.
    """

    def __init__(self, params):
        self._params = params
        self._word_chunks = params.bus_bytes // CHUNK_BYTES
        row = unsigned(params.smem.row_width)
        self.fetches = SkidBuffer(_FetchLayout(params))
        self.places = Queue(_PlaceLayout(params), IN_FLIGHT)
        self.sources = ShallowQueue(unsigned(params.bus_width), IN_FLIGHT)
        self.results = ShallowQueue(unsigned(params.bus_width), IN_FLIGHT)
        self.floats = params.has("reductions_float")
        self.started = Signal()  # a part of the current piece has been issued
        # First chunk of the next part, counted from the start of the piece's line. Without floats always the next line.
        self.following = Signal(4) if self.floats else Const(BANKS, 4)
        # Of all parts in flight.
        self.operation = Signal(data.StructLayout({"reduction": unsigned(4), "element": unsigned(4)}))
        self.begun = Signal()  # of the transfer at the input: everything that left before is written
        self.rows = Signal(
            data.StructLayout({"first": row, "last": row, "any": unsigned(1)})
        )  # of the transfer at the input: rows that it has fetched
        self.older = Signal()  # the previous transfer is a reduction, and is not yet known to be written
        # Pieces that begin in a line from ``below`` to ``last`` may reach rows of that transfer.
        self.older_rows = Signal(data.StructLayout({"below": row, "last": row}))
        self.ending = Signal()  # the end of that transfer has not left; it has the context of ``ended``
        aligned = AlignedLayout(params)
        self.ended = Signal(data.StructLayout({name: aligned[name].shape for name in ("context", "error", "address")}))
        self.since = Signal(2)  # pieces that have left since
        self.moving = Signal(2 + IntegerReducer.LATENCY)  # stages from the fetch on that hold a part
        self.adding = Signal(FloatSums.LATENCY - IntegerReducer.LATENCY)  # further stages of sums of floats
        super().__init__(
            {
                # ``ready`` depends combinationally on ``o.ready`` except for reductions.
                "i": In(stream.Signature(AlignedLayout(params))),
                "o": Out(stream.Signature(AlignedLayout(params))),
                "fetch": Out(LineReadSignature(params.smem)),  # Rows of parts, read in the cycle of the handshake.
                # Everything that has left is written. At most two pieces that have left are not (in LoadPath one).
                "written": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.fetches = self.fetches
        m.submodules.places = places = self.places
        m.submodules.sources = self.sources
        m.submodules.results = results = self.results
        reduces, left = Signal(), Signal()
        m.d.comb += [
            reduces.eq((self.i.payload.context.reduction != Reduction.NONE) & ~self.i.payload.context.stage),
            left.eq(self.o.valid & self.o.ready),
        ]
        ends = self._issue(m, reduces)
        self._follow(m, reduces, ends, left)
        self._combine(m)

        head, o, part = places.o.payload, self.o.payload, places.o.payload.part
        m.d.comb += [
            places.o.ready.eq(self.o.ready & (~part | results.o.valid)),
            results.o.ready.eq(self.o.ready & places.o.valid & part),
        ]
        with m.If(places.o.valid):
            m.d.comb += [
                # The output of an empty queue can change, so it is masked without a part.
                o.word.eq(results.o.payload & part.replicate(len(o.word))),
                o.piece.line.eq(head.row),
                *(start.eq(head.first << _CHUNK_LOG2) for start in (o.piece.first, o.piece.data_first)),
                *(stop.eq(head.end << _CHUNK_LOG2) for stop in (o.piece.end, o.piece.data_end)),
                *(chunks.whole.eq((1 << head.first) - 1) for chunks in (o.chunks.first, o.chunks.data_first)),
                *(chunks.whole.eq((1 << head.end) - 1) for chunks in (o.chunks.end, o.chunks.data_end)),
                o.piece.last.eq(head.last),
                self.o.valid.eq(~part | results.o.valid),
            ]
            with m.If(head.last):
                m.d.comb += [o[name].eq(self.ended[name]) for name, _ in self.ended.shape()]
        with m.Else():
            m.d.comb += [o.eq(self.i.payload), self.o.valid.eq(self.i.valid & ~reduces)]
            with m.If(~reduces):
                m.d.comb += self.i.ready.eq(self.o.ready)
        return m

    def _issue(self, m, reduces):
        """Issues the parts of the piece at the input one by one; returns whether the transfer ends now."""
        i, piece, fetches, places = self.i.payload, self.i.payload.piece, self.fetches, self.places
        first, end, stop = Signal(4), piece.end[_CHUNK_LOG2:], Signal(4)
        narrow, covered, final, may_fetch = (Signal(name=name) for name in ("narrow", "covered", "final", "may_fetch"))
        may_take, takes, ends = Signal(), Signal(), Signal()
        row = (piece.line + first[3])[: self._params.smem.row_width]
        older, operation = self.older_rows, self.operation
        m.d.comb += [
            narrow.eq(self._is_float(i.context.element)),
            first.eq(Mux(self.started, self.following, piece.first[_CHUNK_LOG2:])),
            stop.eq(Mux(narrow, first + 1, Mux(~first[3] & end[3], BANKS, end))),
            # The last part of the piece. Few LUTs, because this is on the critical path.
            covered.eq(~self.started & (piece.first[_CHUNK_LOG2:] == end)),
            final.eq((covered | (stop == end)) if self.floats else (self.started | ~end[3] | (end == BANKS))),
            may_fetch.eq(
                self.begun
                | (
                    self.older
                    & ((piece.line < older.below) | (piece.line > older.last))
                    & (operation.reduction == i.context.reduction)
                    & (operation.element == i.context.element)
                )
            ),
            ends.eq(takes & final & piece.last),
            may_take.eq(
                places.i.ready & (covered | (may_fetch & fetches.i.ready)) & (~(final & piece.last) | self.begun)
            ),
            takes.eq(self.i.valid & reduces & may_take),
            fetches.i.valid.eq(takes & ~covered),
            fetches.i.payload.row.eq(row),
            fetches.i.payload.first.eq(first),
            places.i.valid.eq(takes & (~covered | piece.last)),
            places.i.payload.part.eq(~covered),
            places.i.payload.row.eq(row),
            places.i.payload.first.eq(first),
            places.i.payload.end.eq(Mux(covered, first[:3], Mux(stop == BANKS, BANKS, stop[:3]))),
            places.i.payload.last.eq(ends),
            self.sources.i.valid.eq(fetches.i.valid),
            self.sources.i.payload.eq(i.word),
            self.fetch.rows.valid.eq(fetches.o.valid),
            self.fetch.rows.payload.eq(fetches.o.payload.row),
            fetches.o.ready.eq(self.fetch.rows.ready),
        ]
        with m.If(reduces):
            m.d.comb += self.i.ready.eq(may_take & final)
        with m.If(takes):
            m.d.sync += self.started.eq(~final)
            if self.floats:
                m.d.sync += self.following.eq(stop)
        with m.If(fetches.i.valid):
            m.d.sync += [
                operation.reduction.eq(i.context.reduction),
                operation.element.eq(i.context.element),
                self.rows.last.eq(row),
                self.rows.any.eq(1),
            ]
            with m.If(~self.rows.any):
                m.d.sync += self.rows.first.eq(row)
        began = Mux(self.rows.any, self.rows.first, row)
        with m.If(ends):
            m.d.sync += [
                self.rows.any.eq(0),
                older.below.eq(Mux(began == 0, 0, began - 1)),
                older.last.eq(Mux(covered, self.rows.last, row)),
            ]
        # Loaded until an end is found, because that is known late.
        with m.If(~self.ending):
            m.d.sync += [self.ended[name].eq(i[name]) for name, _ in self.ended.shape()]
        return ends

    def _follow(self, m, reduces, ends, left):
        """Follows whether earlier transfers have been written."""
        ended = self.ending & left & self.o.payload.piece.last
        settled = self.older & ~self.ending & (self.written | self.since.all())
        with m.If(ended):
            m.d.sync += [self.ending.eq(0), self.since.eq(0)]
        with m.Elif(left & ~self.since.all()):
            m.d.sync += self.since.eq(self.since + 1)
        with m.If(ends):
            m.d.sync += [self.begun.eq(0), self.older.eq(1), self.ending.eq(1)]
        with m.Elif(self.i.valid & self.i.ready & ~reduces):
            m.d.sync += [self.begun.eq(0), self.older.eq(0)]
        with m.Elif(settled):
            m.d.sync += [self.begun.eq(1), self.older.eq(0)]
        with m.Elif(self.i.valid & reduces & ~self.older & self.written):
            m.d.sync += self.begun.eq(1)

    def _combine(self, m):
        """Combines the fetched chunks with the words. Nothing stalls: ``results`` has space for all parts in flight."""
        fetches, sources, results, operation = self.fetches, self.sources, self.results, self.operation
        count, inner = self._word_chunks, (self._word_chunks - 1).bit_length()
        narrow, adds = Signal(), Signal()
        asked, old, source = Signal(3), Signal(self._params.bus_width), Signal(self._params.bus_width)
        lines = [self.fetch.line.word_select(bank, CHUNK_BITS) for bank in range(BANKS)]
        words = [sources.o.payload.word_select(place, CHUNK_BITS) for place in range(count)]
        m.d.comb += [
            narrow.eq(self._is_float(operation.element)),
            adds.eq(narrow & (operation.reduction == Reduction.ADD)),
            sources.o.ready.eq(self.moving[0]),
        ]
        m.d.sync += [
            asked.eq(fetches.o.payload.first),
            self.moving.eq(Cat(fetches.o.valid & fetches.o.ready, self.moving)),
            self.adding.eq(Cat(self.moving[-1] & adds, self.adding)),
        ]
        # Each chunk of the word gets the next chunk of the line that belongs to its place.
        made = []
        for place in range(count):
            segment = (asked[inner:] + (asked[:inner] > place))[: 3 - inner]
            chunk, low, new_chunk = Array(lines[place::count])[segment], CHUNK_BITS * place, words[place]
            if place == 0:
                chunk = Array(lines)[Mux(narrow, asked, segment << inner)]
                new_chunk = Mux(narrow, Array(words)[asked[:inner]], new_chunk)
            here, there = old[low : low + CHUNK_BITS], source[low : low + CHUNK_BITS]
            m.d.sync += [here.eq(chunk), there.eq(new_chunk)]
            operands = {"old": here, "source": there, "enable": 1}
            floats = self.floats and place == 0
            # The operation is there with the fetch, two cycles before its line.
            decoded = decode_operation(m, operation.reduction, operation.element, floats, f"decoded{place}")
            settled = Signal.like(decoded, name=f"settled{place}")
            m.d.sync += settled.eq(decoded)
            made.append(reduce_integers(m, f"integer{place}_", floats, operation=settled, **operands))
        alone = made[0]
        if self.floats:
            m.submodules.sums = sums = FloatSums()
            m.d.comb += [
                sums.old.eq(old[:CHUNK_BITS]),
                sums.source.eq(source[:CHUNK_BITS]),
                sums.element.eq(operation.element),
                sums.enable.eq(1),
            ]
            alone = Mux(adds, sums.o, alone)
        m.d.comb += [
            results.i.valid.eq(Mux(adds, self.adding[-1], self.moving[-1])),
            results.i.payload.eq(Cat(alone, *(Mux(narrow, alone, other) for other in made[1:]))),
        ]

    def _is_float(self, element):
        return is_summed(element) if self.floats else 0
