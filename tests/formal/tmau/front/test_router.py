"""Every command goes to one setup, its own, and to none while another one is at work."""

import pytest
from amaranth import Module, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Value

from tilewright.golden.spec import BLOCK, FORMATS, GROUP, REPLACE, Error, Opcode
from tilewright.hw.tmau.front.router import Router
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.formal import StreamRules, prove


class RouterSpec(Elaboratable):
    """The router keeps nothing: what holds in a cycle holds for ever."""

    def __init__(self):
        self.dut = Router(TMAU_PRESETS["unit"])

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        ports = (dut.tensors, dut.blocks, dut.lanes)
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        busy = [dut.busy[number] for number in range(3)]
        for number, port in enumerate(ports):
            m.submodules[f"rules{number}"] = StreamRules(port)
            others = [bit for other, bit in enumerate(busy) if other != number]
            m.d.comb += Assert(~port.valid | ~(others[0] | others[1]))
            m.d.comb += Cover(port.valid & port.ready)
        command, fault = dut.i.p.command, dut.i.p.fault.code
        of_blocks = 0
        for opcode, fmt in FORMATS.items():
            if fmt in (BLOCK, REPLACE) or (fmt is GROUP and opcode != Opcode.INVALIDATE_ALL):
                of_blocks |= command.opcode == opcode
        sound = fault == Error.NONE
        wanted = Mux(sound & of_blocks, 1, Mux(sound & (command.opcode == Opcode.LANES), 2, 0))
        taken = [port.valid & port.ready for port in ports]
        m.d.comb += [
            # A setup that gets nothing does not become busy: then an offer stays.
            Assert((dut.i.valid & dut.i.ready) == (taken[0] | taken[1] | taken[2])),
            Assert(Value.cast(dut.tensors.p) == Value.cast(dut.i.p)),
            Assert(Value.cast(dut.blocks.p) == Value.cast(command)),
            Assert(Value.cast(dut.lanes.p) == Value.cast(command)),
        ]
        for number, port in enumerate(ports):
            m.d.comb += Assert(~port.valid | (dut.i.valid & (wanted == number)))
            others = [bit for other, bit in enumerate(busy) if other != number]
            m.d.comb += Assert(~dut.i.valid | (wanted != number) | others[0] | others[1] | port.valid)
            # Of the environment: a setup becomes busy only with a command.
            before, took = self._before(m, busy[number]), self._before(m, taken[number])
            m.d.comb += Assume(~busy[number] | before | took)
        return m

    @staticmethod
    def _before(m, bit):
        last = Signal()
        m.d.sync += last.eq(bit)
        return last

    def ports(self):
        dut = self.dut
        ready = [port.ready for port in (dut.tensors, dut.blocks, dut.lanes)]
        return [dut.i.valid, dut.i.payload, dut.busy, *ready]


@pytest.mark.long
def test_every_command_goes_to_its_room():
    spec = RouterSpec()
    prove(spec, spec.ports(), name="router", depth=2)


@pytest.mark.long
def test_every_room_is_reached():
    spec = RouterSpec()
    prove(spec, spec.ports(), name="router-cover", mode="cover", depth=3)
