"""The text of jobs of the convolution engine: each line is a job of 1024 bits.

::

    operation.type.output{.bias}{.raster}{.early}{.zero_first} {field=value | field=(value,value…)} …

``operation`` is convolution, depthwise, sum_pool or max_pool; fields have the names of the job format, in any order.
Omitted fields have their lowest values. A line with ``barrier`` signals it, a line with ``addend`` adds it, and a line
with ``function_table`` has a function. ``//`` begins a comment. ``word n`` is a raw job. Numbers are decimal, or
hexadecimal with 0x.
"""

import re

from tilewright.spec.conv import JOB, JOB_VERSION, ConvOperation, ConvOutput
from tilewright.spec.fields import names
from tilewright.spec.pe import MmType

from .language import Flag, Language, Part, TextLine

__all__ = ["BITS", "ConvLine", "assemble_jobs", "disassemble_job"]

#: Fields that are parts of the operation, or follow from other fields.
_PARTS = {
    "version", "operation", "type", "output", "bias", "add", "signal", "raster", "early", "function", "zero_first",
}  # fmt: skip
_FIELDS = {field.name: field for field in JOB.fields if field.name not in _PARTS}
#: Fields with a field that says that they are used.
_SWITCHES = {"barrier": "signal", "addend": "add", "function_table": "function"}
#: Fields in hexadecimal.
_HEXADECIMAL = {"barrier", "x", "k", "table", "y", "addend", "function_table", "ratio", "offset"}


class ConvLine(TextLine):
    """A line of operands with spaces between them, each a name, ``=``, and a number or numbers in parentheses."""

    _TOKEN = re.compile(r"\w+=\([^()]*\)|\S+")

    def assignment(self, fields):
        """Reads the next operand, ``name=value`` of one of ``fields``; returns name and value."""
        word = self.operand("a field, as name=value")
        name, equals, value = word.partition("=")
        if not equals or name not in fields:
            raise self.wrong(word, f"must be name=value with one of {', '.join(fields)}")
        field = fields[name]
        if field.count:
            return name, self.integers(word, field.range, field.count, value)
        return name, self.integer(word, field.range, value)


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


_SYNTAX = (
    Part("type", names(MmType), "a type"), Part("output", names(ConvOutput), "an output"), Flag("bias"),
    Flag("raster"), Flag("early"), Flag("zero_first"), _Fields(),
)  # fmt: skip
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
