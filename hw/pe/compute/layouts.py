"""Payloads between the blocks that multiply."""

from amaranth import unsigned
from amaranth.lib import data

__all__ = ["STEP_UNITS", "StepLayout"]

#: Units of B that one step can broadcast: ka = 4 columns of kb = 4 units.
STEP_UNITS = 16


class StepLayout(data.StructLayout):
    """One broadcast: ka columns of kb units each to all threads."""

    def __init__(self, params):
        super().__init__(
            {
                "units": data.ArrayLayout(params.unit_bits, STEP_UNITS),  # unit qa·kb + qb
                "on": unsigned(4),  # by member qa
                "register": unsigned(params.reg_width),
                "type": unsigned(4),
                "ka": 2,  # as stored
                "kb": 2,  # as stored
                "first": 1,  # the first step of an mm: its factors are to be used from here on
                "last": 1,  # the last one of it; on may be 0
            }
        )
