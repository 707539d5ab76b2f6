"""One line of the text of commands, word by word."""

import re

from tilewright.golden.spec import COMMAND

from .usage import UsageError

__all__ = ["AsmLine"]

_TOKEN = re.compile(r"\([^()]*\)|\S+")


class AsmLine:
    """The words of one line, taken from left to right; a wrong one is a UsageError that names line and word.

    Parameters
    ----------
    text : str
        An operation, whose parts have points between them, and operands with spaces between them.
    number : int
        Of the line.

    Attributes
    ----------
    parts, operands : list of str
        What has not been taken.
    tag : dict
        ``{"tag": n}`` if the line ends with ``tag=n``.
    """

    def __init__(self, text, number):
        self.number = number
        operation, *self.operands = _TOKEN.findall(text)
        self.parts = operation.split(".")
        self.last = operation
        self.tag = {}
        if self.operands and self.operands[-1].startswith("tag="):
            word = self.operands.pop()
            self.tag = {"tag": self.integer(word, COMMAND["tag"].range, word.removeprefix("tag="))}

    def wrong(self, word, why):
        """The error for a word of this line."""
        return UsageError(f"line {self.number}: {word!r} {why}")

    def part(self, names, what):
        """Takes the next part of the operation, one of ``names``; of a dictionary, the value."""
        if not self.parts:
            raise self.wrong(self.last, f"must go on with {what}: {', '.join(names)}")
        word = self.parts.pop(0)
        if word == "multicast":
            raise self.wrong(word, "needs a cluster of cores, and there is one core")
        if word not in names:
            raise self.wrong(word, f"must be {what}: {', '.join(names)}")
        return names[word] if isinstance(names, dict) else word

    def route(self, targets, sources, what):
        """Takes the part ``dst,src``; returns the two values."""
        word = self.part_text(f"{what}, as dst,src")
        target, comma, source = word.partition(",")
        if not comma or target not in targets or source not in sources:
            raise self.wrong(word, f"must be dst,src with dst {', '.join(targets)} and src {', '.join(sources)}")
        return targets[target], sources[source]

    def part_text(self, what):
        """Takes the next part of the operation, whatever it is."""
        if not self.parts:
            raise self.wrong(self.last, f"must go on with {what}")
        return self.parts.pop(0)

    def operand(self, what):
        """Takes the next operand as text."""
        if not self.operands:
            raise self.wrong(self.last, f"must be followed by {what}")
        self.last = self.operands.pop(0)
        return self.last

    def integer(self, word, limits, text=None):
        """``word``, or the part ``text`` of it, as an integer within ``limits``."""
        text = word if text is None else text
        try:
            value = int(text, 16 if text.lower().startswith("0x") else 10)
        except ValueError:
            raise self.wrong(word, "must be a number") from None
        if not limits[0] <= value <= limits[1]:
            raise self.wrong(word, f"must be {limits[0]} to {limits[1]}")
        return value

    def value(self, what, field):
        """Takes a number for the field of a format."""
        return self.integer(self.operand(what), field.range)

    def tuple(self, what, field, count):
        """Takes ``count`` numbers in parentheses."""
        word = self.operand(f"{what} in parentheses")
        entries = word[1:-1].replace(",", " ").split()
        if word[0] != "(" or word[-1] != ")" or len(entries) != count:
            raise self.wrong(word, f"must be {what}: {count} numbers in parentheses")
        return tuple(self.integer(word, field.range, entry) for entry in entries)

    def end(self):
        """Raises if something is left."""
        if "multicast" in self.parts:
            raise self.wrong("multicast", "needs a cluster of cores, and there is one core")
        for word in (*self.parts, *self.operands):
            raise self.wrong(word, "is more than the command takes")
