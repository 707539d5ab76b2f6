"""F11: a walk shows a run in every cycle from its acceptance to its last run, and the next walk follows at once."""

import pytest
from amaranth.hdl import Assert, Cat, Cover, Signal

from support.formal import Spec
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.tile import TileWalker
from tilewright.verify.formal import prove


class WalkerSpec(Spec):
    """Knows whether a walk is under way. That it ends is what the proof of the loop nest shows."""

    made = "o"

    def __init__(self, gathers=True):
        params = TMAU_PRESETS["unit"]
        features = tuple(name for name in params.features if gathers or name != "gather")
        self.levels = range(0 if gathers else 1, 5)
        self.dut = TileWalker(params.replace(features=features))

    def specify(self, m, dut):
        accepted = dut.i.valid & dut.i.ready
        ends = dut.o.valid & dut.o.ready & dut.o.payload.last

        walking, first, single = Signal(), Signal(), Signal()
        with m.If(accepted | ends):
            m.d.sync += walking.eq(accepted)
        m.d.sync += first.eq(accepted)
        # With ``folds`` level 1 is one run where the outer ones begin outside.
        walk, apart = dut.i.payload, Signal()
        m.d.comb += apart.eq(walk.folds & Cat((v.first != 0) | (v.end == 0) for v in list(walk.intervals)[2:]).any())
        m.d.sync += single.eq(Cat((walk.lasts[d] == 0) | (apart if d == 1 else 0) for d in self.levels).all())
        m.d.comb += [
            Assert(dut.o.valid == walking),
            Assert(dut.busy == walking),
            Assert(~dut.o.payload.last | dut.o.payload.skip),
            Assert(dut.i.ready == (~walking | ends)),
            Assert(~first | (dut.o.payload.last == single)),
            Cover(accepted & ends & ~first),
        ]


@pytest.mark.parametrize("gathers", [0, 1])
def test_no_cycle_is_lost(gathers):
    prove(WalkerSpec(gathers), name=f"walker-{gathers}", depth=2, proves="F11")


@pytest.mark.long
def test_walks_follow_each_other():
    prove(WalkerSpec(), name="walker-cover", mode="cover", depth=6)
