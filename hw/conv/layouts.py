"""What passes between blocks of the convolution engine."""

from amaranth.hdl import unsigned
from amaranth.lib import data

from tilewright.golden.spec import Format
from tilewright.golden.spec.conv.job import JOB

from ..lib.formats import struct_layout

__all__ = ["AccumulatorsLayout", "PostJobLayout", "ResultsLayout"]

_POST = {"output", "add", "y_zero", "minimum", "maximum", "add_minimum", "add_maximum", "ratio", "offset"}


class AccumulatorsLayout(data.StructLayout):
    """Finished accumulators, and what belongs to each: of those that ``mask`` leaves out anything."""

    def __init__(self, params):
        super().__init__(
            {
                "acc": data.ArrayLayout(32, params.results),  # or an element of X, in the low bits
                "scale": data.ArrayLayout(32, params.results),  # binary32
                "addend": data.ArrayLayout(8, params.results),  # the element of the second operand
                "mask": unsigned(params.results),
            }
        )


class ResultsLayout(data.StructLayout):
    """Results, each in the low bits of 32; higher ones are anything."""

    def __init__(self, params):
        super().__init__({"data": data.ArrayLayout(32, params.results), "mask": unsigned(params.results)})


class PostJobLayout(data.StructLayout):
    """The fields of a job that say what becomes of accumulators, by their names in the table of jobs."""

    def __init__(self):
        fields = tuple(field for field in JOB.fields if field.name in _POST)
        super().__init__(struct_layout(Format("post", JOB.bits, "Post-processing.", fields)).members)
