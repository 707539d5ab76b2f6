"""The text of jobs of the convolution engine: one line, one word of 1024 bits.

::

    operation.type.output{.bias}{.raster} {field=value | field=(value,value…)} …

``operation`` is convolution, depthwise, sum_pool or max_pool; fields are those of the table, in any order. One that is
left out has its lowest value. ``barrier`` is arrived at, and ``addend`` added, if the line has them. ``//`` begins a
comment. ``word n`` is a job as it is. Numbers are decimal, or hexadecimal with 0x.
"""

from tilewright.golden.spec.conv.job import JOB, JOB_VERSION, ConvOperation, ConvOutput
from tilewright.golden.spec.fields import names
from tilewright.golden.spec.pe.instruction import MmType

from ..items import Optional, Part
from ..language import Language
from .line import ConvLine

__all__ = ["BITS", "assemble_jobs", "disassemble_job"]

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
