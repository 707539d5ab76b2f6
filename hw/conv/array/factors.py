"""Elements of a row as factors: the distance of each from its zero point."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["FactorLayout", "Factors", "factors_layout"]


class FactorLayout(data.StructLayout):
    """Two bytes of a row: an element of 16 bits in ``lower``, or two of 8 bits.

    Parameters
    ----------
    wide : bool
        There are elements of 16 bits.
    """

    def __init__(self, *, wide):
        super().__init__({"lower": signed(17 if wide else 9), "upper": signed(9)})


def factors_layout(row_bytes, *, wide):
    """A row of factors."""
    return data.ArrayLayout(FactorLayout(wide=wide), row_bytes // 2)


class Factors(wiring.Component):
    """Takes a row apart, and the zero point from each element (docs/conv.md, "Operations").

    Latency: 1 cycle. Throughput: a row a cycle; nothing stalls it.

    Parameters
    ----------
    row_bytes : int
    wide : bool
        There are elements of 16 bits.

    Members
    -------
    row : In(8 * row_bytes)
    wide : In(1)
        Elements have 16 bits.
    is_signed : In(1)
    zero : In(signed(17))
        Zero point, as a number of the elements' type.
    o : Out(factors_layout(row_bytes, wide=wide))
        ``upper`` is 0 for elements of 16 bits.
    """

    def __init__(self, row_bytes, *, wide):
        self._built_wide = wide
        super().__init__(
            {
                "row": In(8 * row_bytes),
                "wide": In(1),
                "is_signed": In(1),
                "zero": In(signed(17)),
                "o": Out(factors_layout(row_bytes, wide=wide)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        wide = self.wide if self._built_wide else 0
        bits = 17 if self._built_wide else 9
        zero = Signal(signed(bits))
        m.d.comb += zero.eq(self.zero)
        for number, factor in enumerate(self.o):
            pair = self.row.word_select(number, 16)
            low, high = pair[:8], pair[8:]
            narrow = Cat(low, self.is_signed & low[7]).as_signed()
            whole = Cat(pair, self.is_signed & pair[15]).as_signed()
            upper = Cat(high, self.is_signed & high[7]).as_signed()
            m.d.sync += factor.lower.eq(Mux(wide, whole, narrow) - zero)
            m.d.sync += factor.upper.eq(Mux(wide, 0, upper - zero))
        return m
