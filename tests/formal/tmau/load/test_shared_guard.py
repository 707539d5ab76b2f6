"""F7: no line and no landed bytes leave the shared window while there is one.

The streams are free: nothing is assumed of the blocks before the guard but that they keep the stream rules.
"""

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Value

from tilewright.golden.spec import LINE_BYTES
from tilewright.hw.tmau.load.shared_guard import SharedGuard
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.formal import StreamRules, prove


class GuardSpec(Elaboratable):
    """The guard and what leaves it. If ``narrower`` lines less are allowed than the window has, the proof must fail."""

    def __init__(self, narrower=0):
        self.dut = SharedGuard(TMAU_PRESETS["full"])
        self.narrower = narrower

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        windows = Value.cast(dut.windows)
        # The window does not change while something waits.
        before, waited = Signal.like(windows), Signal()
        m.d.sync += [before.eq(windows), waited.eq(dut.writes.valid | dut.landed.valid)]
        m.d.comb += Assume(~waited | (windows == before))
        for name, i, o, row in (
            ("writes", dut.writes, dut.guarded_writes, dut.guarded_writes.p.row),
            ("landed", dut.landed, dut.guarded_landed, dut.guarded_landed.p.barrier // LINE_BYTES),
        ):
            m.submodules[f"{name}_i_rules"] = StreamRules(i, assume=True)
            m.submodules[f"{name}_o_rules"] = StreamRules(o)
            inside = (row >= dut.windows.shared_first) & (row + self.narrower <= dut.windows.shared_last)
            came, went = i.valid & i.ready, o.valid & o.ready
            m.d.comb += [
                Assert(~o.valid | ~dut.windows.confine_shared | inside),
                # What passes is what came, when it came; without a window, and in it, everything does.
                Assert(~o.valid | (i.valid & (Value.cast(o.p) == Value.cast(i.p)))),
                Assert(~went | came),
                Assert(~came | went | (dut.windows.confine_shared & ~inside)),
                Cover(went & dut.windows.confine_shared),
                Cover(came & ~went),
            ]
        return m

    def ports(self):
        dut = self.dut
        inputs = [signal for port in (dut.writes, dut.landed) for signal in (port.valid, port.payload)]
        return [*inputs, dut.guarded_writes.ready, dut.guarded_landed.ready, dut.windows]


def test_nothing_leaves_the_window():
    spec = GuardSpec()
    prove(spec, spec.ports(), name="shared-guard", depth=2, proves="F7")


def test_proof_finds_a_line_outside():
    spec = GuardSpec(narrower=1)
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(spec, spec.ports(), name="shared-guard-narrower", mode="bmc", depth=3)


def test_every_case_is_reached():
    spec = GuardSpec()
    prove(spec, spec.ports(), name="shared-guard-cover", mode="cover", depth=3)
