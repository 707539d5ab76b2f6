"""The harness itself: deadlines strike, testbenches see one clock, waves come on request only."""

import pytest
from amaranth.hdl import Module, Signal

from tilewright.sim.pysim.simulate import WAVES_VARIABLE, simulate


def counter():
    m = Module()
    count = Signal(8)
    m.d.sync += count.eq(count + 1)
    return m, count


def test_testbench_and_background_share_the_clock():
    dut, count = counter()
    seen = []

    async def watch(ctx):
        async for *_, value in ctx.tick().sample(count):
            seen.append(value)

    async def testbench(ctx):
        await ctx.tick().repeat(5)
        assert ctx.get(count) == 5

    simulate(dut, testbench, background=[watch])
    assert seen[:4] == [0, 1, 2, 3]


def test_combinational_design_has_a_clock_too():
    m = Module()
    a, b = Signal(), Signal()
    m.d.comb += b.eq(~a)

    async def testbench(ctx):
        await ctx.tick()
        assert ctx.get(b)

    simulate(m, testbench)


def test_deadline_names_the_design():
    dut, _ = counter()

    async def forever(ctx):
        while True:
            await ctx.tick()

    with pytest.raises(AssertionError, match=r"^simulation of Module is not done after 20 cycles$"):
        simulate(dut, forever, deadline=20)


def test_waves_only_on_request(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(WAVES_VARIABLE, raising=False)

    async def testbench(ctx):
        await ctx.tick()

    simulate(counter()[0], testbench)
    assert not (tmp_path / "build").exists()
    monkeypatch.setenv(WAVES_VARIABLE, "1")
    simulate(counter()[0], testbench)
    assert [file.name for file in (tmp_path / "build/waves").iterdir()] == [
        "unit-sim-pysim-test_simulate.py-test_waves_only_on_request.vcd"
    ]
