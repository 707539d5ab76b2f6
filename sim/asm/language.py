"""Languages of lines, each for one packed word, which one table of operations and items reads and writes.

An item reads its words from a :class:`TextLine` and writes them: ``read(line, fmt, fields)`` sets ``fields`` of the
format ``fmt``; ``write(fields)`` returns the text: parts of the operation, each after a point, or one operand, or "".
"""

import re

from tilewright.errors import UsageError
from tilewright.spec.names import suggestion

__all__ = ["Flag", "Language", "Number", "Optional", "Part", "TextLine", "When"]


class TextLine:
    """The words of one line, read from left to right; each error is a UsageError that names the line and the word.

    Parameters
    ----------
    text : str
        An operation, whose parts have points between them, and operands.
    number : int
        Of the line.

    Attributes
    ----------
    parts, operands : list of str
        Words that have not been read.
    last : str
        The operation, or the last operand read.
    common : dict
        Fields of any operation that are not written as operands; subclasses set them.
    """

    #: The error for an operation that cannot have ``common``.
    WITHOUT_COMMON = ""
    _TOKEN = re.compile(r"\S+")

    def __init__(self, text, number):
        self.number = number
        self.last, *self.operands = self._split(text)
        self.parts = self.last.split(".")
        self.common = {}

    def _split(self, text):
        return self._TOKEN.findall(text)

    @staticmethod
    def written(operation, operands, fields):
        """The text of a line."""
        return " ".join([operation, *operands])

    def wrong(self, word, reason):
        """The error for a word of this line."""
        return UsageError(f"line {self.number}: {word!r} {reason}")

    def part_text(self, description):
        """Reads the next part of the operation."""
        if not self.parts:
            raise self.wrong(self.last, f"must go on with {description}")
        return self.parts.pop(0)

    def part(self, names, description):
        """Reads the next part of the operation, one of ``names``, a dictionary; returns its value."""
        word = self.part_text(f"{description}: {', '.join(names)}")
        if word not in names:
            raise self.wrong(word, f"must be {description}: {', '.join(names)}{suggestion(word, names)}")
        return names[word]

    def operand(self, description):
        """Reads the next operand as text."""
        if not self.operands:
            raise self.wrong(self.last, f"must be followed by {description}")
        self.last = self.operands.pop(0)
        return self.last

    def integer(self, word, limits, text=None):
        """``word``, or its part ``text``, as an integer within ``limits``."""
        text = word if text is None else text
        try:
            value = int(text, 16 if text.lower().startswith("0x") else 10)
        except ValueError:
            raise self.wrong(word, "must be a number") from None
        if not limits[0] <= value <= limits[1]:
            raise self.wrong(word, f"must be {limits[0]} to {limits[1]}")
        return value

    def integers(self, word, limits, count, text, description=""):
        """``word``, or its part ``text``, as ``count`` integers in parentheses."""
        entries = text[1:-1].replace(",", " ").split()
        if text[:1] != "(" or text[-1:] != ")" or len(entries) != count:
            raise self.wrong(word, f"must be {description}{count} numbers in parentheses")
        return tuple(self.integer(word, limits, entry) for entry in entries)

    def end(self):
        """Raises an error if words remain."""
        for word in (*self.parts, *self.operands):
            raise self.wrong(word, "is more than the command takes")


class Number:
    """An operand with the value of a field.

    Parameters
    ----------
    field : str
    description : str
        For the error if it is missing.
    form : str
        Format of its text: ``#x`` or ``d``.
    """

    def __init__(self, field, description, form="#x"):
        self.field, self.description, self.form = field, description, form

    def read(self, line, fmt, fields):
        self.parse(line.operand(self.description), line, fmt, fields)

    def parse(self, word, line, fmt, fields):
        """Sets ``fields`` from the operand ``word``."""
        fields[self.field] = line.integer(word, fmt[self.field].range)

    def write(self, fields):
        return f"{fields[self.field]:{self.form}}"


class Part:
    """A part of the operation: the name of a field's value in the dictionary ``names``."""

    def __init__(self, field, names, description):
        self.field, self._names, self._description = field, names, description
        self._written = {value: name for name, value in names.items()}

    def read(self, line, fmt, fields):
        fields[self.field] = line.part(self._names, self._description)

    def write(self, fields):
        return f".{self._written[fields[self.field]]}"


class Flag:
    """A part of the operation, by default the name of a field of one bit, if the bit is set."""

    def __init__(self, field, text=None):
        self._field, self._text = field, text or field

    def read(self, line, fmt, fields):
        if line.parts[:1] == [self._text]:
            line.parts.pop(0)
            fields[self._field] = 1

    def write(self, fields):
        return f".{self._text}" * fields[self._field]


class Optional:
    """Items that may all be omitted; the field of the first item is then 0."""

    def __init__(self, *items):
        self._items = items

    def read(self, line, fmt, fields):
        for item in self._items if line.parts else ():
            item.read(line, fmt, fields)

    def write(self, fields):
        return "".join(item.write(fields) for item in self._items) if fields[self._items[0].field] else ""


class When:
    """An item that exists if ``condition(fields)``, with the fields of the items before it."""

    def __init__(self, condition, item):
        self._condition, self._item = condition, item

    def read(self, line, fmt, fields):
        if self._condition(fields):
            self._item.read(line, fmt, fields)

    def write(self, fields):
        return self._item.write(fields) if self._condition(fields) else ""


class Language:
    """A reader and writer of lines.

    Parameters
    ----------
    line : type
        A subclass of :class:`TextLine`.
    formats : dict
        The format of each opcode; all of them have the same number of bits, and the opcode at one place.
    syntaxes : dict
        For each name of an operation a tuple of its opcode and its items, in the order of the text. An operation with
        several opcodes has a tuple of them, and items may replace the first one.
    opcode : str
        Name of the field with the opcode.

    Attributes
    ----------
    bits : int
    """

    def __init__(self, line, formats, syntaxes, opcode="opcode"):
        self._line, self._formats = line, formats
        self._syntaxes = {
            name: (opcode if isinstance(opcode, tuple) else (opcode,), items)
            for name, (opcode, *items) in syntaxes.items()
        }
        first = next(iter(formats.values()))
        self.bits, self._opcode = first.bits, first[opcode]

    def assemble(self, text):
        """The list of words of a program; a UsageError names the wrong line and word."""
        lines = ((number, line.split("//")[0].strip()) for number, line in enumerate(text.splitlines(), 1))
        return [self._word(line, number) for number, line in lines if line]

    def disassemble(self, word, **known):
        """The line of a word, or ``word n`` if no line stands for it; ``known`` are fields that it does not have."""
        opcode = word >> self._opcode.lsb & (1 << self._opcode.width) - 1
        for name, (opcodes, items) in self._syntaxes.items():
            if opcode in opcodes:
                fields = self._formats[opcode].unpack(word) | known
                try:
                    written = [item.write(fields) for item in items]
                    parts = "".join(text for text in written if text.startswith("."))
                    operands = [text for text in written if text and not text.startswith(".")]
                    text = self._line.written(name + parts, operands, fields)
                    if self._word(text, 1) == word:
                        return text
                except (UsageError, ValueError, LookupError):
                    pass  # a number without a name, or out of the range of lines
        return f"word {word:#x}"

    def _word(self, text, number):
        line = self._line(text, number)
        name = line.parts.pop(0)
        if name not in self._syntaxes and name != "word":
            raise line.wrong(name, f"is not an operation{suggestion(name, self._syntaxes)}")
        (opcode, *_), items = self._syntaxes.get(name, ((None,), ()))
        fmt = self._formats.get(opcode)
        if not line.common.keys() <= (fmt.names if fmt else set()):
            raise line.wrong(name, line.WITHOUT_COMMON)
        fields = {self._opcode.name: opcode} | line.common
        for item in items:
            item.read(line, fmt, fields)
        word = None if fmt else line.integer(line.operand("a number"), (0, (1 << self.bits) - 1))
        line.end()
        if fmt is None:
            return word
        fmt = self._formats[fields[self._opcode.name]]
        return fmt.pack(**{name: value for name, value in fields.items() if name in fmt.names})
