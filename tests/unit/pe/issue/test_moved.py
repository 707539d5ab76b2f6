"""First and last register that an instruction moves, against a list."""

import random

import pytest

from tilewright.golden.spec.pe.instruction import INSTRUCTIONS, Operation
from tilewright.hw.pe.issue.moved import MovedRegisters
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate

TMAU_PRESETS = {"ragged": PE_PRESETS["unit"].replace(threads=7), "full": PE_PRESETS["full"]}


@pytest.mark.parametrize("preset", TMAU_PRESETS)
def test_registers(preset):
    params = TMAU_PRESETS[preset]
    dut = elaborated(MovedRegisters, params)
    rng = random.Random(f"moved {preset}")

    def instruction():
        operation = rng.choice([Operation.MM, Operation.LD, Operation.ST, Operation.MOV, Operation.SETP])
        name = {Operation.MM: "rc", Operation.ST: "rs", Operation.SETP: "rs"}.get(operation, "rd")
        first = rng.choice([rng.randrange(params.regs), params.regs - 1])
        if operation == Operation.MM:
            first = rng.choice([first, params.regs, rng.getrandbits(16)])
            ka = rng.randrange(1, 5)
            columns = range(0, params.threads, ka)
            moved = [min(first + column // ka, params.regs - 1) for column in columns]
            return INSTRUCTIONS[operation].pack(opcode=operation, rc=first, ka=ka), moved
        fields, count = {name: first}, 1
        if operation in (Operation.LD, Operation.ST):
            fields["n"] = count = rng.randrange(1, params.regs - first + 1)
        return INSTRUCTIONS[operation].pack(opcode=operation, **fields), range(first, first + count)

    async def testbench(ctx):
        for _ in range(500):
            word, moved = instruction()
            ctx.set(dut.word, word)
            await ctx.tick()
            ctx.set(dut.word, rng.getrandbits(128))
            found = ctx.get(dut.o)
            assert (found.first, found.last) == (min(moved), max(moved))

    simulate(dut, testbench)
