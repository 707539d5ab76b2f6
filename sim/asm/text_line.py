"""A line of the text of commands or instructions, taken word by word."""

from tilewright.golden.suggestion import suggestion

from ..usage import UsageError

__all__ = ["TextLine"]


class TextLine:
    """The words of one line, taken from left to right; a wrong one is a UsageError that names line and word.

    Parameters
    ----------
    number : int
        Of the line.
    operation : str
        Its parts have points between them.
    operands : list of str

    Attributes
    ----------
    parts, operands : list of str
        What has not been taken.
    last : str
        The operation, or the operand that was taken last.
    common : dict
        Fields that every operation may have, and that are not written as its operands; a subclass sets them.
    """

    #: Why an operation cannot have them.
    WITHOUT_COMMON = "takes its operands alone"

    def __init__(self, number, operation, operands):
        self.number = number
        self.operands = operands
        self.parts = operation.split(".")
        self.last = operation
        self.common = {}

    def wrong(self, word, why):
        """The error for a word of this line."""
        return UsageError(f"line {self.number}: {word!r} {why}")

    def part_text(self, what):
        """Takes the next part of the operation, whatever it is."""
        if not self.parts:
            raise self.wrong(self.last, f"must go on with {what}")
        return self.parts.pop(0)

    def part(self, names, what):
        """Takes the next part of the operation, one of ``names``; of a dictionary, the value."""
        word = self.part_text(f"{what}: {', '.join(names)}")
        if word not in names:
            raise self.wrong(word, f"must be {what}: {', '.join(names)}{suggestion(word, names)}")
        return names[word] if isinstance(names, dict) else word

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

    def end(self):
        """Raises if something is left."""
        for word in (*self.parts, *self.operands):
            raise self.wrong(word, "is more than the command takes")
