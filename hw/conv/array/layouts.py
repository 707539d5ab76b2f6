"""What passes between blocks of the array."""

from amaranth.hdl import unsigned
from amaranth.lib import data

from tilewright.golden.spec.conv.params import CHANNELS_AT_ONCE

from ..layouts import HalvesLayout, LaneReadLayout

__all__ = ["StepLayout"]


class StepLayout(data.StructLayout):
    """One cycle of the array: a set of feature rows and one row in each slave."""

    def __init__(self, params):
        half = {"half": unsigned(1)} if params.floats else {}  # of the biases: passes 0, 2, … or 1, 3, …
        super().__init__(
            half
            | {
                "read": LaneReadLayout(params),  # of slaves' memories
                "part": unsigned(4),  # of the word, if a row is less than it: the part-th pci bytes
                "channel": range(CHANNELS_AT_ONCE),  # t
                "bank": range(params.accumulator_banks),  # of accumulators
                "halves": HalvesLayout(params),
            }
        )
