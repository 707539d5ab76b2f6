"""When operations start: one a cycle, unless one needs a result, a third operand of a bank, or a unit that is busy."""

import pytest

from support.pe_arithmetic import Arithmetic
from tilewright.hw.pe.arithmetic.path import QUOTIENTS_EVERY
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.asm.pe import assemble_program
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send

PARAMS = PE_PRESETS["unit"].replace(types=("i8",))


def starts(text, **ports):
    """Cycles in which the operations of a program start, from the first on."""
    top, cycles = elaborated(Arithmetic, PARAMS), []
    words = assemble_program(text)

    async def watch(ctx):
        cycle = 0
        while True:
            for name, value in ports.items():
                ctx.set(getattr(top.start, name), value)
            if ctx.get(top.start.starts):
                cycles.append(cycle)
            cycle += 1
            await ctx.tick()

    async def testbench(ctx):
        await send(ctx, top.router.i, [{"word": each, "arithmetic": 1} for each in words])
        await ctx.tick().repeat(80)
        assert ctx.get(top.start.quiet) == (len(cycles) == len(words))

    simulate(top, testbench, background=[watch])
    return [cycle - cycles[0] for cycle in cycles], top.latency


def test_independent_operations_start_one_a_cycle():
    text = "\n".join(f"add r{n % 8}, r{8 + n}, r{9 + n}" for n in range(12))
    assert starts(text)[0] == list(range(12))


@pytest.mark.parametrize("use", ["add r2, r1, 1", "add r2, r3, r1", "mad r2, r3, r4, r1"])
def test_a_result_can_be_read_in_the_cycle_after_its_write(use):
    (first, second), latency = starts(f"add r1, r5, r6\n{use}")
    assert second - first == latency + 1


def test_a_predicate_can_be_read_as_early():
    for use in ("@p1, add r2, r3, 1", "sel r2, p1, r3, r4", "pand p2, p3, p1"):
        (first, second), latency = starts(f"lt p1, r5, r6\n{use}")
        assert second - first == latency + 1, use


def test_three_operands_of_one_bank_take_a_cycle_more():
    text = "mad r1, r2, r4, r6\nmad r3, r8, r10, r13\nmad r5, r9, r8, r10\nmad r7, r9, r11, r13"
    assert starts(text)[0] == [0, 1, 2, 4]


def test_short_quotients():
    cycles, _ = starts("qdiv r1, r2, r5, r7\nqdiv r3, r4, r5, r7\nadd r6, r2, r4\nqdiv r8, r2, r5, r7")
    assert cycles == [0, QUOTIENTS_EVERY, QUOTIENTS_EVERY + 1, 2 * QUOTIENTS_EVERY]


def test_divisions_run_beside_other_operations():
    text = "divu r1, r2, r3\n" + "\n".join(f"add r{4 + n}, r2, r3" for n in range(8)) + "\nadd r20, r1, 1"
    cycles, latency = starts(text)
    assert cycles[:9] == list(range(9))
    assert latency < cycles[9] <= 24 + latency + 4, "at most 24 cycles for the division"
    two, _ = starts("divu r1, r2, r3\ndivu r4, r2, r3")
    assert two[1] <= 24 + 4


def test_a_bank_that_a_multiply_will_write():
    assert starts("add r2, r5, r6\nadd r4, r5, r6", writes_ahead=0b10)[0] == [0, 1]
    assert starts("add r1, r5, r6", writes_ahead=0b10)[0] == []
