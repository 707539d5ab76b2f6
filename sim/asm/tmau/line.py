"""One line of the text of TMAU commands, word by word."""

import re

from tilewright.golden.spec import COMMAND
from tilewright.golden.suggestion import suggestion

from ..text_line import TextLine

__all__ = ["AsmLine"]

_TOKEN = re.compile(r"\([^()]*\)|\S+")


class AsmLine(TextLine):
    """A line of operands with spaces between them.

    Parameters
    ----------
    text : str
    number : int
        Of the line.

    Attributes
    ----------
    common : dict
        ``{"tag": n}`` if the line ends with ``tag=n``.
    """

    WITHOUT_COMMON = "cannot have a tag"

    def __init__(self, text, number):
        operation, *operands = _TOKEN.findall(text)
        super().__init__(number, operation, operands)
        if self.operands and self.operands[-1].startswith("tag="):
            word = self.operands.pop()
            self.common = {"tag": self.integer(word, COMMAND["tag"].range, word.removeprefix("tag="))}

    @staticmethod
    def written(operation, operands, fields):
        """The text of a line."""
        tag = [f"tag={fields['tag']}"] if fields["tag"] else []
        return " ".join([operation, *operands, *tag])

    def part(self, names, what):
        """Takes the next part of the operation, one of ``names``; of a dictionary, the value."""
        if self.parts[:1] == ["multicast"]:
            raise self._multicast()
        return super().part(names, what)

    def route(self, targets, sources, what):
        """Takes the part ``dst,src``; returns the two values."""
        word = self.part_text(f"{what}, as dst,src")
        target, comma, source = word.partition(",")
        if not comma or target not in targets or source not in sources:
            unknown = [each for each in word.split(",") if each not in sources]
            sentence = f"must be dst,src with dst {', '.join(targets)} and src {', '.join(sources)}"
            raise self.wrong(word, sentence + (suggestion(unknown[0], sources) if comma and unknown else ""))
        return targets[target], sources[source]

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
            raise self._multicast()
        super().end()

    def _multicast(self):
        return self.wrong("multicast", "needs a cluster of cores, and there is one core")
