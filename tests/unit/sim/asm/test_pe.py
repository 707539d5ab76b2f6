"""The text of instructions: words by hand, each value of each field in both directions, and refusals."""

import random
from itertools import permutations, product

import pytest

from tilewright.errors import UsageError
from tilewright.sim.asm.pe import BITS, assemble_program, disassemble_instruction
from tilewright.spec.arithmetic import FUNCTIONS, Function, Operand
from tilewright.spec.pe import GUARDED, INSTRUCTIONS, Compare, MmType, Operation, Source, Target
from tilewright.tools.cli.main import main

SEED = 11
ADDRESS = {"ur": 4, "rf": 290, "imm": 0}
#: Integers, and binary32 numbers of all kinds.
IMMEDIATES = [0, 1, 0xFFFFFFFF, 0x3F800000, 0xBE4CCCCD, 0x7F800000, 0x7FC00000, 0x00000001, 0x7F7FFFFF, 0x80000000]
IMM = {"b": Operand.IMMEDIATE, "imm": 0}

#: Text, operation, fields.
LINES = [
    ("mm8.ka2.kb2.t1.sa.ub r0, ur4:rf290:0x0, r256", Operation.MM,
     {"ka": 2, "kb": 2, "transpose": 1, "type": MmType.S8U8, "rc": 0, "ra": 256} | ADDRESS),
    ("@p1, mm8.ka2.kb2.t1.sa.ub  r0, ur4:rf290:0x00, r256", Operation.MM,
     {"guard": 1, "predicate": 1, "ka": 2, "kb": 2, "transpose": 1, "type": MmType.S8U8, "rc": 0, "ra": 256} | ADDRESS),
    ("mm8 r1, ur4:rf290:0, r2", Operation.MM, {"ka": 1, "kb": 1, "type": MmType.S8S8, "rc": 1, "ra": 2} | ADDRESS),
    ("mm8.ub r1, ur4:rf290:0, r2", Operation.MM, {"ka": 1, "kb": 1, "type": MmType.S8U8, "rc": 1, "ra": 2} | ADDRESS),
    ("mm16.kb3.f r1,ur4:rf290:0,r2", Operation.MM, {"ka": 1, "kb": 3, "type": MmType.F16, "rc": 1, "ra": 2} | ADDRESS),
    ("mm16.t0.bf r1, ur4:rf290:0, r2", Operation.MM, {"ka": 1, "kb": 1, "type": MmType.BF16, "rc": 1, "ra": 2}
     | ADDRESS),
    ("mm16.ua.ub r1, ur4:rf290:0, r2", Operation.MM, {"ka": 1, "kb": 1, "type": MmType.U16U16, "rc": 1, "ra": 2}
     | ADDRESS),
    ("ld r256, ur4:rf290:0x0, 2", Operation.LD, {"rd": 256, "n": 2} | ADDRESS),
    ("st r0, ur4:rf290:0xffffffff, 16", Operation.ST, {"rs": 0, "n": 16} | ADDRESS | {"imm": 0xFFFFFFFF}),
    ("mov r5, 0x10", Operation.MOV, {"rd": 5, "imm": 16}),
    ("@p7 , mov r5, tid", Operation.MOV, {"guard": 1, "predicate": 7, "rd": 5, "source": Source.THREAD}),
    ("mov r5, core", Operation.MOV, {"rd": 5, "core": 1}),
    ("mov r5, -2", Operation.MOV, {"rd": 5, "imm": 0xFFFFFFFE}),
    ("mov r5, 1.0", Operation.MOV, {"rd": 5, "imm": 0x3F800000}),
    ("movu ur4, 3", Operation.MOVU, {"ud": 4, "imm": 3}),
    ("setp.lt p1, r5, 0x10", Operation.SETP, {"compare": Compare.LT, "pd": 1, "rs": 5, "imm": 16}),
    ("setp.geu p1, tid, 4", Operation.SETP, {"compare": Compare.GEU, "pd": 1, "source": Source.THREAD, "imm": 4}),
    ("bar.wait 0x100, 1", Operation.BAR_WAIT, {"imm": 0x100, "parity": 1}),
    ("fence", Operation.FENCE, {}),
    ("halt", Operation.HALT, {}),
    ("ld.e r256, ur4:rf290:0x0, 2", Operation.LD, {"element": 1, "rd": 256, "n": 2} | ADDRESS),
    ("st.e r0, ur4:rf290:0x0, 16", Operation.ST, {"element": 1, "rs": 0, "n": 16} | ADDRESS),
    ("mov r5, r6", Operation.ARITH, {"function": Function.MOV, "rd": 5, "rb": 6}),
    ("mov r5, ur3", Operation.ARITH, {"function": Function.MOV, "b": Operand.UNIFORM, "rd": 5, "rb": 3}),
    ("@p2, add r5, r6, r7", Operation.ARITH,
     {"guard": 1, "predicate": 2, "function": Function.ADD, "rd": 5, "ra": 6, "rb": 7}),
    ("add r5, r6, -3", Operation.ARITH, {"function": Function.ADD, "rd": 5, "ra": 6} | IMM | {"imm": 0xFFFFFFFD}),
    ("fmul r5, r6, 0.1", Operation.ARITH, {"function": Function.FMUL, "rd": 5, "ra": 6} | IMM | {"imm": 0x3DCCCCCD}),
    ("fadd r5, r6, -1.5e3", Operation.ARITH, {"function": Function.FADD, "rd": 5, "ra": 6} | IMM | {"imm": 0xC4BB8000}),
    ("xbu.2 r5, r6, -128", Operation.ARITH,
     {"function": Function.XBU, "part": 2, "rd": 5, "ra": 6} | IMM | {"imm": 0xFFFFFF80}),
    ("lookb.3 r8, r6, 0, r9", Operation.ARITH,
     {"function": Function.LOOKB, "part": 3, "rd": 8, "ra": 6, "rc": 9} | IMM),
    ("dp4.su r5, r6, r7, r8", Operation.ARITH,
     {"function": Function.DP4, "part": 1, "rd": 5, "ra": 6, "rb": 7, "rc": 8}),
    ("sel r5, p1, r6, r7", Operation.ARITH, {"function": Function.SEL, "ps": 1, "rd": 5, "ra": 6, "rb": 7}),
    ("pandn p1, p2, p3", Operation.ARITH, {"function": Function.PANDN, "ps": 2, "part": 3, "rd": 1}),
    ("ltu p1, r5, ur6", Operation.ARITH, {"function": Function.LTU, "b": Operand.UNIFORM, "rd": 1, "ra": 5, "rb": 6}),
    ("hf.1 r1, r2, r3", Operation.ARITH, {"function": Function.HF, "part": 1, "rd": 1, "ra": 2, "rc": 3}),
    ("call 0x10", Operation.CALL, {"imm": 16}),
    ("return", Operation.RETURN, {}),
    ("loop 10", Operation.LOOP, {"imm": 10} | {"b": Operand.IMMEDIATE}),
    ("loop ur3", Operation.LOOP, {"b": Operand.UNIFORM, "rb": 3}),
    ("end", Operation.END, {}),
    ("load.code 0x10, 12", Operation.LOAD, {"target": Target.CODE, "imm": 16, "n": 12}),
    ("load.lookup 0, 64", Operation.LOAD, {"target": Target.LOOKUP, "n": 64}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "operation", "fields"), LINES, ids=[line[0] for line in LINES])
def test_text_of_every_operation(text, operation, fields):
    word = INSTRUCTIONS[operation].pack(opcode=operation, **fields)
    assert assemble_program(f"// a comment\n\n  {text}  // another\n") == [word]


def test_a_word_by_hand():
    (word,) = assemble_program("@p1, mm8.ka2.kb2.t1.sa.ub r0, ur4:rf290:0x00, r256")
    assert word == 0x00000000_00040122_01000000_01150301
    assert assemble_program("@p1, mov r3, core\nmov r3, core") == [0x3_00020304, 0x3_00020004]


def test_a_word_as_it_is():
    assert assemble_program("word 0xff\nhalt\n") == [0xFF, 9]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mm4 r0, ur0:rf0:0, r1", "'mm4' is not an operation"),
        ("mm8.ka5 r0, ur0:rf0:0, r1", "'ka5' must be ka and a number: ka1, ka2, ka3, ka4"),
        ("mm8.kb0 r0, ur0:rf0:0, r1", "'kb0' must be kb and a number: kb1, kb2, kb3, kb4"),
        ("mm8.t2 r0, ur0:rf0:0, r1", "'t2' must be t and a number: t0, t1"),
        ("mm8.ka2.kb2.ka3 r0, ur0:rf0:0, r1", "'ka3' cannot be a part of mm8 with the others"),
        ("mm8.f r0, ur0:rf0:0, r1", "'f' cannot be a part of mm8 with the others"),
        ("mm8.sa.ua r0, ur0:rf0:0, r1", "'ua' cannot be a part of mm8 with the others"),
        ("mm16.f.sa r0, ur0:rf0:0, r1", "'sa' cannot be a part of mm16 with the others"),
        ("mm16.sb.ka2.bf r0, ur0:rf0:0, r1", "'bf' cannot be a part of mm16 with the others"),
        ("mm16.f.bf r0, ur0:rf0:0, r1", "'bf' cannot be a part of mm16 with the others"),
        ("mm8 r0, ur0:rf0:0", "'ur0:rf0:0' must be followed by a register"),
        ("mm8 r0, ur0:rf0, r1", "'ur0:rf0' must be an address, as ur0:rf0:0x0"),
        ("mm8 r0, ur0:r0:0, r1", "'r0' must be the first offset register, as rf0"),
        ("mm8 r0, r0:rf0:0, r1", "'r0' must be a uniform register, as ur0"),
        ("mm8 r65536, ur0:rf0:0, r1", "'r65536' must be 0 to 65535"),
        ("mm8 r0, ur0:rf0:0x100000000, r1", "'ur0:rf0:0x100000000' must be 0 to 4294967295"),
        ("mm8 r0, ur0:rf0:-1, r1", "'ur0:rf0:-1' must be 0 to 4294967295"),
        ("ld r0, ur0:rf0:0, 0", "'0' must be 1 to 65535"),
        ("ld r0, ur0:rf0:0", "'ur0:rf0:0' must be followed by a number of registers"),
        ("ld x0, ur0:rf0:0, 1", "'x0' must be a register, as r0"),
        ("ld r, ur0:rf0:0, 1", "'r' must be a register, as r0"),
        ("ld r0, ur256:rf0:0, 1", "'ur256' must be 0 to 255"),
        ("ld r0, ur0:rf0:0, 1, 2", "'2' is more than the command takes"),
        ("ld.f r0, ur0:rf0:0, 1", "'f' is more than the command takes"),
        ("mov r0, tida", "'tida' must be a number"),
        ("mov", "'mov' must be followed by a register"),
        ("movu r4, 3", "'r4' must be a uniform register, as ur0"),
        ("setp p1, r5, 0", "'setp' must go on with a comparison: eq, ne, lt, le, gt, ge, ltu, leu, gtu, geu"),
        ("setp.less p1, r5, 0",
         "'less' must be a comparison: eq, ne, lt, le, gt, ge, ltu, leu, gtu, geu; did you mean 'lt'?"),
        ("setp.lt p8, r5, 0", "'p8' must be 0 to 7"),
        ("setp.lt p1, 5, 0", "'5' must be a register or tid, as r0"),
        ("bar 0, 1", "'bar' must go on with what to do: wait"),
        ("bar.wait 0, 2", "'2' must be 0 to 1"),
        ("@p1, fence", "'fence' cannot be guarded by a predicate"),
        ("@p1, movu ur0, 1", "'movu' cannot be guarded by a predicate"),
        ("@p1, word 7", "'word' cannot be guarded by a predicate"),
        ("@p8, halt", "'@p8' must be 0 to 7"),
        ("@q1, mov r0, 0", "'@q1' must be a predicate, as @p0"),
        ("@p1 mov r0, 0", "'@p1' must be followed by a comma"),
        ("@p1,", "'@p1' must be followed by an instruction"),
        ("add r1, r2", "'r2' must be followed by a register, a uniform register or a number"),
        ("add r1, r2, r3, r4", "'r4' is more than the command takes"),
        ("add r1, r2, p3", "'p3' must be a number"),
        ("add r1, r2, -2147483649", "'-2147483649' must be -2147483648 to 4294967295"),
        ("add r1, 5, r2", "'5' must be a register, as r0"),
        ("add.1 r1, r2, r3", "'1' is more than the command takes"),
        ("xbu r1, r2, 0", "'xbu' must go on with a part: 0, 1, 2, 3"),
        ("xbu.4 r1, r2, 0", "'4' must be a part: 0, 1, 2, 3"),
        ("dp4.0 r1, r2, r3, r4", "'0' must be a part: ss, su, us, uu"),
        ("shfl.8 r1, r2", "'8' must be a part: 0, 1, 2, 3, 4, 5, 6, 7"),
        ("fmul r1, r2, 1.0e99", "'1.0e99' is too large for a binary32 number"),
        ("fmul r1, r2, 1.0f", "'1.0f' must be a number"),
        ("lt r1, r2, r3", "'r1' must be a predicate, as p0"),
        ("lt p8, r2, r3", "'p8' must be 0 to 7"),
        ("sel r1, r2, r3, r4", "'r2' must be a predicate, as p0"),
        ("mad r1, r2, 3, 4", "'4' must be a register, as r0"),
        ("mov r1, ur256", "'ur256' must be 0 to 255"),
        ("loop 0", "'0' must be 1 to 4294967295"),
        ("loop r3", "'r3' must be a number"),
        ("load 0, 1", "'load' must go on with where to: code, lookup"),
        ("load.code 0, 0", "'0' must be 1 to 65535"),
        ("@p1, call 0", "'call' cannot be guarded by a predicate"),
        ("word", "'word' must be followed by a number"),
        (f"word {1 << 128:#x}", f"'{1 << 128:#x}' must be 0 to {(1 << 128) - 1}"),
    ],
)  # fmt: skip
def test_refusals(text, sentence):
    with pytest.raises(UsageError) as caught:
        assemble_program(f"halt\n{text}")
    assert str(caught.value) == f"line 2: {sentence}"


@pytest.mark.parametrize(
    ("operation", "parts"),
    [("mm8", "ka2 kb2 t1 ua sb"), ("mm16", "ka3 kb4 t1 bf"), ("mm16", "kb2 sa ub"), ("mm16", "ka2 f")],
)
def test_parts_stand_in_any_order_and_are_written_in_one(operation, parts):
    words, texts = set(), set()
    for order in permutations(parts.split()):
        (word,) = assemble_program(f"{'.'.join([operation, *order])} r0, ur0:rf0:0, r1")
        words.add(word)
        texts.add(disassemble_instruction(word))
    assert len(words) == 1
    assert texts == {f"{operation}.{'.'.join(parts.split())} r0, ur0:rf0:0x0, r1"}


def test_command_line_in_both_directions(tmp_path, capsys):
    text = "mov r5, tid\n@p3, mm16.ka4.f r0, ur1:rf2:0x0, r8\nhalt\n"
    (tmp_path / "program.txt").write_text(text)
    assert main(["asm", "--pe", str(tmp_path / "program.txt"), "--out", str(tmp_path / "words.hex")]) == 0
    assert (tmp_path / "words.hex").read_text().splitlines()[2] == f"{9:032x}"
    assert main(["asm", "--pe", str(tmp_path / "words.hex"), "--back"]) == 0
    assert capsys.readouterr().out == text


def test_command_line_refuses(tmp_path, capsys):
    (tmp_path / "words.hex").write_text(f"12\n{1 << 128:x}\n")
    assert main(["asm", "--pe", str(tmp_path / "words.hex"), "--back"]) == 2
    sentence = f"line 2: '{1 << 128:x}' must be a hexadecimal number of 128 bits"
    assert capsys.readouterr().err == f"tilewright asm: {sentence}\n"


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
    "@p2, mov r5, core",
    "movu ur4, 3",
    "setp.lt p1, r5, 0x10",
    "setp.geu p1, tid, 4",
    "bar.wait 0x100, 1",
    "fence",
    "halt",
    "@p3, ld.e r256, ur2:rf290:0x0, 2",
    "st.e r0, ur3:rf290:0x0, 16",
    "mov r5, r6",
    "@p1, mov r5, ur3",
    "fma r5, r6, 0.5, r7",
    "fma r5, r6, 0x1, r7",
    "lookb.3 r8, r6, 0x0, r9",
    "@p3, sel r5, p1, r6, ur7",
    "pand p1, p2, p3",
    "loop ur3",
    "load.code 0x10, 12",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_lines_come_back(text):
    assert disassemble_instruction(*assemble_program(text)) == text


def legal(operation, fields):
    """Whether a line can have all these fields: unused fields must be zero."""
    if not fields.get("guard") and fields.get("predicate"):
        return False
    if fields.get("core") and (fields["imm"] or fields["source"] == Source.THREAD):
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


@pytest.mark.parametrize("operation", sorted(set(Operation) - {Operation.ARITH, Operation.LOOP}))
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
                fields |= {"source": Source.GIVEN} | ({"core": 0} if operation == Operation.MOV else {})
            elif fields.get("source") == Source.THREAD:
                fields["imm" if operation == Operation.MOV else "rs"] = 0
            word = fmt.pack(opcode=operation, **fields)
            text = disassemble_instruction(word)
            assert text.startswith("word") != legal(operation, fields), (text, fields)
            assert assemble_program(text) == [word], text


@pytest.mark.parametrize("function", Function)
def test_every_function_comes_back(function):
    info, rng = FUNCTIONS[function], random.Random(SEED)
    name = function.name.lower()
    fmt = INSTRUCTIONS[Operation.ARITH]
    for part, b in product(range(info.parts), Operand if "b" in info.operands else [Operand.REGISTER]):
        used = {"rd": rng.randrange(8), "part": part, "b": b, "guard": 1, "predicate": rng.randrange(8)}
        used |= {"ps": rng.randrange(8)} if info.selects else {}
        used |= {f"r{operand}": rng.randrange(65536) for operand in info.operands if operand != "b"}
        if "b" in info.operands:
            used |= {"imm": rng.choice(IMMEDIATES)} if b == Operand.IMMEDIATE else {"rb": rng.randrange(256)}
        word = fmt.pack(opcode=Operation.ARITH, function=function, **used)
        text = disassemble_instruction(word)
        # An immediate is moved by another operation.
        is_move = function == Function.MOV and b == Operand.IMMEDIATE
        assert text.startswith("word" if is_move else f"@p{used['predicate']}, {name}"), text
        assert assemble_program(text) == [word]
        for unused in {"ra", "rb", "rc", "imm", "ps"} - used.keys():
            other = word | 1 << fmt[unused].lsb
            assert disassemble_instruction(other) == f"word {other:#x}"


@pytest.mark.parametrize("fields", [{}, {"b": 3, "imm": 1}, {"b": 1}, {"b": 1, "imm": 1, "rb": 1}, {"b": 2, "imm": 1}])
def test_a_loop_without_a_count_has_no_line(fields):
    word = INSTRUCTIONS[Operation.LOOP].pack(opcode=Operation.LOOP, **fields)
    assert disassemble_instruction(word) == f"word {word:#x}"


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
        word = rng.getrandbits(BITS) & ~0xFF | rng.randrange(17)
        for operation in Operation:
            if word & 0xFF == operation and rng.random() < 0.9:
                word &= ~INSTRUCTIONS[operation].reserved_mask
        text = disassemble_instruction(word)
        assert assemble_program(text) == [word]
        named += not text.startswith("word")
    assert named > 500


def test_no_illegal_word_has_a_line():
    """Unknown operations and members, reserved bits, a count of 0, a predicate without guard."""
    illegal = [opcode for opcode in range(256) if opcode not in list(Operation)]
    for operation, fmt in INSTRUCTIONS.items():
        names = {field.name for field in fmt.fields}
        least = {name: 1 for name in ("n", "ka", "kb") if name in names}
        good = fmt.pack(opcode=operation, **least | ({"b": 1, "imm": 1} if operation == Operation.LOOP else {}))
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
