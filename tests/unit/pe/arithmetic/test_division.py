"""Division of all threads: each gets its result, when it says so, and again after a start that came early."""

import numpy as np
import pytest

from support.pe_division import INTEGERS, divide, integer_operands
from support.pe_floats import operands
from tilewright.golden.pe.floats import compute
from tilewright.hw.pe.arithmetic.division import DivideRow
from tilewright.spec.arithmetic import Function
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import set_together

SEED = 60
MOST_CYCLES = 24


def row_of(rng, function, threads):
    """Operands of all threads, and their results."""
    if function in INTEGERS:
        a, b = (words[-threads:] for words in integer_operands(rng, threads))
        return a, b, divide(function, a, b)
    a, b = (words[-threads:] for words in operands(rng, function, threads)[:2])
    return a, b, compute(function, a, b)


@pytest.mark.parametrize("threads", [1, 3, 10])
def test_rows(threads):
    rng = np.random.default_rng(SEED)
    dut = elaborated(DivideRow, threads, integers=True, floats=True)
    work = [function for function in (*INTEGERS, Function.FDIV, Function.FSQRT) for _ in range(3)]
    assert dut.cycles <= MOST_CYCLES

    async def start(ctx, function, a, b):
        set_together(ctx, (dut.start, 1), (dut.function, function), (dut.a, a.tolist()), (dut.b, b.tolist()))
        await ctx.tick()
        # Nothing is taken without a start.
        noise = rng.integers(0, 1 << 32, (2, threads)).tolist()
        set_together(ctx, (dut.start, 0), (dut.function, Function.REM), (dut.a, noise[0]), (dut.b, noise[1]))

    async def testbench(ctx):
        assert ctx.get(dut.done)
        for function in rng.permutation(work).tolist():
            if rng.random() < 0.3:
                await start(ctx, Function.DIV, *row_of(rng, Function.DIV, threads)[:2])
                await ctx.tick().repeat(int(rng.integers(1, dut.cycles)))
            a, b, expected = row_of(rng, function, threads)
            await start(ctx, function, a, b)
            for _ in range(dut.cycles - 1):
                assert not ctx.get(dut.done)
                await ctx.tick()
            for _ in range(int(rng.integers(1, 4))):
                assert ctx.get(dut.done)
                assert list(ctx.get(dut.o)) == expected.tolist(), Function(function)
                await ctx.tick()

    simulate(dut, testbench)
