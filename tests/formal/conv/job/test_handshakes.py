"""F1: jobs are neither lost nor doubled between check, setup and what runs them, and hold while they wait."""

import pytest
from amaranth.hdl import Assert, Elaboratable, Module, Signal

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.job.check import JobChecker
from tilewright.hw.conv.job.setup import JobSetup
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.formal import StreamRules, prove

PARAMS = ConvUnitParams(CONV_PRESETS["unit"], SmemParams(1024))


class JobSpec(Elaboratable):
    """A block that takes a job just when what it made of it has been taken; what it works with is at rest then."""

    def __init__(self, dut, *busy):
        self.dut = dut
        self.busy = busy

    @property
    def ports(self):
        stop = [self.dut.stopped] if "stopped" in self.dut.signature.members else []
        return [self.dut.i.valid, self.dut.i.payload, self.dut.o.ready, *stop]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        m.submodules.o_rules = StreamRules(dut.o)
        given = Signal()
        m.d.sync += given.eq(dut.o.valid & dut.o.ready)
        m.d.comb += [
            Assert(dut.i.ready == given),
            Assert(sum(self.busy) + dut.o.valid + dut.i.ready <= dut.i.valid),
        ]
        return m


@pytest.mark.parametrize("cores", [1, 2])
def test_check(cores):
    """Also in a core that is stopped and started at any time: what has been offered stays."""
    dut = JobChecker(PARAMS, cores)
    spec = JobSpec(dut, dut.calculator.busy, dut.ends)
    prove(spec, spec.ports, name=f"job-check-{cores}", depth=2, proves="F1")


def test_setup():
    dut = JobSetup(PARAMS)
    spec = JobSpec(dut, dut.calculator.busy, dut.divider.busy)
    prove(spec, spec.ports, name="job-setup", depth=2, proves="F1")
