"""Latencies of the data path on memory models in Python; integration tests compare what it moves with golden."""

import numpy as np

from support.shared_memory import LineMemory
from tilewright.golden import TensorMap, command_word
from tilewright.hw.tmau.datapath import TmauDatapath
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Opcode
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send, watch_stream

PARAMS = TMAU_PRESETS["unit"]
DESCRIPTOR = 1 << 13
TILE = TensorMap(element="f16", size=(40, 6), stride=(96,), box=(32, 5), swizzle="64B", address=0x1030)


def test_latencies_of_a_single_load():
    dut, latency = elaborated(TmauDatapath, PARAMS), 10
    contents = np.zeros(1 << 14, np.uint8)
    contents[DESCRIPTOR:][:128] = np.frombuffer(TILE.pack(), np.uint8)
    memory = AxiMemory(dut.axi, contents, latency=latency)
    shared = LineMemory(dut.smem, np.zeros(PARAMS.smem.size_bytes, np.uint8))
    accepted, landed, done = [], [], []

    async def watch(ctx):
        cycle = 0
        ctx.set(dut.smem.landed.ready, 1)
        takes, lands = dut.commands.valid & dut.commands.ready, dut.smem.landed.valid
        async for _, _, *strobes in ctx.tick().sample(takes, lands, dut.control.done.valid):
            for log, strobe in zip((accepted, landed, done), strobes, strict=True):
                log.extend([cycle] * strobe)
            cycle += 1

    async def issue(ctx):
        for number in (1, 2):
            word = command_word(opcode=Opcode.LOAD, descriptor=DESCRIPTOR, coords=(0, 0), smem=0, signal=1)
            await send(ctx, dut.commands, [word])
            while len(done) < number:
                await ctx.tick()
        await ctx.tick()
        assert ctx.get(dut.control.idle)

    watchers = [watch_stream(port) for port in (dut.smem.writes, dut.smem.fetch.rows, dut.smem.landed)]
    simulate(dut, issue, background=[memory.serve, shared.serve, watch, *watchers])
    data = [cycle for cycle, burst_id, _, _ in memory.requests if burst_id == 0]
    fetch = [cycle for cycle, burst_id, _, _ in memory.requests if burst_id == 1]
    miss, hit = accepted
    assert fetch == [miss + 4, miss + 5], "a miss asks for the descriptor four cycles later, in bursts of max_burst"
    round_trip = latency + 8 - 1  # latency, and the beats of a descriptor on a 16-byte bus
    assert data[0] - miss == 10 + round_trip + 23
    assert min(cycle for cycle in data if cycle > hit) - hit == 10, "a hit asks for data ten cycles after the command"
    last_line = shared.writes[-1][0]
    assert last_line - memory.last_beat == 2, "the last bytes are written two cycles after the last beat"
    # The completion comes a cycle later, and goes through a buffer and the guard.
    assert (landed[-1] - last_line, done[-1] - last_line) == (3, 4)
