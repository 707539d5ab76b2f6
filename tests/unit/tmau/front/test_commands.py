"""The queue of commands: order, rate, and what it tells of the next one."""

import random

import pytest

from tilewright.hw.tmau.front.commands import CommandQueue
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261127


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize(("depth", "block"), [(2, False), (4, False), (64, False), (2, True), (8, True), (64, True)])
def test_order(depth, block, mode):
    dut, rng = CommandQueue(depth, block=block), random.Random(SEED)
    items = [{"opcode": rng.getrandbits(4), "descriptor": rng.getrandbits(64), "tag": number} for number in range(60)]

    async def source(ctx):
        await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def sink(ctx):
        came, taken = await receive(ctx, dut.o, len(items), stall=STALL_MODES[mode]["stall"], seed=SEED)
        assert [(one.opcode, one.descriptor, one.tag) for one in came] == [tuple(item.values()) for item in items]
        if mode == "none":
            assert taken == list(range(1, 61))

    async def watch(ctx):
        told, took, level = None, False, 0
        ends = (dut.i.valid, dut.i.ready, dut.o.valid, dut.o.ready, dut.o.p.descriptor)
        async for *_, comes, ready, valid, goes, descriptor, moves, ahead, now in ctx.tick().sample(
            *ends, dut.moves, dut.ahead, dut.level
        ):
            assert now == level
            level += (comes and ready) - (valid and goes)
            assert told is None or not valid or descriptor == told
            told = ahead if moves and not took else None
            took = valid and goes

    simulate(dut, source, sink, background=[watch_stream(dut.o), watch])
