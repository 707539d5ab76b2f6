"""F8: the parts of a line are as many pixels as lie before the tensor, inside and behind it."""

from itertools import pairwise

from amaranth import Const, Module, Mux, Signal, signed
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Value

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.line_parts import LineParts
from tilewright.sim.formal import prove

PARAMS = TMAU_PRESETS["unit"].replace(bus_bytes=32)
MOST = 1024
WIDE = signed(40)  # no sum or difference of positions overflows
#: Cycles from a start to the last part, and some: whatever a proof by induction begins with is over then.
CYCLES = 14


class LinePartsSpec(Elaboratable):
    """Counts the pixels of both lines of any walk by comparing positions, and keeps the walk from start to start."""

    def __init__(self):
        self.dut = LineParts(PARAMS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        walk, before = dut.walk, Signal.like(dut.walk)
        started, begun = Signal(), Signal()  # in the cycle before; at any time
        m.d.sync += [before.eq(walk), started.eq(dut.start), begun.eq(begun | dut.start)]
        turn = walk.turns[0]
        m.d.comb += [
            Assume(started | ~begun | (Value.cast(walk) == Value.cast(before))),
            # A line begins no later than it turns. A pixel is one byte: what is multiplied is what is counted.
            Assume((walk.starts[0] <= turn) & (walk.lows[0] <= turn)),
            Assume(walk.data_bytes == 1),
            Assert(~dut.first_done | (dut.bytes == walk.last + 1)),
            Assert(begun | ~(dut.measuring | dut.first_done | dut.others_done)),
        ]
        for done, parts, begin in (
            (dut.first_done, dut.first, walk.starts[0]),
            (dut.others_done, dut.others, walk.lows[0]),
        ):
            counts = self.count(m, begin, walk.sizes[0] + 1, turn + 1)
            for part, count in zip((parts.before, parts.inside, parts.behind), counts, strict=True):
                m.d.comb += Assert(~done | (part == count))
            m.d.comb += Cover(done & (parts.before == 3) & (parts.inside == 5) & (parts.behind == 7))
        return m

    @staticmethod
    def count(m, begin, size, end):
        """Pixels before the tensor, inside and behind it, of the first ``MOST`` pixels from ``begin`` to ``end``."""
        bounds = [Const(0, WIDE)]
        for place in (Const(0, WIDE), size, end):
            clamped, distance, within = Signal(WIDE), Signal(WIDE), Signal(WIDE)
            m.d.comb += [
                clamped.eq(Mux(place < begin, begin, Mux(place > end, end, place))),
                distance.eq(clamped - begin),
                within.eq(Mux(distance > MOST, MOST, distance)),
            ]
            bounds.append(within)
        return [after - first for first, after in pairwise(bounds)]


def test_parts_are_counts_of_pixels():
    spec = LinePartsSpec()
    prove(spec, [spec.dut.start, spec.dut.walk], name="line-parts", depth=CYCLES, proves="F8")


def test_lines_with_all_parts_are_reached():
    spec = LinePartsSpec()
    prove(spec, [spec.dut.start, spec.dut.walk], name="line-parts-cover", mode="cover", depth=CYCLES)
