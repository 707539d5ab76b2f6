"""The text of instructions of the processing engine, read: one line, one word of 128 bits.

::

    mm8{.kaN}{.kbN}{.tN}{.sa|.ua}{.sb|.ub} rC, urS:rfO:imm, rA
    mm16{.kaN}{.kbN}{.tN}{.sa|.ua}{.sb|.ub}{.f|.bf} rC, urS:rfO:imm, rA
    ld rD, urS:rfO:imm, n
    st rS, urS:rfO:imm, n
    mov rD, imm | mov rD, tid
    movu urD, imm
    setp.compare pD, rS, imm | setp.compare pD, tid, imm
    bar.wait address, parity
    fence | halt

``@pN, `` in front of mm, ld, st, mov and setp is a guard. ``//`` begins a comment. ``word n`` is an instruction as it
is. Numbers are decimal, or hexadecimal with 0x.
"""

from tilewright.golden.spec.pe.instruction import GUARDED, INSTRUCTIONS, Compare, MmType, Operation, Source

from .line import PeLine

__all__ = ["COMPARES", "FLOATS", "INSTRUCTION_BITS", "assemble_instruction", "assemble_program"]

#: Bits of an instruction.
INSTRUCTION_BITS = 128
#: Parts of setp.
COMPARES = {compare.name.lower(): compare for compare in Compare}
#: Parts of mm16 that say that elements are floating-point numbers.
FLOATS = {"f": MmType.F16, "bf": MmType.BF16}

_SIGNS = ({"sa": 0, "ua": MmType.U8S8}, {"sb": 0, "ub": MmType.S8U8})


def assemble_program(text):
    """The instructions of a program, as a list of 128-bit integers; UsageError names line and word of what is wrong."""
    lines = ((number, line.split("//")[0].strip()) for number, line in enumerate(text.splitlines(), 1))
    return [assemble_instruction(line, number) for number, line in lines if line]


def assemble_instruction(text, number=1):
    """One instruction, on line ``number``."""
    line = PeLine(text, number)
    name = line.parts.pop(0)
    if name not in _READERS:
        raise line.wrong(name, "is no operation")
    operation, reader = _READERS[name]
    if line.guard and operation not in GUARDED:
        raise line.wrong(name, "cannot be guarded by a predicate")
    fields = reader(line)
    line.end()
    if operation is None:
        return fields
    return INSTRUCTIONS[operation].pack(opcode=operation, **line.guard, **fields)


def _multiply(wide):
    def reader(line):
        fmt = INSTRUCTIONS[Operation.MM]
        fields = {"ka": 1, "kb": 1}
        for name, field in (("ka", "ka"), ("kb", "kb"), ("t", "transpose")):
            numbers = {f"{name}{n}": n for n in range(fmt[field].range[0], fmt[field].range[1] + 1)}
            if line.parts and line.parts[0].rstrip("0123456789") == name:
                fields[field] = line.part(numbers, f"{name} and a number")
        floats = FLOATS if wide else {}
        if line.parts and line.parts[0] in floats:
            fields["type"] = floats[line.parts.pop(0)]
        else:
            fields["type"] = MmType(4 * wide + sum(_sign(line, signs) for signs in _SIGNS))
        if line.parts:
            raise line.wrong(line.parts[0], f"must be a part of {line.last.split('.')[0]}, in its place")
        return fields | {"rc": line.register(fmt["rc"])} | line.address() | {"ra": line.register(fmt["ra"])}

    return reader


def _sign(line, signs):
    return signs[line.parts.pop(0)] if line.parts and line.parts[0] in signs else 0


def _move_memory(operation, register):
    def reader(line):
        fmt = INSTRUCTIONS[operation]
        fields = {register: line.register(fmt[register])} | line.address()
        word = line.operand("a number of registers")
        return fields | {"n": line.integer(word, (1, fmt["n"].range[1]))}

    return reader


def _move(line):
    fmt = INSTRUCTIONS[Operation.MOV]
    fields = {"rd": line.register(fmt["rd"])}
    word = line.operand("a number or tid")
    if word == "tid":
        return fields | {"source": Source.THREAD}
    return fields | {"imm": line.integer(word, fmt["imm"].range)}


def _move_uniform(line):
    fmt = INSTRUCTIONS[Operation.MOVU]
    return {"ud": line.uniform(fmt["ud"]), "imm": line.value("the number of a segment", fmt["imm"])}


def _set_predicate(line):
    fmt = INSTRUCTIONS[Operation.SETP]
    fields = {"compare": line.part(COMPARES, "a comparison")}
    fields["pd"] = line.named(line.operand("a predicate"), "p", fmt["pd"], "a predicate")
    word = line.operand("a register or tid")
    if word == "tid":
        fields["source"] = Source.THREAD
    else:
        fields["rs"] = line.named(word, "r", fmt["rs"], "a register or tid")
    return fields | {"imm": line.value("a number", fmt["imm"])}


def _wait(line):
    fmt = INSTRUCTIONS[Operation.BAR_WAIT]
    line.part(("wait",), "what to do")
    return {"imm": line.value("the address of a barrier", fmt["imm"]), "parity": line.value("a parity", fmt["parity"])}


_READERS = {
    "mm8": (Operation.MM, _multiply(False)),
    "mm16": (Operation.MM, _multiply(True)),
    "ld": (Operation.LD, _move_memory(Operation.LD, "rd")),
    "st": (Operation.ST, _move_memory(Operation.ST, "rs")),
    "mov": (Operation.MOV, _move),
    "movu": (Operation.MOVU, _move_uniform),
    "setp": (Operation.SETP, _set_predicate),
    "bar": (Operation.BAR_WAIT, _wait),
    "fence": (Operation.FENCE, lambda line: {}),
    "halt": (Operation.HALT, lambda line: {}),
    "word": (None, lambda line: line.integer(line.operand("a number"), (0, (1 << INSTRUCTION_BITS) - 1))),
}
