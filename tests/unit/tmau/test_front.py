"""The queue of commands: order, rate, and what it tells of the next one.

Commands of all setups are run by tests/integration/tmau/test_mixed.py; test_datapath.py shows their latency.
"""

import random

import pytest

from support.streams import transact
from tilewright.hw.tmau.front import CommandQueue
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 20261127


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize(("depth", "block"), [(2, False), (4, False), (64, False), (2, True), (8, True), (64, True)])
def test_order(depth, block, mode):
    dut, rng = CommandQueue(depth, prefer_bram=block), random.Random(SEED)
    items = [{"opcode": rng.getrandbits(4), "descriptor": rng.getrandbits(64), "tag": number} for number in range(60)]

    async def watch(ctx):
        told, took, level = None, False, 0
        ends = (dut.i.valid, dut.i.ready, dut.o.valid, dut.o.ready, dut.o.payload.descriptor)
        async for *_, comes, ready, valid, goes, descriptor, moves, ahead, now in ctx.tick().sample(
            *ends, dut.moves, dut.ahead, dut.level
        ):
            assert now == level
            level += (comes and ready) - (valid and goes)
            assert told is None or not valid or descriptor == told
            told = ahead if moves and not took else None
            took = valid and goes

    came, cycles = transact(dut, {"i": items}, {"o": 60}, mode, background=[watch])
    assert [(item.opcode, item.descriptor, item.tag) for item in came["o"]] == [tuple(item.values()) for item in items]
    assert mode != "none" or cycles["o"] == list(range(1, 61))
