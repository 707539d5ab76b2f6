"""Payloads between the blocks that multiply."""

from amaranth import unsigned
from amaranth.lib import data

from ..params import LANES
from ..sharing import SPLIT_COLUMNS, is_split

__all__ = ["STEP_UNITS", "StepLayout", "place_of_unit"]

#: Places of units of B that one step can broadcast: ka = 4 columns of kb = 4 units.
STEP_UNITS = 2 * LANES


def place_of_unit(ka, kb, unit):
    """Where unit qa·kb + qb of a step is in ``StepLayout.units``."""
    first = SPLIT_COLUMNS * kb
    return LANES + unit - first if is_split(ka, kb) and unit >= first else unit


class StepLayout(data.StructLayout):
    """One broadcast: ka columns of kb units each to all threads."""

    def __init__(self, params):
        super().__init__(
            {
                "units": data.ArrayLayout(params.unit_bits, STEP_UNITS),  # each at its place_of_unit
                "on": unsigned(4),  # by member qa
                "register": unsigned(params.reg_width),
                "type": unsigned(4),
                "ka": 2,  # as stored
                "kb": 2,  # as stored
                "first": 1,  # the first step of an mm: its factors are to be used from here on
                "last": 1,  # the last one of it; on may be 0
            }
        )
