"""The text of instructions of the processing engine: each line is an instruction of 128 bits.

::

    mm8{.kaN}{.kbN}{.tN}{.sa|.ua}{.sb|.ub} rC, urS:rfO:imm, rA
    mm16{.kaN}{.kbN}{.tN}{.sa|.ua}{.sb|.ub}{.f|.bf} rC, urS:rfO:imm, rA
    ld rD, urS:rfO:imm, n
    st rS, urS:rfO:imm, n
    mov rD, imm | mov rD, tid | mov rD, core
    movu urD, imm
    setp.compare pD, rS, imm | setp.compare pD, tid, imm
    bar.wait address, parity
    fence | halt

``@pN, `` before mm, ld, st, mov or setp is a guard. The parts of mm may have any order. ``//`` begins a comment.
``word n`` is a raw instruction. Numbers are decimal, or hexadecimal with 0x.
"""

import re

from tilewright.spec.fields import names
from tilewright.spec.pe import INSTRUCTIONS, Compare, MmType, Operation, Source

from .language import Language, Number, Part, TextLine

__all__ = ["BITS", "PeLine", "assemble_program", "disassemble_instruction"]

_GUARD = re.compile(r"(@[^\s,]*)\s*(,?)\s*(.*)")
_LD = INSTRUCTIONS[Operation.LD]
#: Parts of mm16 for types of floating-point numbers.
_FLOATS = {"f": MmType.F16, "bf": MmType.BF16}
#: Parts of mm for the signs of A and of B.
_SIGNS = ({"sa": 0, "ua": MmType.U8S8}, {"sb": 0, "ub": MmType.S8U8})
_NUMBERS = {"ka": "ka", "kb": "kb", "t": "transpose"}


class PeLine(TextLine):
    """A line of operands with commas between them, with or without a guard, whose fields are ``common``."""

    WITHOUT_COMMON = "cannot be guarded by a predicate"

    def __init__(self, text, number):
        guard = _GUARD.fullmatch(text)
        super().__init__(guard[3] if guard else text, number)
        if guard:
            word = guard[1]
            if not guard[2]:
                raise self.wrong(word, "must be followed by a comma")
            if not guard[3]:
                raise self.wrong(word, "must be followed by an instruction")
            self.common = {"guard": 1, "predicate": self.named(word, "@p", _LD["predicate"], "a predicate")}

    def _split(self, text):
        operation, _, operands = text.partition(" ")
        return [operation, *(word.strip() for word in operands.split(",") if operands.strip())]

    def named(self, word, prefix, field, description):
        """The number in a name such as r5, ur4 or p1, which begins with ``prefix``."""
        digits = word.removeprefix(prefix)
        if not word.startswith(prefix) or not digits.isascii() or not digits.isdigit():
            raise self.wrong(word, f"must be {description}, as {prefix}0")
        return self.integer(word, field.range, digits)

    @staticmethod
    def written(operation, operands, fields):
        """The text of a line."""
        guard = f"@p{fields['predicate']}, " if fields.get("guard") else ""
        return f"{guard}{operation} {', '.join(operands)}".rstrip()


class _Named(Number):
    """A register or predicate: ``prefix`` and its number."""

    def __init__(self, prefix, field, description):
        super().__init__(field, description)
        self._prefix = prefix

    def parse(self, word, line, fmt, fields):
        fields[self.field] = line.named(word, self._prefix, fmt[self.field], self.description)

    def write(self, fields):
        return f"{self._prefix}{fields[self.field]}"


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


_THREAD = {"tid": ("source", Source.THREAD)}
_CORE = {"core": ("core", 1)}
_MULTIPLY = _Named("r", "rc", "a register"), _Address(), _Named("r", "ra", "a register")

_SYNTAXES = {
    "mm8": (Operation.MM, _Variant(wide=False), *_MULTIPLY),
    "mm16": (Operation.MM, _Variant(wide=True), *_MULTIPLY),
    "ld": (Operation.LD, _Named("r", "rd", "a register"), _Address(), _Registers("n", "a number of registers", "d")),
    "st": (Operation.ST, _Named("r", "rs", "a register"), _Address(), _Registers("n", "a number of registers", "d")),
    "mov": (
        Operation.MOV,
        _Named("r", "rd", "a register"),
        _Or(Number("imm", "a number, tid or core"), _THREAD | _CORE),
    ),
    "movu": (Operation.MOVU, _Named("ur", "ud", "a uniform register"), Number("imm", "the number of a segment", "d")),
    "setp": (
        Operation.SETP,
        Part("compare", names(Compare), "a comparison"),
        _Named("p", "pd", "a predicate"),
        _Or(_Named("r", "rs", "a register or tid"), _THREAD),
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
}
_LANGUAGE = Language(PeLine, INSTRUCTIONS, _SYNTAXES)

#: Bits of an instruction.
BITS = _LANGUAGE.bits

assemble_program, disassemble_instruction = _LANGUAGE.assemble, _LANGUAGE.disassemble
