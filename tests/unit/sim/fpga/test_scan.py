"""The harness around the pins: everything that goes in comes out, through registers."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from tilewright.sim.fpga.scan import Scan


class Invert(wiring.Component):
    """Two ports a side, one of which is registered."""

    a: In(2)
    b: In(1)
    not_a: Out(2)
    not_b: Out(1, init=1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.not_a.eq(~self.a)
        m.d.sync += self.not_b.eq(~self.b)
        return m


def outputs(bits):
    """What comes out while ``bits`` go in, a bit a cycle, and zeros after them."""
    dut, seen = Scan(Invert()), []

    async def process(ctx):
        for bit in (*bits, *[0] * 8):
            ctx.set(dut.scan_in, bit)
            await ctx.delay(1e-6)
            seen.append(ctx.get(dut.scan_out))
            ctx.set(dut.clock, 1)
            await ctx.delay(1e-6)
            ctx.set(dut.clock, 0)
        return seen

    simulator = Simulator(dut)
    simulator.add_testbench(process)
    simulator.run()
    return seen


def model(bits):
    """The same from the outside: chain of three inputs and the reset, one register a port, one folded bit."""
    chain, held, folded, not_b, seen = [0] * 4, [0] * 3, 0, 1, []
    for bit in (*bits, *[0] * 8):
        seen.append(folded)
        a0, a1, b, reset = chain
        folded, held, not_b = held[0] ^ held[1] ^ held[2], [1 - a0, 1 - a1, not_b], 1 if reset else 1 - b
        chain = [bit, *chain[:-1]]
    return seen


def test_every_input_reaches_the_output():
    for bits in ([], [1], [1, 1], [1, 0, 1], [1, 1, 1, 1], [0, 1, 0, 0, 1, 1, 1]):
        assert outputs(bits) == model(bits)
