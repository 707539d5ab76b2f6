"""F6: a command is finished, or goes to walker and write half, each once. F11: it is offered after two cycles."""

from amaranth import Module, Signal
from amaranth.hdl import Assert, Cover, Elaboratable

from tilewright.hw.tmau.params import PRESETS
from tilewright.hw.tmau.setup import Setup
from tilewright.sim.formal import StreamRules, prove


class SetupSpec(Elaboratable):
    """A pipeline of two places; the command in the second one is at the outputs. Products do not matter here."""

    def __init__(self):
        self.dut = Setup(PRESETS["unit"].replace(addr_width=16))

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        walks, transfers, finished = dut.walks, dut.transfers, dut.finished
        for name, output in (("walks", walks), ("transfers", transfers), ("finished", finished)):
            m.submodules[f"{name}_rules"] = StreamRules(output)
        walk, transfer = walks.valid & walks.ready, transfers.valid & transfers.ready
        ends = finished.valid & finished.ready

        has_walk, has_transfer = Signal(), Signal()  # of the command at the outputs
        waiting, offered = Signal(), Signal()  # there is a command at the first place, at the second
        leaves = ends | ((walk | has_walk) & (transfer | has_transfer))
        ready = ~waiting | ~offered | leaves
        m.d.sync += [
            has_walk.eq((has_walk | walk) & ~leaves),
            has_transfer.eq((has_transfer | transfer) & ~leaves),
        ]
        with m.If(ready):
            m.d.sync += waiting.eq(dut.i.valid)
        with m.If(~offered | leaves):
            m.d.sync += offered.eq(waiting)

        m.d.comb += [
            Assert(dut.i.ready == ready),
            Assert(walks.valid == (offered & ~finished.valid & ~has_walk)),
            Assert(transfers.valid == (offered & ~finished.valid & ~has_transfer)),
            Assert(~finished.valid | offered),
            Assert(~(has_walk | has_transfer) | (offered & ~finished.valid)),
            Assert(~(has_walk & has_transfer)),
            Cover(leaves & has_walk & waiting),
            Cover(leaves & has_transfer & waiting),
            Cover(ends & waiting),
        ]
        return m

    def ports(self):
        dut = self.dut
        return [dut.i.valid, dut.i.payload, dut.walks.ready, dut.transfers.ready, dut.finished.ready]


def test_every_command_leaves_once():
    spec = SetupSpec()
    prove(spec, spec.ports(), name="setup", depth=3, proves="F6 F11")


def test_commands_of_both_kinds_leave():
    spec = SetupSpec()
    prove(spec, spec.ports(), name="setup-cover", mode="cover", depth=7)
