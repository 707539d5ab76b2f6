"""Sums, rounded once to fp32."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..lib.delay import delay
from .terms import TOP, SpecialLayout

__all__ = ["Normalizer"]

#: Zeros above a sum. It is shifted left only: by this many places and more if its exponent is large enough, by less
#: if the result is subnormal. 25 would do; 32 make the sum with the number of leading zeros free.
_ABOVE = 32

#: Log2 of the step of the first shifter.
_COARSE = 4

_NAN = 0x7FC00000
_INFINITY = 0xFF << 23


class Normalizer(wiring.Component):
    """The sum of aligned terms as an fp32 number, rounded to nearest even, or its low 32 bits (docs/pe.md, "Numbers").

    Latency: ``LATENCY`` cycles. Throughput: one a cycle.

    Parameters
    ----------
    width : int
        Bits of the sum with its sign, 50 to 64.

    Members
    -------
    total : In(signed(width))
        Its bit 48 has the weight of ``top``.
    top : In(TOP)
    integer : In(1)
        Give the low 32 bits of ``total``.
    special : In(SpecialLayout)
    o : Out(32)
    """

    LATENCY = 5

    def __init__(self, width):
        if not 50 <= width <= 64:
            raise ValueError(f"the width of a sum must be 50 to 64, not {width!r}")
        #: Bits of the magnitude.
        self._bits = width - 1
        super().__init__(
            {
                "total": In(signed(width)),
                "top": In(TOP),
                "integer": In(1),
                "special": In(SpecialLayout()),
                "o": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        sized = self._register(m, "sized", **self._size(m))
        counted = self._register(m, "counted", **self._count(m, sized))
        moved = self._register(m, "moved", **self._move(m, counted))
        normal = self._register(m, "normal", **self._finish(m, moved))
        m.d.comb += self.o.eq(delay(m, self._pack(normal), 1, name="packed"))
        return m

    @staticmethod
    def _register(m, stage, **values):
        """Registers between two stages, one for each value."""
        return SimpleNamespace(**{name: delay(m, value, 1, name=f"{stage}_{name}") for name, value in values.items()})

    def _size(self, m):
        """Stage 1: the magnitude; the exponent that a leading one on top would have; how far left it may go."""
        negative = Signal()
        m.d.comb += negative.eq(self.total[-1] & ~self.integer)
        exponent = Signal(signed(11))
        m.d.comb += exponent.eq(self.top + (self._bits - 49 - 128))
        # Down to exponent 1. Nothing is left of a sum that would have to go right.
        limit = Signal(signed(12))
        m.d.comb += limit.eq(exponent + (_ABOVE - 1))
        places = Mux(limit < 0, 0, Mux(limit > 127, 127, limit[:7]))
        return {
            "size": ((self.total ^ negative.replicate(self._bits)) + negative)[: self._bits],
            "exponent": exponent,
            "limit": Mux(self.integer, self._bits, places),
            "negative": self.special.negative | (negative & ~self.special.infinite),
            "infinite": self.special.infinite,
            "nan": self.special.nan,
            "integer": self.integer,
        }

    def _count(self, m, i):
        """Stage 2: how far left the leading one has to go. An integer's low 32 bits go to the top."""
        zeros = _leading_zeros(m, i.size)
        return {
            "size": i.size,
            "places": Mux(i.integer, self._bits, Cat(zeros[:5], ~zeros[5], zeros[5])),
            "limit": i.limit,
            "exponent": i.exponent - zeros,
            "negative": i.negative,
            "infinite": i.infinite,
            "nan": i.nan,
            "integer": i.integer,
        }

    def _move(self, m, i):
        """Stage 3: the first shift. Below what the second one can bring up only matters whether anything is there."""
        places = Signal(7)
        m.d.comb += places.eq(Mux(i.limit < i.places, i.limit, i.places))
        moved = Signal(self._bits + _ABOVE)
        m.d.comb += moved.eq(i.size << Cat(Const(0, _COARSE), places[_COARSE:]))
        kept = 32 + (1 << _COARSE) - 1
        return {
            "number": moved[-kept:],
            "rest": moved[:-kept].any(),
            "places": places[:_COARSE],
            "exponent": i.exponent,
            "negative": i.negative,
            "infinite": i.infinite,
            "nan": i.nan,
            "integer": i.integer,
        }

    @staticmethod
    def _finish(m, i):
        """Stage 4: the second shift; whether to round up."""
        moved = Signal(len(i.number))
        m.d.comb += moved.eq(i.number << i.places)
        number = moved[-32:]
        below = moved[:-32].any() | i.rest | number[:7].any()
        leading = number[-1]
        return {
            "number": number,
            "up": number[7] & (number[8] | below),
            "exponent": Mux(leading, i.exponent[:8], 0),
            # A leading one is never shifted beyond exponent 1.
            "infinite": i.infinite | (leading & (i.exponent >= 255)),
            "negative": i.negative,
            "nan": i.nan,
            "integer": i.integer,
        }

    @staticmethod
    def _pack(i):
        """Stage 5: rounds. A carry out of the mantissa counts the exponent up, to infinity if need be."""
        rounded = (Cat(i.number[8:31], i.exponent) + i.up)[:31]
        size = Mux(i.infinite, _INFINITY, rounded)
        return Mux(i.integer, i.number, Mux(i.nan, _NAN, Cat(size[:31], i.negative)))


def _leading_zeros(m, value):
    """Zeros above the highest one of ``value``, 6 bits; all ones if there is none."""
    bits = Cat(Const(0, 64 - len(value)), value)
    #: From the lowest place up: whether a part has a one, and the zeros above it.
    parts = [(bit, Const(0, 0)) for bit in bits]
    while len(parts) > 1:
        joined = []
        for number, ((low, low_count), (high, high_count)) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
            name = f"{len(parts) // 2}_{number}"
            some, count = Signal(name=f"some_{name}"), Signal(len(high_count) + 1, name=f"zeros_{name}")
            m.d.comb += [some.eq(low | high), count.eq(Cat(Mux(high, high_count, low_count), ~high))]
            joined.append((some, count))
        parts = joined
    return parts[0][1]
