"""Sums of floats in sixteen bytes against the golden model, in any order of types, with pauses."""

import random

import numpy as np

from tilewright.golden.spec import Element, Reduction
from tilewright.golden.tmau.reduce import reduce
from tilewright.hw.reduce.float_sums import FloatSums
from tilewright.sim.pysim.ports import set_together
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 31
FLOATS = (Element.F16, Element.BF16, Element.F32)


def test_sums_of_three_types():
    dut = elaborated(FloatSums)
    rng = random.Random(SEED)
    work = [(rng.choice(FLOATS), rng.randbytes(16), rng.randbytes(16)) for _ in range(200)]
    came = []

    async def testbench(ctx):
        for element, old, source in (*work, *[(Element.F16, bytes(16), bytes(16))] * FloatSums.LATENCY):
            while rng.random() < 0.2:
                set_together(ctx, (dut.enable, 0), (dut.old, rng.getrandbits(128)), (dut.element, rng.getrandbits(4)))
                await ctx.tick()
            operands = ((dut.old, int.from_bytes(old, "little")), (dut.source, int.from_bytes(source, "little")))
            set_together(ctx, (dut.enable, 1), (dut.element, element), *operands)
            await ctx.tick()
            came.append(ctx.get(dut.o))

    print(f"seed {SEED}")
    simulate(dut, testbench, deadline=1000)
    for (element, *operands), got in zip(work, came[FloatSums.LATENCY - 1 :], strict=False):
        expected = reduce(Reduction.ADD, element, *(np.frombuffer(side, np.uint8) for side in operands))
        assert got == int.from_bytes(expected.tobytes(), "little"), (element, operands)
