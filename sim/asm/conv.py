"""One line of the text of jobs of the convolution engine, word by word."""

import re

from tilewright.spec.conv import JOB, JOB_VERSION, ConvOperation, ConvOutput
from tilewright.spec.fields import names
from tilewright.spec.pe import MmType

from .language import Language, Optional, Part, TextLine

__all__ = ["BITS", "ConvLine", "assemble_jobs", "disassemble_job"]

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


#: Fields that are parts of the operation, or follow from others.
_PARTS = {"version", "operation", "type", "output", "bias", "add", "signal", "raster", "early"}
_FIELDS = {field.name: field for field in JOB.fields if field.name not in _PARTS}
#: Fields that are used if they are given, and what then is one.
_SWITCHES = {"barrier": "signal", "addend": "add"}
#: Fields that are written in hexadecimal.
_HEXADECIMAL = {"barrier", "x", "k", "table", "y", "addend", "ratio", "offset"}


class _Flag(Optional):
    """A part that is there or not: the name of a field of one bit."""

    def __init__(self, field):
        super().__init__(Part(field, {field: 1}, "nothing or"))
        self._name = field

    def read(self, line, fmt, fields):
        if line.parts[:1] == [self._name]:
            super().read(line, fmt, fields)


class _Fields:
    """All other fields, as name=value."""

    def read(self, line, fmt, fields):
        fields["version"] = JOB_VERSION
        while line.operands:
            name, value = line.assignment(_FIELDS)
            if name in fields:
                raise line.wrong(line.last, "is given twice")
            fields[name] = value
            if name in _SWITCHES:
                fields[_SWITCHES[name]] = 1

    def write(self, fields):
        return " ".join(
            f"{name}={_written(fields[name], '#x' if name in _HEXADECIMAL else 'd')}"
            for name, field in _FIELDS.items()
            if _is_set(field, fields[name]) or fields.get(_SWITCHES.get(name))
        )


def _is_set(field, value):
    return any(entry != field.range[0] for entry in (value if field.count else [value]))


def _written(value, form):
    if isinstance(value, list):
        return f"({','.join(format(entry, form) for entry in value)})"
    return format(value, form)


_SYNTAX = (Part("type", names(MmType), "a type"), Part("output", names(ConvOutput), "an output"),
           _Flag("bias"), _Flag("raster"), _Flag("early"), _Fields())  # fmt: skip
_LANGUAGE = Language(
    ConvLine,
    dict.fromkeys(ConvOperation, JOB),
    {name: (operation, *_SYNTAX) for name, operation in names(ConvOperation).items()},
    opcode="operation",
)

#: Bits of a job.
BITS = _LANGUAGE.bits

assemble_jobs = _LANGUAGE.assemble
disassemble_job = _LANGUAGE.disassemble
