"""The disassembler of the processing engine: every value of every field comes back, and no illegal word has a line."""

import random

import pytest

from tilewright.golden.spec.pe.instruction import GUARDED, INSTRUCTIONS, Compare, MmType, Operation, Source
from tilewright.sim.asm.pe.assembler import BITS, assemble_program, disassemble_instruction

SEED = 11

#: Lines as they are printed.
CANONICAL = [
    "mm8.ka2.kb2.t1.sa.ub r0, ur4:rf290:0x0, r256",
    "mm8.sa.sb r0, ur4:rf290:0x0, r256",
    "@p1, mm16.ka4.f r0, ur4:rf290:0xffffffff, r256",
    "mm16.kb2.t1.bf r65535, ur255:rf65535:0x0, r256",
    "mm16.ua.ub r0, ur4:rf290:0x0, r256",
    "ld r256, ur2:rf290:0x0, 2",
    "@p0, st r0, ur3:rf290:0x0, 16",
    "mov r5, 0x10",
    "mov r5, tid",
    "movu ur4, 3",
    "setp.lt p1, r5, 0x10",
    "setp.geu p1, tid, 4",
    "bar.wait 0x100, 1",
    "fence",
    "halt",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_line_comes_back_as_it_is(text):
    assert disassemble_instruction(*assemble_program(text)) == text


def legal(operation, fields):
    """Whether a line says all of these fields: nothing is stored where it means nothing."""
    if not fields.get("guard") and fields.get("predicate"):
        return False
    if fields.get("source") == Source.THREAD and (fields["imm"] if operation == Operation.MOV else fields["rs"]):
        return False
    return fields.get("n", 1) > 0


def numbers_of(field):
    """All values of a small field, or of an enumeration; the first, the last and some others of a large one."""
    if field.enum:
        return [int(member) for member in field.enum]
    low, high = field.range
    if high - low < 256:
        return range(low, high + 1)
    return [low, low + 1, *(1 << bit for bit in range(1, field.width)), high - 1, high]


@pytest.mark.parametrize("operation", Operation)
def test_every_value_of_every_field_comes_back(operation):
    fmt = INSTRUCTIONS[operation]
    rng = random.Random(SEED)
    for swept in fmt.fields[1:]:
        for number in numbers_of(swept):
            fields = {field.name: rng.choice(numbers_of(field)) for field in fmt.fields[1:]}
            fields[swept.name] = number
            if swept.name == "predicate":
                fields["guard"] = 1
            elif fields.get("guard") == 0:
                fields["predicate"] = 0
            if "source" in fields and swept.name in ("imm", "rs"):
                fields["source"] = Source.GIVEN
            elif fields.get("source") == Source.THREAD:
                fields["imm" if operation == Operation.MOV else "rs"] = 0
            word = fmt.pack(opcode=operation, **fields)
            text = disassemble_instruction(word)
            assert text.startswith("word") != legal(operation, fields), (text, fields)
            assert assemble_program(text) == [word], text


def test_every_mm_comes_back():
    fmt = INSTRUCTIONS[Operation.MM]
    for kind in MmType:
        for bits in range(1 << 6):
            fields = {"ka": 1 + bits % 4, "kb": 1 + (bits >> 2) % 4, "transpose": bits >> 4 & 1, "guard": bits >> 5}
            word = fmt.pack(opcode=Operation.MM, type=kind, rc=1, ra=2, rf=3, ur=4, imm=5, **fields)
            text = disassemble_instruction(word)
            assert not text.startswith("word")
            assert assemble_program(text) == [word]


def test_any_word_comes_back():
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    named = 0
    for _ in range(3000):
        word = rng.getrandbits(BITS) & ~0xFF | rng.randrange(12)
        for operation in Operation:
            if word & 0xFF == operation and rng.random() < 0.9:
                word &= ~INSTRUCTIONS[operation].reserved_mask
        text = disassemble_instruction(word)
        assert assemble_program(text) == [word]
        named += not text.startswith("word")
    assert named > 500


def test_no_illegal_word_has_a_line():
    """Unknown operations, bits of no field, unknown members of enumerations, a count of 0, a predicate of no guard."""
    illegal = [opcode for opcode in range(256) if opcode not in list(Operation)]
    for operation, fmt in INSTRUCTIONS.items():
        names = {field.name for field in fmt.fields}
        good = fmt.pack(opcode=operation, **{name: 1 for name in ("n", "ka", "kb") if name in names})
        assert not disassemble_instruction(good).startswith("word")
        illegal += [good | 1 << bit for bit in range(BITS) if fmt.reserved_mask >> bit & 1]
        if operation in GUARDED:
            illegal.append(good | 1 << fmt["predicate"].lsb)
        if "n" in names:
            illegal.append(good ^ 1 << fmt["n"].lsb)
    mm, setp = INSTRUCTIONS[Operation.MM], INSTRUCTIONS[Operation.SETP]
    illegal += [Operation.MM | kind << mm["type"].lsb for kind in range(len(MmType), 16)]
    illegal += [Operation.SETP | compare << setp["compare"].lsb for compare in range(len(Compare), 16)]
    for word in illegal:
        assert disassemble_instruction(word) == f"word {word:#x}"
