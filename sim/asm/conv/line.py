"""One line of the text of jobs of the convolution engine, word by word."""

import re

from ..text_line import TextLine

__all__ = ["ConvLine"]

_TOKEN = re.compile(r"\w+=\([^()]*\)|\S+")


class ConvLine(TextLine):
    """A line of operands with spaces between them, each a name, ``=`` and a number or numbers in parentheses.

    Parameters
    ----------
    text : str
    number : int
        Of the line.
    """

    def __init__(self, text, number):
        operation, *operands = _TOKEN.findall(text)
        super().__init__(number, operation, operands)

    @staticmethod
    def written(operation, operands, fields):
        """The text of a line."""
        return " ".join([operation, *operands])

    def assignment(self, fields):
        """Takes the next operand, ``name=value`` of one of ``fields``, by name; returns name and value."""
        word = self.operand("a field, as name=value")
        name, equals, value = word.partition("=")
        if not equals or name not in fields:
            raise self.wrong(word, f"must be name=value with one of {', '.join(fields)}")
        field = fields[name]
        if not field.count:
            return name, self.integer(word, field.range, value)
        entries = value[1:-1].replace(",", " ").split()
        if value[:1] != "(" or value[-1:] != ")" or len(entries) != field.count:
            raise self.wrong(word, f"must be {field.count} numbers in parentheses")
        return name, [self.integer(word, field.range, entry) for entry in entries]
