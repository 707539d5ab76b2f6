"""F6: a command is finished, or becomes a job, once. F11: it is offered after two cycles."""

from amaranth import Module, Signal, Value
from amaranth.hdl import Assert, Cover, Elaboratable

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.tensor import Setup
from tilewright.sim.formal import StreamRules, prove


class SetupSpec(Elaboratable):
    """A pipeline of two places; the command in the second one is at the outputs. Products do not matter here."""

    def __init__(self):
        self.dut = Setup(TMAU_PRESETS["unit"].replace(addr_width=16))

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        jobs, finished = dut.jobs, dut.finished
        for name, output in (("jobs", jobs), ("finished", finished)):
            m.submodules[f"{name}_rules"] = StreamRules(output)
        starts, ends = jobs.valid & jobs.ready, finished.valid & finished.ready

        waiting, offered = Signal(), Signal()  # there is a command at the first place, at the second
        leaves = starts | ends
        ready = ~waiting | ~offered | leaves
        with m.If(ready):
            m.d.sync += waiting.eq(dut.i.valid)
        with m.If(~offered | leaves):
            m.d.sync += offered.eq(waiting)

        m.d.comb += [
            Assert(dut.i.ready == ready),
            Assert(dut.busy == (waiting | offered)),
            Assert((jobs.valid | finished.valid) == offered),
            Assert(~(jobs.valid & finished.valid)),
            Cover(starts & waiting),
            Cover(ends & waiting),
        ]
        return m

    def ports(self):
        dut = self.dut
        return [dut.i.valid, dut.i.payload, Value.cast(dut.windows), dut.jobs.ready, dut.finished.ready]


def test_every_command_leaves_once():
    spec = SetupSpec()
    prove(spec, spec.ports(), name="setup", depth=3, proves="F6 F11")


def test_commands_of_both_kinds_leave():
    spec = SetupSpec()
    prove(spec, spec.ports(), name="setup-cover", mode="cover", depth=5)
