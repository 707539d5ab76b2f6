"""Lines, words and instructions come in order, whatever the bus and the bursts are like."""

import random

import numpy as np
import pytest

from support.streams import pulse
from tilewright.hw.core.params import ProgramParams
from tilewright.hw.core.program.fetch import READER_ID, InstructionStreamer, LineReader, ProgramFetcher
from tilewright.network.machine import Machine
from tilewright.network.tiling.costs import instruction_cycles
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, sender, watch_stream

CONTENTS = np.random.default_rng(1).integers(256, size=4096, dtype=np.uint8)
ASKED = [[0, 5, 9, 63, 1, 2, 3, 4], [10, 11, 11, 62, 0, 60]]


def word_at(line):
    return int.from_bytes(CONTENTS[64 * line :][:64].tobytes(), "little")


def run(dut, mode):
    memory = AxiMemory(dut.axi, CONTENTS, stall=STALL_MODES[mode]["stall"], seed=2)
    got = [[], []]

    def asker(user):
        return sender(dut.requests[user], ASKED[user], idle=STALL_MODES[mode]["idle"], seed=user)

    async def take(ctx):
        cycle = 0
        while [len(lines) for lines in got] != [len(lines) for lines in ASKED]:
            for user, port in enumerate(dut.lines):
                if ctx.get(port.valid):
                    got[user].append((ctx.get(port.payload.data), ctx.get(port.payload.error), cycle))
            assert ctx.get(dut.axi.rready)
            await ctx.tick()
            cycle += 1

    simulate(dut, asker(0), asker(1), take, background=[memory.serve], deadline=2000)
    return got, memory.requests


@pytest.mark.parametrize(("bus_bytes", "max_burst"), [(16, 1), (16, 4), (32, 16), (64, 1), (64, 16)])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_lines(mode, bus_bytes, max_burst):
    dut = elaborated(LineReader, 32, bus_bytes, max_burst, 4)
    got, requests = run(dut, mode)
    for lines, asked in zip(got, ASKED, strict=True):
        assert [word for word, _, _ in lines] == [word_at(line) for line in asked]
        assert not any(error for _, error, _ in lines)
    beats = min(64 // bus_bytes, max_burst)
    assert {(ident, count) for _, ident, _, count in requests} == {(READER_ID, beats)}
    assert len(requests) == 14 * 64 // bus_bytes // beats
    if mode == "none":
        first = [address // 64 for _, _, address, _ in requests[:: 64 // bus_bytes // beats]][:4]
        assert first == [0, 10, 5, 11], "they take turns"


def test_latency():
    """Two cycles to AR; one from the last beat."""
    dut = elaborated(LineReader, 32, 64, 16, 4)
    memory = AxiMemory(dut.axi, CONTENTS, latency=3)

    async def bench(ctx):
        ctx.set(dut.requests[1].valid, 1)
        ctx.set(dut.requests[1].payload, 7)
        await ctx.tick().until(dut.requests[1].ready)
        ctx.set(dut.requests[1].valid, 0)
        assert ctx.get(dut.axi.arvalid)
        await ctx.tick().until(dut.axi.rvalid)
        assert ctx.get(dut.lines[1].valid) and not ctx.get(dut.lines[0].valid)
        assert ctx.get(dut.lines[1].payload.data) == word_at(7)

    simulate(dut, bench, background=[memory.serve])


def memory(dut, data_of, latency, stall=0.0):
    """Answers requests in order after a while; and the lines that have been asked for."""
    asked, rng = [], random.Random(1)

    async def serve(ctx):
        due, cycle = [], 0
        requests = dut.requests
        async for _, _, taken, line in ctx.tick().sample(requests.valid & requests.ready, requests.payload):
            if taken:
                asked.append(line)
                due.append(cycle + latency)
            ctx.set(dut.requests.ready, rng.random() >= stall)
            comes = bool(due) and due[0] <= cycle and rng.random() >= stall
            ctx.set(dut.lines.valid, comes)
            if comes:
                ctx.set(dut.lines.payload.data, data_of(asked[-len(due)]))
                due.pop(0)
            cycle += 1

    return serve, asked


BASE, COUNT, DEPTH = 1000, 40, 4


def test_rate_and_latency_of_words():
    """Fetched ahead, words come one a cycle; without, in the time of a request and its line."""
    dut = elaborated(ProgramFetcher, 32, DEPTH)
    serve, asked = memory(dut, lambda line: 7 * line, latency=1)

    async def bench(ctx):
        ctx.set(dut.base, BASE)
        ctx.set(dut.count, COUNT)
        await pulse(ctx, dut.jump)
        await ctx.tick().repeat(30)
        for index in range(DEPTH):
            ctx.set(dut.o.ready, 1)
            _, _, valid, item = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            assert valid and item.word == 7 * (BASE + index)
        ctx.set(dut.halt, 1)
        await ctx.tick()
        while ctx.get(dut.busy):
            await ctx.tick()
            assert not ctx.get(dut.o.valid)
        ctx.set(dut.halt, 0)
        await pulse(ctx, dut.jump)
        cycles = 0
        while not ctx.get(dut.o.valid):
            await ctx.tick()
            cycles += 1
        assert cycles == 4, "one to ask, two of the memory, one for the queue"

    simulate(dut, bench, background=[serve])
    assert asked[:DEPTH] == list(range(BASE, BASE + DEPTH))
    assert all(BASE <= line < BASE + COUNT for line in asked)


RUNS = [(3, 1), (9, 4), (20, 5), (1, 23), (7, 3), (100, 8)]


def line_at(line):
    return sum((4 * line + place + 1) << 128 * place for place in range(4))


def instructions(line, count):
    return [4 * line + number + 1 for number in range(count)]


class Bench:
    def __init__(self, mode, latency=5, lines=4):
        self.dut = elaborated(InstructionStreamer, 32, lines)
        self.stalls, self.rng = STALL_MODES[mode], random.Random(mode)
        self.memory, _ = memory(self.dut, line_at, latency, self.stalls["idle"])
        self.taken, self.cycles, self.hold = [], [], False

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


def test_a_kernel_is_loaded_in_two_cycles_a_word():
    """From a memory 100 cycles away, through a reader that adds four; and the compiler expects these cycles."""
    bench, count = Bench("none", latency=104, lines=ProgramParams().instruction_lines), 256

    async def host(ctx):
        await bench.run(ctx, 0, count)

    bench.simulate(host)
    cycles = bench.cycles[-1] + 1
    assert cycles - 104 <= 2 * count
    assert cycles <= instruction_cycles(count, 1, Machine()) < 1.1 * cycles
