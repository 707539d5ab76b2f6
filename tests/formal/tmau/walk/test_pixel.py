"""F8, F11: ``last`` + 1 pixels follow the walk of docs/tmau.md, "Im2col mode", at the sums of its steps."""

import pytest
from amaranth.hdl import Array, Assert, Assume, Cover, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring

from support.formal import Spec, proved_and_covered
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.pixel import LineParts, PartsLayout, PixelWalker
from tilewright.verify.formal import prove

PARAMS = TMAU_PRESETS["unit"]
_WIDTH = PARAMS.addr_width


class PixelsSpec(Spec):
    """Makes the walk as the specification writes it down, and keeps position times stride by addition."""

    made = "o"

    def __init__(self):
        self.dut = PixelWalker(PARAMS)
        self.starts = [Signal(_WIDTH, name=f"start{k}") for k in range(3)]

    def specify(self, m, dut):
        arriving, run = dut.i.payload, dut.o.payload
        accepted = dut.i.valid & dut.i.ready
        steps = dut.o.valid & dut.o.ready
        # Origins belong together: bytes from ``low`` to the start of a dimension are in all origins inside it.
        for k in range(3):
            m.d.comb += Assume(arriving.origins[k] == (arriving.origins[k + 1] + self.starts[k])[:_WIDTH])

        walk = Signal.like(arriving)
        walking, left = Signal(), Signal(11)  # pixels from the one at the output on
        cur = Signal(data.ArrayLayout(signed(36), 3))
        n = Signal(signed(36))
        base = Signal(_WIDTH)
        terms = [Signal(_WIDTH, name=f"term{k}") for k in range(4)]

        with m.If(steps):
            m.d.sync += left.eq(left - 1)
            goes_on = 1  # "else": all dimensions so far have come to their end
            for k in range(3):
                moved = cur[k] + walk.steps[k] + 1
                breaks = moved < self.high(walk, k)
                with m.If(goes_on):
                    m.d.sync += cur[k].eq(Mux(breaks, moved, walk.lows[k]))
                    m.d.sync += terms[k].eq(Mux(breaks, terms[k] + walk.strides[k], 0))
                goes_on = goes_on & ~breaks
            with m.If(goes_on):
                m.d.sync += [n.eq(n + walk.steps[3] + 1), terms[3].eq(terms[3] + walk.strides[3])]
        with m.If(accepted | (steps & (left == 1))):
            m.d.sync += walking.eq(accepted)
        with m.If(accepted):
            m.d.sync += [walk.eq(arriving), left.eq(arriving.last + 1), n.eq(arriving.starts[3]), terms[3].eq(0)]
            m.d.sync += base.eq(arriving.origins[3])
            for k in range(3):
                m.d.sync += [cur[k].eq(arriving.starts[k]), terms[k].eq(self.starts[k])]
                # Where the command's coordinates and the descriptor's sizes can lead.
                m.d.comb += Assume(self.high(arriving, k) < 1 << 33)
            m.d.comb += Assume((arriving.starts[3] >= -(1 << 31)) & (arriving.starts[3] < 1 << 31))

        m.d.comb += [
            Assert(dut.o.valid == walking),
            Assert(dut.busy == walking),
            Assert(dut.i.ready == (~walking | (steps & (left == 1)))),
        ]
        with m.If(walking):
            inside = ~walk.outside & (n >= 0) & (n <= walk.sizes[3])
            for k in range(3):
                inside = inside & (cur[k] >= 0) & (cur[k] <= walk.sizes[k])
            m.d.comb += [
                Assert(run.last == (left == 1)),
                Assert(run.address == (base + sum(terms))[:_WIDTH]),
                Assert(run.inside == inside),
                Assert(run.bytes == walk.data_bytes),
                Assert((run.skip == 1) & (run.loop == 0) & (run.store == walk.store)),
            ]
            self.tie(m, walk, left, cur, n, base, terms)
        m.d.comb += Cover(walking & run.inside & (walk.last == 3) & (terms[1] != 0) & (n == 2) & (left == 1))

    @staticmethod
    def high(walk, k):
        """End of a round."""
        return walk.turns[k] + walk.steps[k] + 1

    def tie(self, m, walk, left, cur, n, base, terms):
        """What the registers of the device hold: makes the induction close."""
        dut = self.dut
        m.d.comb += [
            Assert((left >= 1) & (left <= 1024)),
            Assert(dut.walk.as_value() == walk.as_value()),
            Assert(dut.left == left - 1),
            Assert(dut.positions[3] == n),
            # No more than 1023 steps of 8 lead away from where the walk began.
            Assert((n >= -(1 << 31)) & (n <= (1 << 31) + 8 * (walk.last + 1 - left))),
            Assert(walk.last + 1 >= left),
        ]
        for k in range(3):
            m.d.comb += [
                Assert(dut.positions[k] == cur[k]),
                Assert(dut.ends[k] == (cur[k] >= walk.turns[k])),
                Assert(dut.single[k] == (walk.lows[k] >= walk.turns[k])),
                Assert(dut.nears[k] == walk.turns[k] - walk.steps[k] - 1),
                Assert(self.high(walk, k) < 1 << 33),
            ]
        for d, accumulator in enumerate(dut.address_generator.rounds):
            m.d.comb += Assert(accumulator == (base + sum(terms[d:]))[:_WIDTH])


@pytest.mark.long
@pytest.mark.parametrize(("mode", "depth"), [("prove", 2), ("cover", 7)])
def test_pixels_follow_the_walk(mode, depth):
    prove(PixelsSpec(), name=f"pixels-{mode}", mode=mode, depth=depth, proves="F8 F11")


PIXEL_LINES_PARAMS = TMAU_PRESETS["unit"].replace(addr_width=16, bus_bytes=32, smem=SmemParams(1 << 16))
BEFORE, INSIDE, BEHIND = range(3)


class AnyParts(wiring.Component):
    """Lines of any lengths, there at any time."""

    def __init__(self):
        super().__init__(LineParts(PIXEL_LINES_PARAMS).signature)

    def elaborate(self, platform):
        return Module()


class LinesSpec(Spec):
    """Follows the runs: which part of a line comes next, and how many bytes are left."""

    given, made = "i", "o"

    def __init__(self):
        self.dut = PixelWalker(PIXEL_LINES_PARAMS)
        self.dut.parts = self.parts = AnyParts()

    def specify(self, m, dut):
        parts, run = self.parts, dut.o.payload
        started = dut.i.valid & dut.i.ready
        steps = dut.o.valid & dut.o.ready
        self.assume(m)

        walking, left, fresh = Signal(), Signal.like(parts.bytes), Signal()  # ``fresh``: no run has left yet
        place, turned = Signal(range(4)), Signal()  # the line's next part, if it has one
        line, bytes_left = Signal(PartsLayout(PIXEL_LINES_PARAMS)), Signal.like(left)
        m.d.comb += [line.eq(Mux(turned, parts.others, parts.first)), bytes_left.eq(Mux(fresh, parts.bytes, left))]
        part, length, after = self.next_part(m, line, place, "now")
        ends, bytes_after, turned_after = Signal(), Signal.like(left), Signal()
        m.d.comb += [
            ends.eq(bytes_left <= length),
            bytes_after.eq(bytes_left - length),
            turned_after.eq(turned | (after == 0)),
        ]
        with m.If(steps):
            m.d.sync += [left.eq(bytes_after), fresh.eq(0), place.eq(after), turned.eq(turned_after)]
        with m.If(started | (steps & ends)):
            m.d.sync += walking.eq(started)
        with m.If(started):
            m.d.sync += [fresh.eq(1), place.eq(0), turned.eq(0)]

        m.d.comb += [
            Assert(dut.busy == walking),
            Assert(dut.i.ready == (~walking | (steps & ends))),
            Assert(walking | ~dut.o.valid),
        ]
        with m.If(dut.o.valid):
            m.d.comb += [
                Assert(run.bytes == Mux(ends, bytes_left, length)),
                Assert((run.bytes != 0) & (run.last == ends)),
                Assert(~run.inside | (part == INSIDE)),
                Assert((run.folded == 1) & (run.loop == 0)),
            ]
        # The device is ahead by the run at its output.
        later = Signal(range(4))
        later_line = Signal(PartsLayout(PIXEL_LINES_PARAMS))
        m.d.comb += [
            later.eq(Mux(dut.run_valid, after, place)),
            later_line.eq(Mux(Mux(dut.run_valid, turned_after, turned), parts.others, parts.first)),
        ]
        later_part, _, _ = self.next_part(m, later_line, later, "later")
        at_line = Value.cast(dut.part) == 0
        m.d.comb += Assert(~walking | dut.walk.folds)
        with m.If(walking):
            m.d.comb += [
                Assert(dut.over == (dut.run_valid & ends)),
                Assert(dut.turned == Mux(dut.run_valid, turned_after, turned)),
                Assert(at_line | dut.over | (Value.cast(dut.part) == later_part + 1)),
                Assert(~at_line | dut.over | (later == 0)),
                Assert((at_line & ~dut.turned) | dut.over | (dut.bytes == Mux(dut.run_valid, bytes_after, bytes_left))),
                Assert(parts.first_done | (fresh & ~dut.run_valid & at_line)),
                Assert(parts.others_done | ~(turned & (dut.run_valid | (place != 0)))),
                Assert(parts.others_done | ~dut.turned | at_line | dut.over),
                Assert(fresh | (left != 0)),
                Assert(~fresh | ((place == 0) & ~turned)),
                # What is left of a line is never nothing.
                Assert((place == 0) | ((place == INSIDE) & (line.inside | line.behind).any()) |
                       ((place == BEHIND) & line.behind.any())),
            ]  # fmt: skip
        with m.Else():
            m.d.comb += Assert(~dut.run_valid)
        m.d.comb += Cover(steps & ends & turned & (part == INSIDE) & ~fresh)

    @staticmethod
    def next_part(m, line, place, name):
        """The first part from ``place`` on that is not empty, its bytes, and the place behind it; 0 at the end."""
        lengths = [line.before, line.inside, line.behind]
        part, after = Signal(range(4), name=f"part_{name}"), Signal(range(4), name=f"after_{name}")
        full = [length.any() for length in lengths]
        m.d.comb += part.eq(
            Mux((place <= BEFORE) & full[BEFORE], BEFORE, Mux((place <= INSIDE) & full[INSIDE], INSIDE, BEHIND))
        )
        behind = Mux(part == BEFORE, full[INSIDE] | full[BEHIND], (part == INSIDE) & full[BEHIND])
        m.d.comb += after.eq(Mux(behind, Mux((part == BEFORE) & full[INSIDE], INSIDE, BEHIND), 0))
        return part, Array([*lengths, 0])[part], after

    def assume(self, m):
        """What LineParts promises, of walks with ``folds``."""
        parts, seen = self.parts, Signal()
        m.d.comb += Assume(~self.dut.i.valid | self.dut.i.payload.folds)
        m.d.sync += seen.eq(~self.dut.i.ready)  # whatever is at the input starts them
        for done, values in ((parts.first_done, (parts.first, parts.bytes)), (parts.others_done, (parts.others,))):
            was_done = Signal()
            m.d.sync += was_done.eq(done)
            m.d.comb += Assume(Mux(seen, ~was_done | done, ~done))
            for value in values:
                value = Value.cast(value)
                before = Signal.like(value)
                m.d.sync += before.eq(value)
                m.d.comb += Assume(~(was_done & seen) | (value == before))
                m.d.comb += Assume(~done | value.any())


@proved_and_covered(2, 14)
def test_runs_are_the_parts_of_lines(mode, depth):
    prove(LinesSpec(), name=f"pixel_lines-{mode}", mode=mode, depth=depth, proves="F8 F11")
