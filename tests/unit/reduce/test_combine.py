"""The combiner: every lane sees its bytes, strobes stay with their words, and swallowed words leave no trace."""

import random

import pytest

from tilewright.golden.spec import Element, Reduction
from tilewright.hw.reduce.combine import Combiner
from tilewright.hw.reduce.float_add import FloatAdder
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

BUS_BYTES = 32


@pytest.mark.parametrize("mode", ["none", "both"])
def test_words(mode):
    rng = random.Random(1)
    dut, stalls = elaborated(Combiner, BUS_BYTES, True), STALL_MODES[mode]
    items, expected = [], []
    for _ in range(30):
        old, source = (rng.getrandbits(8 * BUS_BYTES) for _ in range(2))
        strobe, swallow = rng.getrandbits(BUS_BYTES), mode == "both" and rng.random() < 0.3
        word = {"data": source, "strobe": strobe}
        operation = {"kind": 0, "logic": 3, "compare": 1, "start": 1}  # as decoded
        reduction = {"reduction": Reduction.XOR, "element": Element.U32, "operation": operation, "swallow": swallow}
        items.append({"old": old, "word": word} | reduction)
        if not swallow:
            expected.append((old ^ source, strobe))

    async def source_process(ctx):
        await send(ctx, dut.i, items, idle=stalls["idle"], seed=2)

    async def sink(ctx):
        words, cycles = await receive(ctx, dut.o, len(expected), stall=stalls["stall"], seed=3)
        assert [(word.data, word.strobe) for word in words] == expected
        if mode == "none":
            assert cycles == list(range(FloatAdder.LATENCY, FloatAdder.LATENCY + len(expected)))
        await ctx.tick().repeat(FloatAdder.LATENCY)
        assert not ctx.get(dut.busy)

    async def busy_with_words(ctx):
        async for _, _, valid, busy in ctx.tick().sample(dut.o.valid, dut.busy):
            assert busy or not valid

    simulate(dut, source_process, sink, background=[watch_stream(dut.o), busy_with_words])
