"""F6: every step that has a place comes out once, in order, in the cycle in which what it asked for is taken."""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Signal

from support.formal import Spec
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.segments import ENTRIES, SegmentFetcher
from tilewright.verify.formal import prove, queue_invariants


class SegmentFetchSpec(Spec):
    """Counts the places behind the fetcher. Its two queues keep the order (F1): what is proved is that they agree."""

    given, made = "steps", "fetch.rows"

    def __init__(self, bus_bytes=16, prefer_bram=False):
        self.dut = SegmentFetcher(TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes, prefer_bram=prefer_bram))

    def specify(self, m, dut):
        asked, waiting = dut.requests, dut.waiting
        started = dut.steps.valid & dut.steps.ready
        turn = asked.o.valid & asked.o.ready
        collected = waiting.o.valid & waiting.o.ready

        step = dut.steps.payload
        needed = step.cut.fetch & ~step.stage & ~step.immediate & ~(step.again & dut.holds_line)
        due = Signal()  # the oldest step had its turn in the cycle before
        out = Signal(range(ENTRIES + 1))  # places of steps that came out in earlier cycles
        comes = dut.o.valid & (dut.o.payload.word | dut.o.payload.last)
        m.d.sync += [due.eq(turn), out.eq(out + comes - dut.left)]
        m.d.comb += [
            Assume(~dut.left | (out != 0)),
            Assert(dut.used <= ENTRIES),
            Assert(dut.used == waiting.level + comes + out),
            # Whatever takes a place gets into both queues, and leaves the second one a cycle after the first one.
            Assert(~started | (asked.i.ready & waiting.i.ready)),
            Assert(waiting.level == asked.level + due),
            *queue_invariants(asked),
            *queue_invariants(waiting),
            Assert(collected == due),
            Assert(~started | (asked.i.payload.shared == needed)),
            # Shared memory is asked if, and only if, the step needs it; nothing else is waited for.
            Assert((dut.fetch.rows.valid & dut.fetch.rows.ready) == (turn & asked.o.payload.shared)),
            Assert(turn == (asked.o.valid & (dut.fetch.rows.ready | ~asked.o.payload.shared))),
            Assert(dut.fetch.rows.payload == asked.o.payload.row),
            Assert(~dut.staged.ready | due),
            Assert(~dut.read_stb | due),
        ]
        came = Signal()
        m.d.sync += came.eq(collected)
        m.d.comb += Assert(dut.o.valid == came)

        was_full = Signal()
        with m.If(dut.used == ENTRIES):
            m.d.sync += was_full.eq(1)
        m.d.comb += Cover(was_full & (dut.used == 0))
        m.d.comb += Cover((waiting.level == ENTRIES) & ~due)


@pytest.mark.parametrize(("bus_bytes", "prefer_bram"), [(16, False), (64, False), (64, True)])
def test_entries_are_enough(bus_bytes, prefer_bram):
    prove(
        SegmentFetchSpec(bus_bytes, prefer_bram),
        name=f"store-segment-fetch-{bus_bytes}-{prefer_bram}".lower(),
        depth=2,
        proves="F6",
    )


@pytest.mark.long
def test_all_entries_are_used():
    prove(SegmentFetchSpec(), name="store-segment-fetch-cover", mode="cover", depth=24)
