"""Lines reach memory whole, with the bytes that were written; every answer is told."""

import random

import numpy as np
import pytest

from tilewright.hw.cluster.l2.params import Geometry
from tilewright.hw.cluster.l2.write_back import WriteBack
from tilewright.sim.pysim.axi_channel import axi_channel
from tilewright.sim.pysim.axi_memory import AxiMemory
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, watch_stream

SEED = 20261124
GEOMETRY = Geometry(addr_width=16, data_width=32, id_width=3, sets=4, ways=2, misses=4, line_bytes=16)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_lines_reach_memory(mode):
    dut, rng, stalls = elaborated(WriteBack, GEOMETRY), random.Random(SEED), STALL_MODES[mode]
    contents = np.zeros(4096, np.uint8)
    expected, told = contents.copy(), []
    memory = AxiMemory(dut.axi, contents, stall=stalls["stall"])
    memory.failing = {16 * 7}
    lines = [rng.randrange(32) for _ in range(40)] + [7]

    async def source(ctx):
        for line in lines:
            for number in range(4):
                # A word may come in a cycle in which there was room two cycles before: one step is under way.
                while not ctx.get(dut.room) or rng.random() < stalls["idle"]:
                    ctx.set(dut.victims.valid, 0)
                    await ctx.tick()
                word, strobe, place = rng.getrandbits(32), rng.randrange(16), 16 * line + 4 * number
                ctx.set(dut.victims.valid, 1)
                ctx.set(
                    dut.victims.payload,
                    {"data": word, "strb": strobe, "line": line, "first": number == 0, "last": number == 3},
                )
                for byte in range(4):
                    if strobe >> byte & 1 and place != 16 * 7:
                        expected[place + byte] = word >> 8 * byte & 0xFF
                await ctx.tick()
        ctx.set(dut.victims.valid, 0)
        while len(told) < len(lines):
            await ctx.tick()

    async def tell(ctx):
        async for _, _, arrived, failed in ctx.tick().sample(dut.arrived, dut.failed):
            if arrived:
                told.append(failed)

    print(f"seed {SEED}")
    rules = [watch_stream(axi_channel(dut.axi, name), name) for name in ("aw", "w")]
    simulate(dut, source, background=[memory.serve_writes, tell, *rules])
    assert (contents == expected).all()
    assert [address // 16 for _, _, address, _ in memory.writes] == lines
    assert told == [int(line == 7) for line in lines]


def test_one_word_a_cycle():
    dut, cycles = elaborated(WriteBack, GEOMETRY), []

    async def run(ctx):
        ctx.set(dut.axi.awready, 1)
        ctx.set(dut.axi.wready, 1)
        await ctx.tick()
        for number in range(40):
            assert ctx.get(dut.room)
            ctx.set(dut.victims.valid, 1)
            ctx.set(dut.victims.payload, {"first": number % 4 == 0, "last": number % 4 == 3})
            cycles.append(ctx.get(dut.axi.wvalid))
            await ctx.tick()

    simulate(dut, run)
    assert cycles == [0] + [1] * 39


def test_no_more_room_than_there_is():
    """Memory takes nothing: words come while there is room, and two more; every one of them has a place."""
    dut = elaborated(WriteBack, GEOMETRY)

    async def run(ctx):
        await ctx.tick()
        count, more = 0, 3
        while more:
            more -= not ctx.get(dut.room)
            ctx.set(dut.victims.valid, 1)
            ctx.set(dut.victims.payload, {"first": count % 4 == 0, "last": count % 4 == 3})
            assert ctx.get(dut.words.i.ready)
            assert count % 4 or ctx.get(dut.lines.i.ready)
            count += 1
            await ctx.tick()
        assert count >= 8

    simulate(dut, run)
