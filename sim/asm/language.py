"""A language of lines, each of which stands for a word: one table reads and writes it."""

from tilewright.golden.suggestion import suggestion

from ..usage import UsageError

__all__ = ["Language"]


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
