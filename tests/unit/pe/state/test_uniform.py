"""Uniform registers against a list."""

import random

import pytest

from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.state.uniform import UniformRegisters
from tilewright.sim.pysim.simulate import elaborated, simulate


@pytest.mark.parametrize("registers", [8, 16])
def test_last_write_is_read(registers):
    params = PE_PRESETS["unit"].replace(uniform_regs=registers)
    dut = elaborated(UniformRegisters, params)
    rng = random.Random(registers)
    model = [None] * registers

    async def testbench(ctx):
        for _ in range(400):
            number = rng.randrange(registers)
            ctx.set(dut.number, number)
            assert ctx.get(dut.is_set) == (model[number] is not None)
            if model[number] is not None:
                assert ctx.get(dut.exists) == (model[number] < params.segments)
                if model[number] < params.segments:
                    assert ctx.get(dut.segment) == model[number]
            value = rng.choice([rng.randrange(params.segments), params.segments, 1 << 31, rng.getrandbits(32)])
            write = rng.random() < 0.2
            ctx.set(dut.value, value)
            ctx.set(dut.write, write)
            await ctx.tick()
            ctx.set(dut.write, 0)
            if write:
                model[number] = value

    simulate(dut, testbench)
