"""The text of arithmetic instructions: a syntax for each function (docs/pe.md, "Arithmetic")."""

import re

import numpy as np

from tilewright.spec.arithmetic import FUNCTIONS, Function, Operand
from tilewright.spec.fields import names
from tilewright.spec.pe import INSTRUCTIONS, Operation

from .pe_line import Named

__all__ = ["FUNCTION_SYNTAXES", "OPERAND", "Uniform", "immediate"]

_IMMEDIATES = -(1 << 31), (1 << 32) - 1
_DECIMAL = re.compile(r"-?\d+\.\d*(e-?\d+)?")
_UNIFORM = re.compile(r"ur\d.*")
_REGISTER = re.compile(r"r\d.*")
#: Fields that say which registers and predicates have a name, as fields of ARITH have more bits.
_LIKE = {
    "r": INSTRUCTIONS[Operation.ARITH]["rb"],
    "ur": INSTRUCTIONS[Operation.MOVU]["ud"],
    "p": INSTRUCTIONS[Operation.ARITH]["ps"],
}
#: Parts of DP4.
_SIGNS = {"ss": 0, "su": 1, "us": 2, "uu": 3}


class _OperandB:
    """Operand b: a register, a uniform register, or an immediate."""

    description = "a register, a uniform register or a number"

    def read(self, line, fmt, fields):
        operand = self.parsed(line, fmt)
        word = line.operand(self.description)
        fields |= {"b": Operand.IMMEDIATE, "imm": immediate(word, line)} if operand is None else operand

    @staticmethod
    def parsed(line, fmt):
        """The fields of the next operand if it is a register or a uniform register, or None."""
        word = line.operands[0] if line.operands else ""
        for prefix, kind, pattern in (("ur", Operand.UNIFORM, _UNIFORM), ("r", Operand.REGISTER, _REGISTER)):
            if pattern.fullmatch(word):
                return {"b": kind, "rb": line.named(word, prefix, _LIKE[prefix], _OperandB.description)}
        return None

    @staticmethod
    def write(fields):
        if fields["b"] == Operand.IMMEDIATE:
            return _written(fields["imm"], FUNCTIONS[fields["function"]].unit == "f32")
        return f"{'ur' if fields['b'] == Operand.UNIFORM else 'r'}{fields['rb']}"


OPERAND = _OperandB()


def immediate(word, line):
    """The 32 bits of an immediate: an integer, also a negative one, or a decimal number with a point, a binary32."""
    if not _DECIMAL.fullmatch(word):
        return line.integer(word, _IMMEDIATES) & 0xFFFFFFFF
    with np.errstate(over="ignore"):
        number = np.float32(word)
    if np.isinf(number):
        raise line.wrong(word, "is too large for a binary32 number")
    return int(number.view(np.uint32))


def _written(bits, is_float):
    """The text of an immediate."""
    text = str(np.uint32(bits).view(np.float32)) if is_float else ""
    return text if _DECIMAL.fullmatch(text) else f"{bits:#x}"


class Uniform:
    """A count: ``item``, or a uniform register."""

    def __init__(self, item):
        self._item = item

    def read(self, line, fmt, fields):
        word = line.operand(self._item.description)
        if _UNIFORM.fullmatch(word):
            fields |= {"b": Operand.UNIFORM, "rb": line.named(word, "ur", _LIKE["ur"], "a uniform register")}
        else:
            fields["b"] = Operand.IMMEDIATE
            self._item.parse(word, line, fmt, fields)

    def write(self, fields):
        return f"ur{fields['rb']}" if fields["b"] == Operand.UNIFORM else self._item.write(fields)


class _Name:
    """The function that the name of the operation says, and its part."""

    def __init__(self, function):
        self._function = function
        count = FUNCTIONS[function].parts
        numbered = {str(number): number for number in range(count)}
        self._parts = {} if count == 1 or FUNCTIONS[function].predicate else numbered
        if function == Function.DP4:
            self._parts = _SIGNS

    def read(self, line, fmt, fields):
        fields["function"] = self._function
        if self._parts:
            fields["part"] = line.part(self._parts, "a part")

    def write(self, fields):
        if fields["function"] != self._function:
            raise LookupError
        return "".join(f".{name}" for name, number in self._parts.items() if number == fields["part"])


def _syntax(function):
    """The syntax of a function: its result, and its operands in the order ps, part, a, b, c."""
    info = FUNCTIONS[function]
    items = [Named("p", "rd", "a predicate", _LIKE["p"]) if info.predicate else Named("r", "rd", "a register")]
    if info.selects:
        items.append(Named("p", "ps", "a predicate"))
    if info.selects and info.predicate:
        items.append(Named("p", "part", "a predicate"))
    known = {"a": Named("r", "ra", "a register"), "b": OPERAND, "c": Named("r", "rc", "a register")}
    return (Operation.ARITH, _Name(function), *items, *(known[name] for name in info.operands))


#: Syntaxes of all functions but MOV, which shares its name with an operation.
FUNCTION_SYNTAXES = {name: _syntax(function) for name, function in names(Function).items() if function != Function.MOV}
