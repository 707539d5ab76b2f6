"""What leaves the translator lies where a valid, loaded page on chip says, or has a code; and no access is kept waiting
but for a page; in a core that is stopped not for that either."""

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal, Value, unsigned
from amaranth.lib.data import StructLayout, View

from support.formal import Spec
from tilewright.hw.pe.address.translate import PageLayout, Translator, page_start
from tilewright.hw.pe.layouts import AccessKind
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.spec import Swizzle
from tilewright.spec.pe import PeError
from tilewright.verify.formal import prove

PARAMS = PE_PRESETS["unit"]
#: An access takes two cycles.
PACED = PARAMS.replace(smem=PARAMS.smem.replace(chunks_a_cycle=4))
_CHUNKS = 1 << PARAMS.chunk_width
#: An entry as it is written.
_ENTRY = StructLayout({"chunk": 28, "valid": 1, "loaded": 1, "on_chip": 1})


class TranslatorSpec(Spec):
    """Follows every access through the two stages, and any one page, whose entry does not change, through the cache.

    What leaves is judged lane by lane, as the solver is faster with one than with eight.
    """

    given, made = "i", "o lookups"

    def __init__(self, lane, cores, params=PARAMS):
        self.lane, self.cores = lane, cores
        self.dut = Translator(params, cores)
        self.number = AnyConst(PARAMS.page_width)
        self.page = AnyConst(_ENTRY.size)
        # Of the lane at the output: its page as it was known.
        self.known = Signal.like(self.dut.pages[lane])

    def specify(self, m, dut):
        page, stored = View(_ENTRY, self.page), Signal(PageLayout(PARAMS))
        m.d.comb += [stored[name].eq(value) for name, value in page_start(PARAMS, page.chunk).items()]
        m.d.comb += [stored[name].eq(page[name]) for name in ("valid", "loaded", "on_chip")]

        # The table answers in the next cycle.
        asked, answers = Signal(unsigned(PARAMS.page_width)), Signal()
        m.d.sync += answers.eq(dut.lookups.valid & dut.lookups.ready)
        m.d.sync += asked.eq(dut.lookups.payload)
        m.d.comb += Assume(~(answers & (asked == self.number)) | (dut.page == stored))

        # An access in the middle, and one at the output.
        middle, out = Signal.like(dut.i.payload), Signal.like(dut.i.payload)
        at_output = Signal()
        accepted, leaves = dut.i.valid & dut.i.ready, dut.leaves
        with m.If(accepted):
            m.d.sync += middle.eq(dut.i.payload)
        with m.If(leaves):
            known = dut.pages[self.lane]
            m.d.sync += [out.eq(middle), at_output.eq(1), self.known.eq(known)]
        with m.Elif(dut.o.ready):
            m.d.sync += at_output.eq(0)
        m.d.comb += [
            Assert(dut.o.valid == at_output),
            Assert(~dut.valid | (Value.cast(dut.access) == Value.cast(middle))),
            # Only a page that is missing, or the sink, keeps an access waiting; or the one before, in turns.
            Assert(dut.i.ready | dut.missing.any() | (dut.valid if dut.params.paced else dut.o.valid & ~dut.o.ready)),
        ]
        if self.cores > 1:
            # No lane waits for a page of which the table has told while the core was stopped.
            told, lanes = Signal(), Signal(LANES)
            m.d.sync += [told.eq(answers & dut.stopped), lanes.eq(dut.matching)]
            m.d.comb += Assert(~told | ~(dut.missing & lanes).any())
        self.judge_cache(m, page)
        self.judge_middle(m, page, middle, asked, answers)
        with m.If(dut.o.valid):
            self.judge_lane(m, page, out)
        first, second = dut.o.payload.codes[0], dut.o.payload.codes[1]
        enabled = dut.o.payload.access.lanes[0].enable
        m.d.comb += [
            Cover(dut.o.valid & enabled & out.paged & (first == 0) & (second == PeError.UNMAPPED)),
            Cover(dut.o.valid & enabled & out.paged & (first == PeError.MEMORY) & (second == PeError.OFF_CHIP)),
            Cover(dut.hit & dut.o.valid),
        ]

    def judge_cache(self, m, page):
        """The cache holds the page only with its true contents, and not while it must be waited for."""
        cache = self.dut.cache
        for present, tag, stored in zip(cache.present, cache.tags, cache.entries, strict=True):
            m.d.comb += Assert(~(present & (tag == self.number)) | self.is_page(page, stored, 1))

    def judge_middle(self, m, page, middle, asked, answers):
        """Known pages, and the pending look-up."""
        dut = self.dut
        m.d.comb += Assert(dut.answering == answers)
        m.d.comb += Assert(~answers | (dut.valid & (dut.requested == asked) & dut.matching.any()))
        m.d.comb += Assert(dut.valid | (dut.missing == 0))
        for number, lane in enumerate(middle.lanes):
            missing, wanted = dut.missing[number], self.wanted(middle, lane) & middle.paged
            m.d.comb += Assert(~missing | wanted)
            m.d.comb += Assert(~(answers & dut.matching[number]) | (missing & (lane.entry == asked)))
        lane, known = middle.lanes[self.lane], dut.pages[self.lane]
        ours = ~dut.missing[self.lane] & self.wanted(middle, lane) & (lane.entry == self.number)
        with m.If(dut.valid & middle.paged):
            m.d.comb += Assert(~ours | self.is_page(page, known, self.cores))
        with m.Elif(dut.valid):
            m.d.comb += Assert(begins(known, middle.base) & (known.code == 0))

    @staticmethod
    def wanted(access, lane):
        reads = (access.kind != AccessKind.PICK) & (access.kind != AccessKind.NOTHING)
        return lane.enable & (lane.code == 0) & reads

    @staticmethod
    def is_page(page, known, cores):
        """What is known is the page. Of a core of a cluster that was stopped it may be one that is not loaded."""
        away, is_known = ~page.on_chip, ~page.valid | page.loaded
        if cores > 1:
            away, is_known = away | ~page.loaded, 1
        code = Mux(~page.valid, PeError.UNMAPPED, Mux(away, PeError.OFF_CHIP, PeError.NONE))
        return is_known & begins(known, page.chunk) & (known.code == code)

    def judge_lane(self, m, page, access):
        """The lane at the output: in memory, where the page says, or with the right code."""
        lane, target = access.lanes[self.lane], self.dut.o.payload.access.lanes[self.lane]
        code, known, address = self.dut.o.payload.codes[self.lane], self.known, Signal(28)
        wanted = self.wanted(access, lane)
        m.d.comb += address.eq(Mux(access.paged, page.chunk, access.base) + (lane.offset >> 4))
        m.d.comb += [Assert(target.enable == lane.enable), Assert(wanted | (code == lane.code))]
        with m.If(wanted & (~access.paged | (lane.entry == self.number))):
            swizzled = address
            for bit in range(Swizzle.B128):
                swizzled = swizzled ^ (((access.swizzle > bit) & address[3 + bit]) << bit)
            beyond = Mux(address < _CHUNKS, PeError.NONE, PeError.MEMORY)
            m.d.comb += [
                Assert(~access.paged | self.is_page(page, known, self.cores)),
                Assert(access.paged | (begins(known, access.base) & (known.code == 0))),
                Assert(code == Mux(known.code != 0, known.code, beyond)),
                Assert((code != 0) | ((target.chunk == swizzled) & (target.byte == lane.offset[:4]))),
            ]


def begins(known, chunk):
    return Cat(known[name] == value for name, value in page_start(PARAMS, chunk).items()).all()


# Lanes differ only in the order in which their pages are asked for: one between the others, the first, and the last.
@pytest.mark.long
@pytest.mark.parametrize(("lane", "cores"), [(0, 1), (4, 1), (LANES - 1, 1), (4, 2)])
def test_lanes_are_translated_or_have_a_code(lane, cores):
    prove(TranslatorSpec(lane, cores), name=f"translate-{lane}-{cores}", depth=1)


@pytest.mark.long
def test_lanes_are_translated_in_turn():
    prove(TranslatorSpec(4, 1, PACED), name="translate-paced", depth=1)


@pytest.mark.long
def test_codes_and_hits_are_reached():
    prove(TranslatorSpec(0, 1), name="translate-cover", mode="cover", depth=10)
