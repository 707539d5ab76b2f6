"""F7: no row and no landed bytes leave the shared window while there is one.

The streams are free: nothing is assumed of the blocks before the guard but that they keep the stream rules.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Signal, Value, unsigned

from support.formal import Spec
from tilewright.hw.smem.layouts import LandedLayout
from tilewright.hw.tmau.load.path import SharedGuard
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import LINE_BYTES
from tilewright.verify.formal import prove

PARAMS = TMAU_PRESETS["full"]
#: Shape of an item, and its row.
KINDS = {
    "rows": (unsigned(PARAMS.smem.row_width), lambda row: row),
    "landed": (LandedLayout(PARAMS.smem), lambda landed: landed.barrier // LINE_BYTES, True),
}


class GuardSpec(Spec):
    """The guard and what leaves it. If ``narrower`` lines less are allowed than the window has, the proof must fail."""

    given, made = "i", "o"

    def __init__(self, kind, narrower=0):
        self.row = KINDS[kind][1]
        self.late = kind == "landed"
        self.dut = SharedGuard(PARAMS, *KINDS[kind])
        self.narrower = narrower

    def specify(self, m, dut):
        windows = Value.cast(dut.windows)
        # The windows are those of the item at the input: they may change when another one comes.
        before, waited = Signal.like(windows), Signal()
        m.d.sync += [before.eq(windows), waited.eq(dut.i.valid & ~dut.i.ready)]
        m.d.comb += Assume(~waited | (windows == before))

        kept = Signal.like(dut.windows)  # of the item that was looked at last

        def passes(item, windows=dut.windows):
            inside = (self.row(item) >= windows.shared_first) & (self.row(item) + self.narrower <= windows.shared_last)
            return ~windows.confine_shared | inside

        accepted, went = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        came = Signal()  # an item is looked at
        m.d.comb += came.eq(dut.i.valid & ~dut.checked if self.late else accepted)
        held, item = Signal(), Signal.like(Value.cast(dut.i.payload))
        with m.If(went):
            m.d.sync += held.eq(0)
        with m.If(came):
            m.d.sync += [held.eq(passes(dut.i.payload)), item.eq(dut.i.payload), kept.eq(dut.windows)]
        m.d.comb += [
            Assert(~dut.o.valid | passes(dut.o.payload, kept)),
            Assert(~(dut.checked & held) | (Value.cast(kept) == windows)),
            # What passes is what came; without a window, and in it, everything does.
            Assert(dut.o.valid == held),
            Assert(~held | (Value.cast(dut.o.payload) == item)),
            Assert(~came | ~held | went),
            # With ``late`` what passes is accepted as it leaves.
            Assert(~(accepted & passes(dut.i.payload)) | went if self.late else 1),
            Assert(~(dut.checked & dut.o.valid) | (Value.cast(dut.o.payload) == Value.cast(dut.i.payload))),
            Assert(~dut.checked | dut.i.valid),
            Assert(~dut.o.valid | dut.checked if self.late else 1),
            Cover(went & dut.windows.confine_shared),
            Cover(came & ~passes(dut.i.payload)),
        ]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_leaves_the_window(kind):
    prove(GuardSpec(kind), name=f"shared-guard-{kind}", depth=2, proves="F7")


def test_proof_finds_a_line_outside():
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(GuardSpec("rows", narrower=1), name="shared-guard-narrower", mode="bmc", depth=3)


@pytest.mark.long
def test_every_case_is_reached():
    prove(GuardSpec("landed"), name="shared-guard-cover", mode="cover", depth=3)
