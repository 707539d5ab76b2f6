"""The text of instructions of the processing engine: each line is an instruction of 128 bits.

::

    mm8{.kaN}{.kbN}{.tN}{.sa|.ua}{.sb|.ub} rC, urS:rfO:imm, rA
    mm16{.kaN}{.kbN}{.tN}{.sa|.ua}{.sb|.ub}{.f|.bf} rC, urS:rfO:imm, rA
    ld{.e} rD, urS:rfO:imm, n
    st{.e} rS, urS:rfO:imm, n
    mov rD, imm | mov rD, tid | mov rD, core
    movu urD, imm
    setp.compare pD, rS, imm | setp.compare pD, tid, imm
    bar.wait address, parity
    fence | halt
    function{.part} rD|pD{, pS}, rA, b{, rC}    arithmetic, in ``functions``; mov rD, rB | mov rD, urB too
    call index | return | loop count | loop urB | end
    load.code index, words | load.lookup index, words

``@pN, `` before mm, ld, st, mov, setp or a function is a guard. The parts of mm may have any order. ``//`` begins a
comment. ``word n`` is a raw instruction. Numbers are decimal, or hexadecimal with 0x.
"""

from tilewright.spec.arithmetic import Function
from tilewright.spec.fields import names
from tilewright.spec.pe import INSTRUCTIONS, Compare, MmType, Operation, Source, Target

from .functions import FUNCTION_SYNTAXES, OPERAND, Uniform, immediate
from .language import Flag, Language, Number, Part
from .pe_line import Named, PeLine

__all__ = ["BITS", "assemble_program", "disassemble_instruction"]

#: Parts of mm16 for types of floating-point numbers.
_FLOATS = {"f": MmType.F16, "bf": MmType.BF16}
#: Parts of mm for the signs of A and of B.
_SIGNS = ({"sa": 0, "ua": MmType.U8S8}, {"sb": 0, "ub": MmType.S8U8})
_THREAD = {"tid": ("source", Source.THREAD)}
_CORE = {"core": ("core", 1)}
_NUMBERS = {"ka": "ka", "kb": "kb", "t": "transpose"}


class _Address(Number):
    """A logical address, ``ur4:rf290:0x0``."""

    def __init__(self):
        super().__init__("imm", "an address, as ur0:rf0:0x0")

    def parse(self, word, line, fmt, fields):
        places = word.split(":")
        if len(places) != 3:
            raise line.wrong(word, f"must be {self.description}")
        uniform, offsets, immediate = places
        fields["ur"] = line.named(uniform, "ur", fmt["ur"], "a uniform register")
        fields["rf"] = line.named(offsets, "rf", fmt["rf"], "the first offset register")
        fields["imm"] = line.integer(word, fmt["imm"].range, immediate)

    def write(self, fields):
        return f"ur{fields['ur']}:rf{fields['rf']}:{super().write(fields)}"


class _Registers(Number):
    """A number of registers, at least one."""

    def parse(self, word, line, fmt, fields):
        fields[self.field] = line.integer(word, (1, fmt[self.field].range[1]))


class _Or:
    """An operand, or one of ``names`` instead, each with a field and its value."""

    def __init__(self, item, names):
        self._item, self._names = item, names

    def read(self, line, fmt, fields):
        word = line.operand(self._item.description)
        if word in self._names:
            field, value = self._names[word]
            fields[field] = value
        else:
            self._item.parse(word, line, fmt, fields)

    def write(self, fields):
        for name, (field, value) in self._names.items():
            if fields[field] == value:
                return name
        return self._item.write(fields)


class _Immediate(Number):
    """A number that stands for 32 bits, as in arithmetic."""

    def parse(self, word, line, fmt, fields):
        fields[self.field] = immediate(word, line)


class _Moved:
    """What MOV, or the function of this name, moves to a register."""

    _given = _Or(_Immediate("imm", "a number, tid, core, a register or a uniform register"), _THREAD | _CORE)

    def read(self, line, fmt, fields):
        moved = OPERAND.parsed(line, INSTRUCTIONS[Operation.ARITH])
        if moved is None:
            self._given.read(line, fmt, fields)
        else:
            line.operands.pop(0)
            fields |= {"opcode": Operation.ARITH, "function": Function.MOV} | moved

    def write(self, fields):
        if fields["opcode"] == Operation.MOV:
            return self._given.write(fields)
        if fields["function"] != Function.MOV:
            raise LookupError
        return OPERAND.write(fields)


class _Compared(Number):
    """The second operand of a comparison, in decimal for the index of the thread."""

    def write(self, fields):
        return str(fields[self.field]) if fields["source"] == Source.THREAD else super().write(fields)


class _Variant:
    """The parts of mm8 or, if ``wide``, of mm16, in any order; they are written in the order above."""

    def __init__(self, wide):
        self._first = MmType.S16S16 if wide else MmType.S8S8
        self._types = [*_SIGNS, _FLOATS] if wide else list(_SIGNS)

    def read(self, line, fmt, fields):
        fields |= {"ka": 1, "kb": 1}
        numbers, types = set(), {}
        while line.parts:
            part = line.parts[0]
            name = part.rstrip("0123456789")
            place = next((place for place, known in enumerate(self._types) if part in known), None)
            if name in _NUMBERS and name not in numbers:
                first, last = fmt[_NUMBERS[name]].range
                known = {f"{name}{n}": n for n in range(first, last + 1)}
                fields[_NUMBERS[name]] = line.part(known, f"{name} and a number")
                numbers.add(name)
            elif place not in {None, *types} and (place < len(_SIGNS) or not types) and len(_SIGNS) not in types:
                types[place] = self._types[place][line.parts.pop(0)]
            else:
                raise line.wrong(part, f"cannot be a part of {line.last.split('.')[0]} with the others")
        fields["type"] = types.get(len(_SIGNS)) or MmType(self._first + sum(types.values()))

    def write(self, fields):
        parts = [f".{name}{fields[name]}" for name in ("ka", "kb") if fields[name] > 1]
        parts += [".t1"] if fields["transpose"] else []
        names = [name for name, kind in _FLOATS.items() if kind == fields["type"]]
        if not names:
            names = ["ua" if fields["type"] & MmType.U8S8 else "sa", "ub" if fields["type"] & MmType.S8U8 else "sb"]
        return "".join([*parts, *(f".{name}" for name in names)])


_MULTIPLY = Named("r", "rc", "a register"), _Address(), Named("r", "ra", "a register")
_MOVED = _Address(), _Registers("n", "a number of registers", "d")

_SYNTAXES = {
    "mm8": (Operation.MM, _Variant(wide=False), *_MULTIPLY),
    "mm16": (Operation.MM, _Variant(wide=True), *_MULTIPLY),
    "ld": (
        Operation.LD,
        Flag("element", "e"),
        Named("r", "rd", "a register"),
        _Address(),
        _Registers("n", "a number of registers", "d"),
    ),
    "st": (
        Operation.ST,
        Flag("element", "e"),
        Named("r", "rs", "a register"),
        _Address(),
        _Registers("n", "a number of registers", "d"),
    ),
    "mov": ((Operation.MOV, Operation.ARITH), Named("r", "rd", "a register"), _Moved()),
    "movu": (Operation.MOVU, Named("ur", "ud", "a uniform register"), Number("imm", "the number of a segment", "d")),
    "setp": (
        Operation.SETP,
        Part("compare", names(Compare), "a comparison"),
        Named("p", "pd", "a predicate"),
        _Or(Named("r", "rs", "a register or tid"), _THREAD),
        _Compared("imm", "a number"),
    ),
    "bar": (
        Operation.BAR_WAIT,
        Part("opcode", {"wait": Operation.BAR_WAIT}, "what to do"),
        Number("imm", "the address of a barrier"),
        Number("parity", "a parity", "d"),
    ),
    "fence": (Operation.FENCE,),
    "halt": (Operation.HALT,),
    "call": (Operation.CALL, Number("imm", "the index of a kernel")),
    "return": (Operation.RETURN,),
    "loop": (Operation.LOOP, Uniform(_Registers("imm", "a number of rounds, or a uniform register", "d"))),
    "end": (Operation.END,),
    "load": (
        Operation.LOAD,
        Part("target", names(Target), "where to"),
        Number("imm", "an index"),
        _Registers("n", "a number of words", "d"),
    ),
}
_LANGUAGE = Language(PeLine, INSTRUCTIONS, _SYNTAXES | FUNCTION_SYNTAXES)

#: Bits of an instruction.
BITS = _LANGUAGE.bits

assemble_program, disassemble_instruction = _LANGUAGE.assemble, _LANGUAGE.disassemble
