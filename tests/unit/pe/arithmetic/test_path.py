"""Random operations that depend on each other, with disturbed ports, against the golden engine."""

import random

import numpy as np
import pytest

from support.pe_arithmetic import FREE, Arithmetic, disturb, random_operation
from tilewright.golden import Pe
from tilewright.golden.pe.checks import instruction_word as word
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.arithmetic import FUNCTIONS
from tilewright.spec.pe import Compare, Operation
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send

UNIT = PE_PRESETS["unit"].replace(types=("i8",))
#: Operations take less, and more, cycles than multiplies.
SIZES = {
    "integers": UNIT.replace(threads=6, units=("alu", "lookup")),
    "all": UNIT,
    "divisions": UNIT.replace(units=("alu", "div")),
}


def beginning(rng, threads):
    """Numbers in all registers that operations use, and in all predicates."""
    words = [word(Operation.MOV, rd=register, imm=rng.getrandbits(32)) for register in range(FREE)]
    words += [word(Operation.MOV, rd=register, source=1) for register in range(0, FREE, 5)]
    return words + [
        word(Operation.SETP, pd=number, compare=Compare.GEU, source=1, imm=rng.randrange(threads))
        for number in range(8)
    ]


@pytest.mark.parametrize("disturbed", [False, True], ids=["alone", "disturbed"])
@pytest.mark.parametrize("name", SIZES)
def test_operations(name, disturbed):
    params, rng = SIZES[name], random.Random(f"path {name}")
    functions = [
        function for function, info in FUNCTIONS.items() if info.unit in params.units and info.unit != "lookup"
    ]
    registers = rng.choice((6, FREE))
    words = beginning(rng, params.threads) + [random_operation(rng, functions, registers) for _ in range(250)]
    golden = Pe(np.zeros(1024, np.uint8), params)
    golden.run(words)
    assert not golden.faults
    top = elaborated(Arithmetic, params)

    async def testbench(ctx):
        await send(ctx, top.router.i, [{"word": each, "arithmetic": 1} for each in words])
        await ctx.tick().repeat(3)
        while not ctx.get(top.start.quiet):
            await ctx.tick()
        for register in range(FREE):
            row = ctx.get(top.registers.banks[register % 2].data[register // 2])
            seen = [row >> 32 * thread & 0xFFFFFFFF for thread in range(params.threads)]
            assert seen == golden.registers[:, register].tolist(), f"register {register}"
        for number in range(8):
            row = ctx.get(top.predicates.memory.data[number])
            assert row == sum(bool(value) << thread for thread, value in enumerate(golden.predicates[number]))

    simulate(top, testbench, background=[disturb(top, params, name)] if disturbed else [])
