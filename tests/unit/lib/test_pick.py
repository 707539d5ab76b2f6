"""Of several streams the one is connected that has something."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.lib.pick import pick
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import receive, send, watch_stream


class Picker(wiring.Component):
    """Three streams become one."""

    i: In(stream.Signature(8)).array(3)
    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        payload, valid = Signal(8), Signal()
        pick(m, self.i, payload, valid, self.o.ready)
        m.d.comb += [self.o.payload.eq(payload), self.o.valid.eq(valid)]
        return m


def test_items_in_turn():
    dut = Picker()

    async def feed(ctx):
        for number in range(30):
            await send(ctx, dut.i[number * 7 % 3], [number], idle=0.3, seed=number)

    async def take(ctx):
        items, _ = await receive(ctx, dut.o, 30, stall=0.4, seed=1)
        assert items == list(range(30))

    simulate(dut, feed, take, background=[watch_stream(dut.o)])
