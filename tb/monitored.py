"""A core of an access unit with the protocol monitors at its port, so that every cocotb test is watched by RTL."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.hw.core.params import CoreParams
from tilewright.hw.core.top import Core
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.harness.axi_channels import Rule, Wait
from tilewright.sim.harness.axi_monitor import Axi4Monitor

__all__ = ["VARIANTS", "MonitoredCore"]

#: Configurations that cocotb tests run on.
VARIANTS = {
    "unit": TMAU_PRESETS["unit"],
    #: The bus and burst of ``ecp5`` with a shared memory that is quick to compare and queues that fill.
    "small": TMAU_PRESETS["ecp5"].replace(max_outstanding=16, commands_in_flight=4, smem=SmemParams(8 * 1024)),
}


class MonitoredCore(wiring.Component):
    """All ports of a ``Core`` with an access unit alone, TmauParams, and what the monitors of its bus have seen."""

    def __init__(self, params):
        self.core = Core(CoreParams(params))
        # Beside data, one descriptor at a time is read, in two bursts where it crosses a page, and one burst of old
        # words for each write of the reducer.
        self.monitor = Axi4Monitor(
            self.core.m_axi,
            reads=params.max_outstanding + 2 + params.old_words // 2,
            writes=params.max_outstanding,
            max_burst=params.max_burst,
        )
        members = dict(self.core.signature.members)
        super().__init__(members | {"violations": Out(len(Rule)), "late": Out(len(Wait))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = self.core
        m.submodules.monitor = self.monitor
        for name, member in self.core.signature.members.items():
            inner, outer = getattr(self.core, name), getattr(self, name)
            if member.is_signature:
                connect(m, **{name: inner, f"outer_{name}": flipped(outer)})
            else:
                target, source = (inner, outer) if member.flow == In else (outer, inner)
                m.d.comb += target.eq(source)
        m.d.comb += [self.violations.eq(self.monitor.violations), self.late.eq(self.monitor.late)]
        return m
