"""Dot-product units in a row that multiply integers only."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..lib.delay import delay
from .groups import Groups, add_wrapping
from .row import check_units

__all__ = ["IntegerProduct", "IntegerRow"]

_SUM_CYCLES = 3
_BITS = 32


class IntegerProduct(wiring.Component):
    """The product of two integers of 16 bits, or the products of two pairs of 8 bits.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle.

    Parameters
    ----------
    wide : bool
        There are integers of 16 bits. Without them both multipliers have 9 bits, with them one has 17.

    Members
    -------
    type : In(4)
        ``MmType``.
    a, b : In(16)
        One element of 16 bits or two of 8 bits, each.
    lower : Out(signed(32))
        Modulo 2^32: the product, or that of the lower pair.
    upper : Out(signed(18))
        That of the upper pair; 0 if there is none.
    """

    LATENCY = 2

    def __init__(self, *, wide=True):
        self._wide = wide
        super().__init__(
            {"type": In(4), "a": In(16), "b": In(16), "lower": Out(signed(_BITS)), "upper": Out(signed(18))}
        )

    def elaborate(self, platform):
        m = Module()
        wide = self.type[2] if self._wide else Const(0)
        lowers, uppers = [], []
        for name, bits, is_signed in (("a", self.a, ~self.type[1]), ("b", self.b, ~self.type[0])):
            narrow = Cat(bits[:8], is_signed & bits[7])
            whole = Cat(bits, is_signed & bits[15])
            lower = Signal(signed(17 if self._wide else 9), name=f"lower_{name}", reset_less=True)
            upper = Signal(signed(9), name=f"upper_{name}", reset_less=True)
            m.d.sync += [lower.eq(Mux(wide, whole, narrow.as_signed())), upper.eq(whole[8:])]
            lowers.append(lower)
            uppers.append(upper)
        # One factor of the upper pair is zero, if there is no such pair.
        with m.If(wide):
            m.d.sync += uppers[0].eq(0)
        m.d.comb += [
            self.lower.eq(delay(m, (lowers[0] * lowers[1])[:_BITS].as_signed(), 1, name="lower")),
            self.upper.eq(delay(m, uppers[0] * uppers[1], 1, name="upper")),
        ]
        return m


class IntegerRow(wiring.Component):
    """A ``DotRow`` without floats: sums are made modulo 2^32, and there is nothing to align or to round.

    Two cycles for products, three for sums: within the units, and over each group.

    Latency: ``LATENCY`` cycles, for all types. Throughput: one row a cycle; nothing stalls it.

    Parameters
    ----------
    count, unit_bytes, sizes
        As of a ``DotRow``.
    wide : bool
        There are integers of 16 bits.

    Members
    -------
    type : In(4)
        ``MmType``, of integers.
    select : In(range(len(sizes)))
    a, b : In(data.ArrayLayout(8 * unit_bytes, count))
    accumulators : In(array of count 32)
    o : Out(array of count 32)
        All as of a ``DotRow``.
    """

    LATENCY = IntegerProduct.LATENCY + _SUM_CYCLES

    def __init__(self, *, count, unit_bytes, sizes, wide=True):
        check_units(unit_bytes, sizes)
        self._unit_bytes, self._wide = unit_bytes, wide
        self._groups = Groups(count, sizes)
        super().__init__(
            {
                "type": In(4),
                "select": In(range(len(sizes))),
                "a": In(data.ArrayLayout(8 * unit_bytes, count)),
                "b": In(data.ArrayLayout(8 * unit_bytes, count)),
                "accumulators": In(data.ArrayLayout(32, count)),
                "o": Out(data.ArrayLayout(32, count)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        rows = [self._terms(m, unit) for unit in range(self._groups.count)]
        selects = [delay(m, self.select, IntegerProduct.LATENCY, name="select")]
        for cycle in range(1, _SUM_CYCLES):
            selects.append(delay(m, selects[-1], 1, name=f"select_{cycle}"))
        sums = self._groups.reduce(m, rows, selects, add_wrapping, name="sum")
        m.d.comb += [o.eq(total) for o, total in zip(self.o, sums, strict=True)]
        return m

    def _terms(self, m, unit):
        """What is summed in a unit: short ones beside each other, and the accumulator of a unit that leads a group."""
        lowers, uppers = [], []
        for lane in range(self._unit_bytes // 2):
            m.submodules[f"product_{unit}_{lane}"] = product = IntegerProduct(wide=self._wide)
            m.d.comb += [
                product.type.eq(self.type),
                product.a.eq(self.a[unit].word_select(lane, 16)),
                product.b.eq(self.b[unit].word_select(lane, 16)),
            ]
            lowers.append(product.lower)
            uppers.append(product.upper)
        leads = self._groups.leads(self.select, unit)
        accumulator = Mux(leads, self.accumulators[unit], 0)
        delayed = delay(m, accumulator, IntegerProduct.LATENCY, name=f"accumulator_{unit}")
        return [*lowers, *uppers, delayed]
