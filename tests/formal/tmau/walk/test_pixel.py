"""F8, F11: ``last`` + 1 pixels follow the walk of docs/tmau.md, "Im2col mode", at the sums of its steps."""

import pytest
from amaranth import Module, Mux, Signal, signed
from amaranth.hdl import Assert, Assume, Cover, Elaboratable
from amaranth.lib import data

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.pixel import PixelWalker
from tilewright.sim.formal import StreamRules, prove

PARAMS = TMAU_PRESETS["unit"]
_WIDTH = PARAMS.addr_width


class PixelsSpec(Elaboratable):
    """Makes the walk as the specification writes it down, and keeps position times stride by addition."""

    def __init__(self):
        self.dut = PixelWalker(PARAMS)
        self.starts = [Signal(_WIDTH, name=f"start{k}") for k in range(3)]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.runs_rules = StreamRules(dut.o)
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
        return m

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

    def ports(self):
        return [self.dut.i.valid, self.dut.i.payload, self.dut.o.ready, *self.starts]


@pytest.mark.long
def test_pixels_follow_the_walk():
    spec = PixelsSpec()
    prove(spec, spec.ports(), name="pixels", depth=2, proves="F8 F11")


@pytest.mark.long
def test_a_second_image_is_reached():
    spec = PixelsSpec()
    prove(spec, spec.ports(), name="pixels-cover", mode="cover", depth=7)
