"""Lines of instructions of the processing engine: guards, and operands with names such as r5, ur4 and p1."""

import re

from tilewright.spec.pe import INSTRUCTIONS, Operation

from .language import Number, TextLine

__all__ = ["Named", "PeLine"]

_GUARD = re.compile(r"(@[^\s,]*)\s*(,?)\s*(.*)")
_LD = INSTRUCTIONS[Operation.LD]


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


class Named(Number):
    """A register or predicate: ``prefix`` and its number, which the field ``like`` can hold, if it is not None."""

    def __init__(self, prefix, field, description, like=None):
        super().__init__(field, description)
        self._prefix, self._like = prefix, like

    def parse(self, word, line, fmt, fields):
        fields[self.field] = line.named(word, self._prefix, self._like or fmt[self.field], self.description)

    def write(self, fields):
        return f"{self._prefix}{fields[self.field]}"
