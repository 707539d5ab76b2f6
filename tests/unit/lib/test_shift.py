"""Every distance of some numbers, with what is lost."""

import random

import pytest
from amaranth import Module, Signal

from tilewright.hw.lib.shift import shift_down
from tilewright.sim.pysim.simulate import simulate

SEED = 20261123


@pytest.mark.parametrize(("width", "bits", "unit"), [(12, 2, 1), (12, 4, 1), (12, 6, 1), (35, 3, 8), (1, 2, 1)])
def test_every_distance(width, bits, unit):
    m = Module()
    value, distance, o = Signal(width), Signal(bits), Signal(width)
    m.d.comb += o.eq(shift_down(m, value, distance, unit=unit))
    rng = random.Random(SEED)
    numbers = [0, 1, 1 << width - 1, *(rng.getrandbits(width) for _ in range(20))]

    async def testbench(ctx):
        for number in numbers:
            ctx.set(value, number)
            for places in range(1 << bits):
                ctx.set(distance, places)
                kept = number >> places * unit
                assert ctx.get(o) == kept | (kept << places * unit != number)

    print(f"seed {SEED}")
    simulate(m, testbench)
