"""Inputs that are set together come to what they come to one by one, and the design settles once."""

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data

from tilewright.sim.pysim.ports import set_together
from tilewright.sim.pysim.simulate import simulate

PAIR = data.StructLayout({"x": signed(3), "y": 2})


def test_all_kinds_of_inputs_at_once():
    """The inputs of an exclusive-or are never seen to differ, as they change together."""
    narrow, number, pair, left, right = Signal(2), Signal(signed(4)), Signal(PAIR), Signal(), Signal()
    differ, seen = Signal(), []
    m = Module()
    m.d.sync += Signal(12).eq(narrow + number + pair.x + pair.y)
    m.d.comb += differ.eq(left ^ right)

    async def testbench(ctx):
        set_together(ctx, (narrow, 2), (number, -5), (pair, {"x": -1, "y": 3}), (left, 1), (right, True))
        await ctx.tick()
        assert [ctx.get(port) for port in (narrow, number, pair.x, pair.y)] == [2, -5, -1, 3]
        set_together(ctx, (pair.y, 1), (left, 0), (right, 0))
        assert [ctx.get(port) for port in (narrow, number, pair.x, pair.y)] == [2, -5, -1, 1]
        with pytest.raises(ValueError, match=r"^4 does not fit unsigned\(2\)$"):
            set_together(ctx, (number, 3), (narrow, 4))
        assert ctx.get(number) == -5

    async def watch(ctx):
        await ctx.changed(differ)
        seen.append(True)

    simulate(m, testbench, background=[watch])
    assert not seen
