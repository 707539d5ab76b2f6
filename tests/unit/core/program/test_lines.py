"""Lines come to who asked for them, in order, whatever the bus and the bursts are like."""

import numpy as np
import pytest

from tilewright.hw.core.program.lines import READER_ID, LineReader
from tilewright.sim.pysim.axi_memory import AxiMemory
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, send

CONTENTS = np.random.default_rng(1).integers(256, size=4096, dtype=np.uint8)
ASKED = [[0, 5, 9, 63, 1, 2, 3, 4], [10, 11, 11, 62, 0, 60]]


def word_at(line):
    return int.from_bytes(CONTENTS[64 * line :][:64].tobytes(), "little")


def run(dut, mode, failing=()):
    memory = AxiMemory(dut.axi, CONTENTS, stall=STALL_MODES[mode]["stall"], seed=2)
    memory.failing |= set(failing)
    got = [[], []]

    def asker(user):
        async def ask(ctx):
            await send(ctx, dut.requests[user], ASKED[user], idle=STALL_MODES[mode]["idle"], seed=user)

        return ask

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


@pytest.mark.parametrize("place", range(0, 64, 16))
def test_a_beat_that_fails(place):
    """The line fails whichever of its beats does, and no other."""
    got, _ = run(elaborated(LineReader, 32, 16, 4, 4), "none", [64 * 9 + place])
    assert [error for _, error, _ in got[0]] == [0, 0, 1, 0, 0, 0, 0, 0]
    assert not any(error for _, error, _ in got[1])


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
