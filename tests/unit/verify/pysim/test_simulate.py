"""The harness itself: deadlines strike, testbenches see one clock, waves come on request only."""

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.memory import Memory

from tilewright.verify.pysim.simulate import WAVES_VARIABLE, elaborated, reset_of, simulate


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


class Counter(Elaboratable):
    """Counts cycles, and keeps the counts."""

    made = 0

    def __init__(self, width):
        self.count = Signal(width)
        self.memory = Memory(shape=width, depth=4, init=[7] * 4)

    def elaborate(self, platform):
        type(self).made += 1
        m = Module()
        m.submodules.memory = self.memory
        m.d.sync += self.count.eq(self.count + 1)
        return m


def test_a_kept_design_is_elaborated_once_and_begins_anew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ends = []

    def testbench(cycles):
        async def count(ctx):
            assert ctx.get(dut.count) == 0 and ctx.get(dut.memory.data[cycles % 4]) == 7
            ctx.set(dut.memory.data[cycles % 4], 5)
            for _ in range(cycles):
                await ctx.tick()
            ends.append((cycles, ctx.get(dut.count)))

        return count

    async def fails(ctx):
        await ctx.tick()
        raise AssertionError("as asked")

    async def stays(ctx):
        async for _ in ctx.tick():
            pass

    dut, Counter.made = elaborated(Counter, 8), 0
    simulate(dut, testbench(3))
    simulate(dut, testbench(5), testbench(6), background=[stays])
    with pytest.raises(AssertionError, match=r"^as asked$"):
        simulate(dut, testbench(49), fails)
    with pytest.raises(AssertionError, match=r"^simulation of Counter is not done after 20 cycles$"):
        simulate(dut, testbench(50), deadline=20)
    simulate(dut, testbench(4), waves=True)
    assert len(list(tmp_path.rglob("*.vcd"))) == 1
    # A testbench of an earlier run does not go on in a later one.
    assert ends == [(3, 3), (5, 5), (6, 6), (4, 4)]
    assert elaborated(Counter, 8) is dut and Counter.made == 1
    dut = elaborated(Counter, width=9)
    simulate(dut, testbench(1))
    assert Counter.made == 2


def test_a_testbench_resets_the_design():
    dut, seen = elaborated(Counter, 8), []

    async def testbench(ctx):
        await ctx.tick().repeat(3)
        ctx.set(reset_of(dut), 1)
        *_, is_reset, count = await ctx.tick().sample(dut.count)
        ctx.set(reset_of(dut), 0)
        seen.extend([is_reset, count, ctx.get(dut.count)])

    for _ in range(2):
        simulate(dut, testbench)
    assert seen == [True, 3, 0] * 2


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
        "unit-verify-pysim-test_simulate.py-test_waves_only_on_request.vcd"
    ]
