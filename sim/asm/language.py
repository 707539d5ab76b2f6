"""A line of the text of commands or instructions, taken word by word."""

from tilewright.errors import UsageError
from tilewright.spec.names import suggestion

__all__ = ["Language", "Number", "Optional", "Part", "TextLine", "When"]


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


class Number:
    """An operand that is the value of a field.

    Parameters
    ----------
    field : str
    what : str
        What it is called when it is missing.
    form : str
        How it is written: ``#x`` or ``d``.
    """

    def __init__(self, field, what, form="#x"):
        self.field, self.what, self.form = field, what, form

    def read(self, line, fmt, fields):
        self.parse(line.operand(self.what), line, fmt, fields)

    def parse(self, word, line, fmt, fields):
        """Reads ``word``, which has been taken."""
        fields[self.field] = line.integer(word, fmt[self.field].range)

    def write(self, fields):
        return f"{fields[self.field]:{self.form}}"


class Part:
    """A part of the operation: the value of a field, by its name in the dictionary ``names``."""

    def __init__(self, field, names, what):
        self.field, self._names, self._what = field, names, what
        self._written = {value: name for name, value in names.items()}

    def read(self, line, fmt, fields):
        fields[self.field] = line.part(self._names, self._what)

    def write(self, fields):
        return f".{self._written[fields[self.field]]}"


class Optional:
    """Parts that are there together, or not at all: then the field of the first one is 0."""

    def __init__(self, *items):
        self._items = items

    def read(self, line, fmt, fields):
        for item in self._items if line.parts else ():
            item.read(line, fmt, fields)

    def write(self, fields):
        return "".join(item.write(fields) for item in self._items) if fields[self._items[0].field] else ""


class When:
    """An item that is there if ``condition`` holds for the fields of the items before."""

    def __init__(self, condition, item):
        self._condition, self._item = condition, item

    def read(self, line, fmt, fields):
        if self._condition(fields):
            self._item.read(line, fmt, fields)

    def write(self, fields):
        return self._item.write(fields) if self._condition(fields) else ""


class Language:
    """Lines and words, in both directions.

    Parameters
    ----------
    line : type
        A kind of :class:`TextLine`.
    formats : dict
        The format of each opcode; all of them have ``bits`` bits, and the field ``opcode`` in one place.
    syntaxes : dict
        By the name of an operation a tuple of its opcode and its items (:mod:`items`), in the order of the text. An
        operation with several opcodes has a tuple of them; it is the first one unless an item changes the field.
    opcode : str
        What the field is called.

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
        """The words of a program, as a list; UsageError names line and word of what is wrong."""
        lines = ((number, line.split("//")[0].strip()) for number, line in enumerate(text.splitlines(), 1))
        return [self._word(line, number) for number, line in lines if line]

    def disassemble(self, word, **known):
        """The line of a word; ``word n`` if it has bits that no line says. ``known`` is what the word leaves open."""
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
                    pass  # a number has no name, or no line may have it
        return f"word {word:#x}"

    def _word(self, text, number):
        line = self._line(text, number)
        name = line.parts.pop(0)
        if name not in self._syntaxes and name != "word":
            raise line.wrong(name, f"is no operation{suggestion(name, self._syntaxes)}")
        (opcode, *_), items = self._syntaxes.get(name, ((None,), ()))
        fmt = self._formats.get(opcode)
        known = {field.name for field in fmt.fields} if fmt else set()
        if not line.common.keys() <= known:
            raise line.wrong(name, line.WITHOUT_COMMON)
        fields = {self._opcode.name: opcode} | line.common
        for item in items:
            item.read(line, fmt, fields)
        word = None if fmt else line.integer(line.operand("a number"), (0, (1 << self.bits) - 1))
        line.end()
        return fmt.pack(**{name: value for name, value in fields.items() if name in known}) if fmt else word
