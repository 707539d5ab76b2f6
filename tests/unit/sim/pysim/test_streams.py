"""The stream drivers: they keep the rules themselves, pause as asked, and the checker sees every breach."""

import numpy as np
import pytest
from amaranth.hdl import Module, Signal, signed, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, packed, receive, send, watch_stream

PIXEL = data.StructLayout({"x": signed(4), "y": unsigned(4), "z": data.ArrayLayout(2, 2)})


class Kind(enum.Enum, shape=2):
    LAST = 3


class Wire(wiring.Component):
    """A stream from here to there, for the drivers to meet."""

    i: In(stream.Signature(PIXEL))
    o: Out(stream.Signature(PIXEL))

    def elaborate(self, platform):
        m = Module()
        wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m


@pytest.mark.parametrize("mode", STALL_MODES)
def test_items_arrive_in_order(mode):
    dut = Wire()
    items = [{"x": n % 16 - 8, "y": n % 16, "z": [n % 4, 1]} for n in range(60)]
    results = {}

    async def source(ctx):
        results["sent"] = await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=1)

    async def sink(ctx):
        results["got"], results["taken"] = await receive(
            ctx, dut.o, len(items), stall=STALL_MODES[mode]["stall"], seed=1
        )

    simulate(dut, source, sink, background=[watch_stream(dut.o)])
    assert [PIXEL.const(item) for item in items] == results["got"]
    assert results["sent"] == results["taken"]
    if mode == "none":
        assert results["taken"] == list(range(60))
    else:
        assert results["taken"][-1] > 80


@pytest.mark.parametrize(
    ("after", "message"),
    [((0, 5), "valid was taken back"), ((1, 6), "payload changed from 0x5 to 0x6")],
)
def test_watcher_sees_a_broken_rule(after, message):
    port = stream.Signature(4).create()
    idle = Module()
    idle.d.sync += Signal().eq(port.valid)

    async def rude(ctx):
        ctx.set(port.payload, 5)
        ctx.set(port.valid, 1)
        await ctx.tick()
        ctx.set(port.valid, after[0])
        ctx.set(port.payload, after[1])
        await ctx.tick()
        await ctx.tick()

    with pytest.raises(AssertionError, match=f"^output: {message}"):
        simulate(idle, rude, background=[watch_stream(port, "output")])


def test_source_that_waits_for_ready_is_found():
    port = stream.Signature(4).create()
    m = Module()
    m.d.comb += port.valid.eq(port.ready)

    async def sink(ctx):
        await receive(ctx, port, 50, stall=0.5)

    with pytest.raises(AssertionError, match="not done after 1000 cycles"):
        simulate(m, sink, deadline=1000)


@pytest.mark.parametrize(
    "value",
    [
        {"x": np.int8(-8), "y": np.uint64(15), "z": (np.int32(3), 0)},
        (-8, 15, PIXEL["z"].shape.const([3, 0])),
        PIXEL.const({"x": -8, "y": 15, "z": [3, 0]}),
        0x3F8,
    ],
    ids=["by name", "in order", "constant", "bits"],
)
def test_packed_takes_every_form(value):
    assert packed(PIXEL, value) == 0x3F8


def test_packed_members_left_out_are_zero():
    assert packed(PIXEL, {"y": 1}) == 0x10
    assert packed(Kind, Kind.LAST) == packed(Kind, 3) == 3


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"x": 8}, r"8 does not fit signed\(4\)"),
        ({"y": -1}, r"-1 does not fit unsigned\(4\)"),
        ({"z": [0, 4]}, r"4 does not fit unsigned\(2\)"),
        ({"z": [0]}, "has 2 elements, not 1"),
    ],
)
def test_packed_refuses_what_does_not_fit(value, message):
    with pytest.raises(ValueError, match=message):
        packed(PIXEL, value)
    with pytest.raises(TypeError):
        packed(4, 1.0)
