"""Where instructions go, and what operations they become."""

import random

from tilewright.golden.pe.checks import instruction_word as word
from tilewright.hw.pe.arithmetic.router import Router
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.arithmetic import FUNCTIONS, Function, Operand
from tilewright.spec.pe import Compare, Operation, Source
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import set_together

PARAMS = PE_PRESETS["unit"]
UNIFORM, CORE = 0x12345678, 5
GUARD = {"guard": 1, "predicate": 3}


def arith(function, rng):
    """An instruction, and what is expected of its operation."""
    info, fields = (
        FUNCTIONS[function],
        {"function": function, "part": rng.randrange(FUNCTIONS[function].parts), "rd": 7},
    )
    fields |= {"ps": 5} if info.selects else {}
    fields |= {f"r{name}": rng.randrange(1, 32) for name in "ac" if name in info.operands}
    b = rng.choice([*Operand]) if "b" in info.operands else Operand.REGISTER
    number = rng.getrandbits(32) if b == Operand.IMMEDIATE else 0
    fields |= {"b": b, "imm": number, "rb": 4 if "b" in info.operands and b != Operand.IMMEDIATE else 0}
    wanted = {name: fields[name] for name in ("function", "part")}
    wanted |= {"target": 7, "selects": info.selects, "joins": info.selects and info.predicate}
    wanted |= {"reads": sum(1 << n for n, name in enumerate("abc")
                            if name in info.operands and (name != "b" or b == Operand.REGISTER))}  # fmt: skip
    wanted |= {"scalar": UNIFORM if b == Operand.UNIFORM else number, "to_predicate": info.predicate, "thread": 0}
    slow = (Function.DIV, Function.DIVU, Function.REM, Function.REMU, Function.FDIV, Function.FSQRT)
    wanted |= {"iterates": function in slow, "alternates": function == Function.QDIV}
    wanted |= {name: fields.get(f"r{name}", 0) for name in "abc"}
    return word(Operation.ARITH, **fields | GUARD), b == Operand.UNIFORM, wanted


def cases():
    """Instructions that the arithmetic performs, whether one names a uniform register, and what operations they are."""
    rng = random.Random(60)
    made = [arith(function, rng) for function in FUNCTIONS for _ in range(3)]
    nothing = {"part": 0, "selects": 0, "joins": 0, "iterates": 0, "alternates": 0}
    for source, core in ((Source.GIVEN, 0), (Source.GIVEN, 1), (Source.THREAD, 0)):
        mov = word(Operation.MOV, source=source, core=core, rd=9, imm=0x70, **GUARD)
        scalar = 0 if source == Source.THREAD else 0x70 | core * CORE
        wanted = {
            "function": Function.ADD,
            "thread": source,
            "scalar": scalar,
            "reads": 0,
            "target": 9,
            "to_predicate": 0,
        }
        made.append((mov, False, nothing | wanted))
        for compare in Compare:
            setp = word(Operation.SETP, source=source, compare=compare, rs=11, pd=6, imm=0x33, **GUARD)
            wanted = {"function": Function[compare.name], "thread": source, "scalar": 0x33, "to_predicate": 1}
            wanted |= {"reads": source == Source.GIVEN, "target": 6} | ({"a": 11} if source == Source.GIVEN else {})
            made.append((setp, False, nothing | wanted))
    return made


def test_operations():
    dut = Router(PARAMS, cores=2)

    async def testbench(ctx):
        set_together(ctx, (dut.rests, 1), (dut.uniform, UNIFORM), (dut.uniform_set, 1), (dut.core_number, CORE))
        set_together(ctx, (dut.i.valid, 1), (dut.operations.ready, 1))
        for instruction, by_uniform, wanted in cases():
            decoded = {"word": instruction, "arithmetic": 1, "by_uniform": by_uniform}
            set_together(ctx, (dut.i.payload, decoded))
            assert ctx.get(dut.operations.valid) and ctx.get(dut.passes) and ctx.get(dut.i.ready)
            assert not ctx.get(dut.others.valid)
            operation = ctx.get(dut.operations.payload)
            assert {name: operation[name] for name in wanted} == wanted, hex(instruction)
            assert (operation.guard, operation.predicate) == (1, 3)

    simulate(dut, testbench)


def test_what_goes_to_issue():
    """Other instructions; one whose uniform register is not set; all while the core is stopped, or Issue is at work."""
    dut = Router(PARAMS, cores=2)
    add = word(Operation.ARITH, function=Function.ADD, b=Operand.UNIFORM, rb=1)

    async def testbench(ctx):
        for arithmetic, is_set, stopped, rests in ((0, 1, 0, 1), (1, 0, 0, 1), (1, 1, 1, 1), (1, 1, 0, 0)):
            decoded = {"word": add, "arithmetic": arithmetic, "by_uniform": 1}
            set_together(
                ctx, (dut.i.valid, 1), (dut.i.payload, decoded), (dut.uniform_set, is_set), (dut.stopped, stopped),
                (dut.rests, rests), (dut.operations.ready, 1), (dut.others.ready, 0),
            )  # fmt: skip
            assert ctx.get(dut.others.valid) and not ctx.get(dut.operations.valid)
            assert not ctx.get(dut.passes) and not ctx.get(dut.i.ready)
            ctx.set(dut.others.ready, 1)
            assert ctx.get(dut.i.ready)

    simulate(dut, testbench)
