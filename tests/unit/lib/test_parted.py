"""A queue of which a part lies in a block memory: whatever lies where comes out with its item."""

import random

import pytest
from amaranth.lib import data

from tilewright.hw.lib.parted import PartedQueue
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261127
SHAPE = data.StructLayout({"a": 5, "b": data.StructLayout({"c": 9, "d": 3}), "e": 7})


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("block", [("a",), ("b.d", "a"), ("b", "e"), None])
def test_order_and_rate(block, mode):
    dut, rng = elaborated(PartedQueue, SHAPE, 4, block), random.Random(SEED)
    items = [
        {"a": rng.getrandbits(5), "b": {"c": rng.getrandbits(9), "d": rng.getrandbits(3)}, "e": number}
        for number in range(100)
    ]

    async def source(ctx):
        await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def sink(ctx):
        came, taken = await receive(ctx, dut.o, len(items), stall=STALL_MODES[mode]["stall"], seed=SEED)
        assert came == [SHAPE.const(item) for item in items]
        if mode == "none":
            assert taken == list(range(1, 101))

    simulate(dut, source, sink, background=[watch_stream(dut.o)])


def test_refuses_a_member_that_there_is_not():
    with pytest.raises(KeyError):
        PartedQueue(SHAPE, 4, ("b.x",))
