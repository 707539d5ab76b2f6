"""Runs of instructions: all, in order, once; what a halt and a failed line leave."""

import random

import pytest

from tilewright.hw.core.program.instructions import InstructionStreamer
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, watch_stream

RUNS = [(3, 1), (9, 4), (20, 5), (1, 23), (7, 3), (100, 8)]


def line_at(line):
    return sum((4 * line + place + 1) << 128 * place for place in range(4))


def instructions(line, count):
    return [4 * line + number + 1 for number in range(count)]


class Bench:
    def __init__(self, mode, latency=5):
        self.dut = elaborated(InstructionStreamer, 32, 4)
        self.stalls, self.rng, self.latency = STALL_MODES[mode], random.Random(mode), latency
        self.taken, self.cycles, self.failing, self.hold = [], [], set(), False

    async def memory(self, ctx):
        dut, pending, cycle = self.dut, [], 0
        async for _, _, valid, ready, line in ctx.tick().sample(
            dut.requests.valid, dut.requests.ready, dut.requests.payload
        ):
            if valid and ready:
                pending.append((cycle + self.latency, line))
            ctx.set(dut.requests.ready, self.rng.random() >= self.stalls["idle"])
            comes = pending and pending[0][0] <= cycle and self.rng.random() >= self.stalls["idle"]
            ctx.set(dut.lines.valid, bool(comes))
            if comes:
                line = pending.pop(0)[1]
                ctx.set(dut.lines.payload, {"data": line_at(line), "error": line in self.failing})
            cycle += 1

    async def engine(self, ctx):
        port, cycle = self.dut.instructions, 0
        async for _, _, valid, ready, item in ctx.tick().sample(port.valid, port.ready, port.payload):
            if valid and ready:
                self.taken.append(item)
                self.cycles.append(cycle)
            ctx.set(port.ready, not self.hold and self.rng.random() >= self.stalls["stall"])
            cycle += 1

    async def offer(self, ctx, line, count):
        ctx.set(self.dut.i.payload, {"line": line, "count": count})
        ctx.set(self.dut.i.valid, 1)

    async def run(self, ctx, line, count):
        """Whether a run failed."""
        await self.offer(ctx, line, count)
        (failed,) = await ctx.tick().sample(self.dut.failed).until(self.dut.i.ready)
        ctx.set(self.dut.i.valid, 0)
        await ctx.tick()  # the engine's model has seen the last one too
        return failed

    def simulate(self, bench):
        watch = watch_stream(self.dut.instructions)
        simulate(self.dut, bench, background=[self.memory, self.engine, watch], deadline=5000)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_runs(mode):
    bench = Bench(mode)

    async def host(ctx):
        for line, count in RUNS:
            bench.taken.clear()
            assert not await bench.run(ctx, line, count)
            assert bench.taken == instructions(line, count), "accepted with the last one"

    bench.simulate(host)


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("bad", range(4))
def test_a_line_that_fails(mode, bad):
    bench = Bench(mode)
    bench.failing.add(30 + bad)

    async def host(ctx):
        assert await bench.run(ctx, 30, 16)
        await ctx.tick().repeat(20)
        assert bench.taken == instructions(30, 4 * bad)
        assert not await bench.run(ctx, 50, 9)
        assert bench.taken[4 * bad :] == instructions(50, 9)

    bench.simulate(host)


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("cycles", range(1, 60, 6))
def test_a_halt(mode, cycles):
    """What is offered is still taken, once; the next run is whole."""
    bench, dut = Bench(mode), elaborated(InstructionStreamer, 32, 4)

    async def host(ctx):
        await bench.offer(ctx, 10, 40)
        await ctx.tick().repeat(cycles)
        bench.hold = bool(cycles % 4 == 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.halt, 1)
        await ctx.tick()
        while ctx.get(dut.busy):
            await ctx.tick()
        ctx.set(dut.halt, 0)
        bench.hold = False
        while ctx.get(dut.instructions.valid):
            await ctx.tick()
        await ctx.tick()  # the engine's model has seen it too
        count = len(bench.taken)
        assert bench.taken == instructions(10, count)
        await ctx.tick().repeat(10)
        assert not await bench.run(ctx, 60, 6)
        assert bench.taken[count:] == instructions(60, 6)

    bench.simulate(host)


def test_rate():
    """An instruction a cycle, as long as lines come in time."""
    bench = Bench("none", latency=2)

    async def host(ctx):
        await bench.run(ctx, 0, 40)

    bench.simulate(host)
    assert bench.cycles == list(range(bench.cycles[0], bench.cycles[0] + 40))
