"""Every run leaves once, to the path that it is for, as it came and in order; what is offered holds."""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Mux, Signal, Value

from support.formal import Spec, proved_and_covered
from tilewright.hw.tmau.layouts import BoxRunLayout, StoreRunLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.requests import RequestGenerator, RunRouter
from tilewright.verify.formal import prove

PARAMS = TMAU_PRESETS["unit"].replace(addr_width=16)


class RunRouterSpec(Spec):
    """Keeps the runs that have come and not left: at most two."""

    given, made = "tiles pixels", "loads stores"

    def specify(self, m, dut):
        tile, pixel, load, store = (p.valid & p.ready for p in (dut.tiles, dut.pixels, dut.loads, dut.stores))
        given = Mux(dut.tiles.valid, Value.cast(dut.tiles.payload), Value.cast(dut.pixels.payload))

        first, second = Signal(BoxRunLayout(PARAMS)), Signal(BoxRunLayout(PARAMS))
        held = Signal(range(3))
        comes, leaves = tile | pixel, load | store
        m.d.sync += held.eq(held + comes - leaves)
        with m.If(leaves):
            m.d.sync += first.eq(second)
        with m.If(comes):
            with m.If(held == leaves):
                m.d.sync += Value.cast(first).eq(given)
            with m.Else():
                m.d.sync += Value.cast(second).eq(given)

        m.d.comb += [
            Assume(~(dut.tiles.valid & dut.pixels.valid)),
            Assert(held <= 2),
            Assert(dut.loads.valid == ((held != 0) & ~first.store)),
            Assert(dut.stores.valid == ((held != 0) & first.store)),
            Assert(~dut.loads.valid | (Value.cast(dut.loads.payload) == Value.cast(first))),
            # A run is taken while there is space, whatever becomes of those before it.
            Assert(comes == ((dut.tiles.valid | dut.pixels.valid) & (held != 2))),
        ]
        for name, _ in StoreRunLayout(PARAMS):
            m.d.comb += Assert(~dut.stores.valid | (dut.stores.payload[name] == first[name]))
        buffer = dut.buffer
        m.d.comb += [
            Assert((held != 0) == buffer.o.valid),
            Assert((held == 2) == buffer.skidded),
            Assert((held == 0) | (Value.cast(buffer.o.payload) == Value.cast(first))),
            Assert((held != 2) | (Value.cast(buffer.skid) == Value.cast(second))),
        ]
        m.d.comb += [Cover(source & sink & (held == 1)) for source in (tile, pixel) for sink in (load, store)]
        m.d.comb += Cover(held == 2)


@proved_and_covered(2, 4)
def test_every_run_goes_to_its_path(mode, depth):
    prove(RunRouterSpec(RunRouter(PARAMS)), name=f"run-router-{mode}", mode=mode, depth=depth)


REQUESTS_PARAMS = TMAU_PRESETS["unit"].replace(bus_bytes=32)  # with folded pixels


class RequestsSpec(Spec):
    """Notes what the run at the input has already sent."""

    given, made = "i", "rows"

    def __init__(self):
        self.dut = RequestGenerator(REQUESTS_PARAMS)
        self.word = AnyConst(REQUESTS_PARAMS.word_width)  # any bus word: what holds for it holds for all

    def specify(self, m, dut):
        run, row, request = dut.i.payload, dut.rows.payload, dut.requests.payload
        sends_row = dut.rows.valid & dut.rows.ready
        asks = dut.requests.valid & dut.requests.ready
        leaves = dut.i.valid & dut.i.ready
        m.d.comb += Assume((run.bytes != 0) & (run.bytes <= REQUESTS_PARAMS.smem.size_bytes))

        has_row = Signal()
        m.d.sync += has_row.eq((has_row | sends_row) & ~leaves)
        # The last word of the inside run before this one, if that is of the same transfer.
        before, before_valid = Signal(REQUESTS_PARAMS.word_width), Signal()
        words = Signal(len(request.beyond) + 1)
        offset, first = run.address[: REQUESTS_PARAMS.bus_log2], run.address[REQUESTS_PARAMS.bus_log2 :]
        m.d.comb += words.eq(((offset + run.bytes - 1) >> REQUESTS_PARAMS.bus_log2) + 1)
        needed = run.inside & ~run.loop & (words != row.shared)
        m.d.comb += [
            Assert(dut.rows.valid == (dut.i.valid & ~has_row)),
            Assert(~has_row | dut.i.valid),
            Assert(~leaves | sends_row | has_row),
            Assert(~asks | leaves),
            Assert(before_valid == dut.previous_valid),
            Assert(~before_valid | (before == dut.previous)),
            Assert(~(leaves & needed) | asks),
            Assert(~dut.requests.valid | (dut.i.valid & needed & (sends_row | has_row))),
            # Two neighbours that are ready make nothing wait.
            Assert(leaves | ~(dut.i.valid & dut.rows.ready & dut.requests.ready)),
            # What has no words of memory does not wait for requests.
            Assert(leaves | ~(dut.i.valid & (has_row | dut.rows.ready) & (~run.inside | run.loop))),
        ]
        with m.If(leaves):
            with m.If(run.inside):
                m.d.sync += [before_valid.eq(1), before.eq(first + words - 1)]
            with m.If(run.last):
                m.d.sync += before_valid.eq(0)
        with m.If(dut.rows.valid):
            m.d.comb += [
                *(Assert(row[name] == run[name]) for name in ("inside", "skip", "last", "folded", "bytes")),
                Assert(row.offset == offset),
                Assert(row.shared == (run.inside & ~run.loop & before_valid & (first == before))),
            ]
        with m.If(dut.requests.valid):
            m.d.comb += Assert(request.word == (first + row.shared)[: REQUESTS_PARAMS.word_width])
            m.d.comb += Assert(request.beyond == words - row.shared - 1)
            # Bytes of the run from its first to the first of the word, if it is asked for and not the run's first.
            ahead = Signal(REQUESTS_PARAMS.addr_width)
            m.d.comb += ahead.eq((self.word << REQUESTS_PARAMS.bus_log2) - run.address)
            asked = (self.word - request.word)[: REQUESTS_PARAMS.word_width] <= request.beyond
            holds = (self.word == first) | (ahead < run.bytes)
            m.d.comb += Assert(~asked | (run.inside & ~run.loop & holds))
        m.d.comb += Cover(leaves & row.shared & ~needed)
        m.d.comb += Cover(asks & row.shared & has_row)


@proved_and_covered(2, 6)
def test_rows_and_requests(mode, depth):
    prove(RequestsSpec(), name=f"requests-{mode}", mode=mode, depth=depth, proves="F6 F7 F11")
