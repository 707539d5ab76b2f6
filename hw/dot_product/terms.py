"""What a dot product adds up: the shapes that its parts share (docs/pe.md, "Numbers")."""

from amaranth.hdl import signed, unsigned
from amaranth.lib import data

__all__ = ["ACCUMULATOR_PLACES", "PRODUCT_PLACES", "TERM", "TOP", "FlagsLayout", "SpecialLayout", "is_integer"]

#: A term in two's complement. Of a float the highest place of M is bit 31; places that M does not have are zero.
TERM = signed(33)

#: Weight of a term's highest place, log2 plus 255. 0: the term is zero; it is least, as maxima need it.
TOP = unsigned(9)

#: Places of M of a float, counted from the highest one: of a product (of fp16; bf16 has 16), of an accumulator.
PRODUCT_PLACES, ACCUMULATOR_PLACES = 22, 24


class FlagsLayout(data.StructLayout):
    """What of a term its number does not say. Those of several terms are joined by OR."""

    def __init__(self):
        super().__init__(
            {
                "nan": 1,
                "plus": 1,  # infinite, and positive
                "minus": 1,  # infinite, and negative
                "positive": 1,  # not negative: its sign bit is clear
            }
        )


class SpecialLayout(data.StructLayout):
    """What of a sum its number does not say."""

    def __init__(self):
        super().__init__(
            {
                "nan": 1,
                "infinite": 1,
                "negative": 1,  # of an infinity; otherwise that no term is positive, so that a zero is -0
            }
        )


def is_integer(kind):
    """Whether a signal that holds an ``MmType`` names integers."""
    return ~kind[3]
