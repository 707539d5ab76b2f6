"""Rows of the kernel: what was written comes two cycles after it is read, and in pooling the fill."""

import random

import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS, KERNEL_ROWS
from tilewright.hw.conv.fetch.kernel import KernelRows
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 47


@pytest.mark.parametrize("preset", ["unit", "full"])
def test_rows(preset):
    """A write and reads a cycle; what is written can be read in the same one, for the memory is read a cycle later."""
    params, rng = ConvUnitParams(CONV_PRESETS[preset]), random.Random(SEED)
    dut, bits = elaborated(KernelRows, params), 8 * params.conv.row_bytes
    held, wanted = {}, []

    async def bench(ctx):
        for _ in range(200):
            number, row = rng.randrange(KERNEL_ROWS), rng.getrandbits(bits)
            lanes = [row >> at & (1 << 128) - 1 for at in range(0, bits, 128)]
            enable = rng.getrandbits(1)
            ctx.set(dut.write, {"row": number, "data": lanes, "enable": enable})
            reads = [rng.choice(list(held) or [0]) for _ in range(params.halves)]
            ctx.set(dut.read, reads)
            if enable:
                held[number] = row
            wanted.append([held.get(read) for read in reads])
            await ctx.tick()
            for want, found in zip(wanted[-2] if len(wanted) > 2 else (), ctx.get(dut.rows), strict=False):
                assert want in (None, found)

    simulate(dut, bench)


def test_fill():
    params = ConvUnitParams(CONV_PRESETS["unit"])
    dut = elaborated(KernelRows, params)

    async def bench(ctx):
        ctx.set(dut.plan, {"pool": 1, "k_fill": 0x1234})
        await ctx.tick().repeat(2)
        assert list(ctx.get(dut.rows)) == [int("1234" * 8, 16)] * 2

    simulate(dut, bench)
