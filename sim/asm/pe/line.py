"""One line of the text of instructions of the processing engine, word by word."""

import re

from tilewright.golden.spec.pe.instruction import INSTRUCTIONS, Operation

from ..text_line import TextLine

__all__ = ["PeLine"]

_GUARD = re.compile(r"(@[^\s,]*)\s*(,?)\s*(.*)")
_LD = INSTRUCTIONS[Operation.LD]


class PeLine(TextLine):
    """A line of operands with commas between them, perhaps with a guard in front.

    Parameters
    ----------
    text : str
    number : int
        Of the line.

    Attributes
    ----------
    common : dict
        Fields of the guard, if there is one.
    """

    WITHOUT_COMMON = "cannot be guarded by a predicate"

    def __init__(self, text, number):
        guard = _GUARD.fullmatch(text)
        if guard:
            text = guard[3]
        operation, _, operands = text.partition(" ")
        super().__init__(number, operation, [word.strip() for word in operands.split(",")] if operands.strip() else [])
        if guard:
            word = guard[1]
            if not guard[2]:
                raise self.wrong(word, "must be followed by a comma")
            if not text:
                raise self.wrong(word, "must be followed by an instruction")
            self.common = {"guard": 1, "predicate": self.named(word, "@p", _LD["predicate"], "a predicate")}

    def named(self, word, prefix, field, what):
        """The number of something that is written as ``prefix`` and a number: r5, ur4, p1."""
        digits = word.removeprefix(prefix)
        if not word.startswith(prefix) or not digits.isascii() or not digits.isdigit():
            raise self.wrong(word, f"must be {what}, as {prefix}0")
        return self.integer(word, field.range, digits)

    @staticmethod
    def written(operation, operands, fields):
        """The text of a line."""
        guard = f"@p{fields['predicate']}, " if fields.get("guard") else ""
        return f"{guard}{operation} {', '.join(operands)}".rstrip()
