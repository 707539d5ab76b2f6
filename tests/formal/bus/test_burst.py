"""F4: bursts never cross a page and are never longer than allowed; together they are the range, each word once."""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Signal

from tilewright.golden.spec import PAGE_BYTES
from tilewright.hw.bus.burst import BurstSplitter
from tilewright.sim.formal import StreamRules, prove


class BurstSpec(Elaboratable):
    def __init__(self, *, word_width, count_width, bus_bytes, max_burst):
        self.page = PAGE_BYTES // bus_bytes
        self.max_burst = max_burst
        self.dut = BurstSplitter(
            word_width=word_width, count_width=count_width, bus_bytes=bus_bytes, max_burst=max_burst
        )

    @property
    def ports(self):
        return [self.dut.i.valid, self.dut.i.payload, self.dut.o.ready]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        m.submodules.o_rules = StreamRules(dut.o)
        whole, burst = dut.i.payload, dut.o.payload
        m.d.comb += Assume(whole.count != 0)

        beats = burst.beats_minus_one + 1
        asked = Signal.like(whole.count)  # words of the range that earlier bursts have asked for
        word = Signal.like(whole.word)
        m.d.comb += word.eq(whole.word + asked)
        with m.If(dut.o.valid & dut.o.ready):
            m.d.sync += asked.eq(asked + beats)
            with m.If(dut.i.ready):
                m.d.sync += asked.eq(0)

        end = burst.word % self.page + beats
        final = asked + beats == whole.count
        with m.If(dut.o.valid):
            m.d.comb += [
                Assert(end <= self.page),
                Assert(beats <= self.max_burst),
                # As few as possible: each is cut short by one of three reasons only.
                Assert((beats == self.max_burst) | (end == self.page) | final),
                Assert(burst.word == word),
                Assert(asked + beats <= whole.count),
                Assert(dut.i.ready == (dut.o.ready & final)),
                Assert(dut.last == final),
            ]
        m.d.comb += Assert(dut.o.valid == dut.i.valid)

        # Invariant: the register holds the rest of the range that waits at the input.
        m.d.comb += Assert(dut.left == (asked != 0))
        with m.If(dut.left):
            m.d.comb += Assert(dut.i.valid & (dut.rest.word == word) & (dut.rest.count == whole.count - asked))
        m.d.comb += Assert((asked < whole.count) | ~dut.left)

        m.d.comb += Cover(dut.o.valid & (asked != 0) & (burst.word % self.page == 0))
        m.d.comb += Cover(dut.i.valid & dut.i.ready & (asked == 2 * self.max_burst))
        return m


SIZES = {
    "unit": {"word_width": 28, "count_width": 10, "bus_bytes": 16, "max_burst": 4},
    "default": {"word_width": 42, "count_width": 13, "bus_bytes": 64, "max_burst": 16},
    "full": {"word_width": 58, "count_width": 14, "bus_bytes": 64, "max_burst": 16},
    "single words": {"word_width": 28, "count_width": 10, "bus_bytes": 16, "max_burst": 1},
    "whole pages": {"word_width": 28, "count_width": 10, "bus_bytes": 16, "max_burst": 256},
}


@pytest.mark.parametrize("size", SIZES)
def test_bursts(size):
    spec = BurstSpec(**SIZES[size])
    prove(spec, spec.ports, name=f"bus-burst-{size.replace(' ', '-')}", depth=2, proves="F4")


def test_splits_are_reached():
    spec = BurstSpec(**SIZES["unit"])
    prove(spec, spec.ports, name="bus-burst-cover", mode="cover", depth=8)
