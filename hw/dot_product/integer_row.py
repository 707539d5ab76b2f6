"""Dot-product units in a row that multiply integers only."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..lib.delay import delay
from .groups import Groups, add_wrapping
from .row import check_units

__all__ = ["IntegerProduct", "IntegerRow"]

#: Products of a unit that are added up one after the other, each by the adder that a multiplier has behind it.
_LINKS = 4
_PRODUCT_CYCLES, _SUM_CYCLES = 2, 2
_BITS = 32


class IntegerProduct(wiring.Component):
    """The product of two integers of 16 bits, or the products of two pairs of 8 bits.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle.

    Parameters
    ----------
    wide : bool
        There are integers of 16 bits. Without them both multipliers have 9 bits, with them one has 17.
    waits : int
        So many cycles factors wait in front of the multiplier, extended: in registers that multipliers have.

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

    def __init__(self, *, wide=True, waits=0):
        self._wide, self._waits = wide, waits
        self.LATENCY = _PRODUCT_CYCLES + waits
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
        (lower_a, lower_b), (upper_a, upper_b) = (
            [delay(m, factor, self._waits, name=f"{factor.name}_waits") for factor in pair] for pair in (lowers, uppers)
        )
        m.d.comb += [
            self.lower.eq(delay(m, (lower_a * lower_b)[:_BITS].as_signed(), 1, name="lower")),
            self.upper.eq(delay(m, upper_a * upper_b, 1, name="upper")),
        ]
        return m


class IntegerRow(wiring.Component):
    """A ``DotRow`` without floats: sums are made modulo 2^32, and there is nothing to align or to round.

    Products of a unit are added up in chains of ``_LINKS``: what each adds comes a cycle after what the one before it
    adds, so that its multiplier, its adder and the registers in between are one block of devices that have such
    blocks. Two cycles for products, one for each link, two for sums of chains, and over each group.

    Latency: ``LATENCY`` cycles, for all types. Throughput: one row a cycle; nothing stalls it.

    Parameters
    ----------
    count, unit_bytes, sizes
        As of a ``DotRow``.
    wide : bool
        There are integers of 16 bits.
    others : bool
        A second word is added to each accumulator: where it comes from two sources, it needs no choice between them.

    Members
    -------
    type : In(4)
        ``MmType``, of integers.
    select : In(range(len(sizes)))
    a, b : In(data.ArrayLayout(8 * unit_bytes, count))
    accumulators : In(array of count 32)
    o : Out(array of count 32)
        All as of a ``DotRow``.
    others : In(array of count 32) if others
        The second words.
    """

    def __init__(self, *, count, unit_bytes, sizes, wide=True, others=False):
        check_units(unit_bytes, sizes)
        self._lanes, self._wide = unit_bytes // 2, wide
        self._links = min(_LINKS, self._lanes)
        self._groups = Groups(count, sizes)
        self._sums_after = _PRODUCT_CYCLES + self._links
        self.LATENCY = self._sums_after + _SUM_CYCLES
        super().__init__(
            {
                "type": In(4),
                "select": In(range(len(sizes))),
                "a": In(data.ArrayLayout(8 * unit_bytes, count)),
                "b": In(data.ArrayLayout(8 * unit_bytes, count)),
                "accumulators": In(data.ArrayLayout(32, count)),
                **({"others": In(data.ArrayLayout(32, count))} if others else {}),
                "o": Out(data.ArrayLayout(32, count)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        rows = [self._chains(m, unit) for unit in range(self._groups.count)]
        selects = [delay(m, self.select, self._sums_after, name="select")]
        for cycle in range(1, _SUM_CYCLES):
            selects.append(delay(m, selects[-1], 1, name=f"select_{cycle}"))
        sums = self._groups.reduce(m, rows, selects, add_wrapping, name="sum")
        m.d.comb += [o.eq(total) for o, total in zip(self.o, sums, strict=True)]
        return m

    def _chains(self, m, unit):
        """What is summed in a unit: chains of lower products and of upper ones.

        The first ones begin with the accumulator of a unit that leads a group, and with its second word.
        """
        leads = self._groups.leads(self.select, unit)
        starts = [
            delay(m, Mux(leads, getattr(self, name)[unit], 0), _PRODUCT_CYCLES, name=f"{name}_{unit}").as_signed()
            for name in ("accumulators", "others")
            if name in self.signature.members
        ]
        lowers, uppers = [], []
        for lane in range(self._lanes):
            link = lane % self._links
            m.submodules[f"product_{unit}_{lane}"] = product = IntegerProduct(wide=self._wide, waits=link)
            m.d.comb += [
                product.type.eq(self.type),
                product.a.eq(self.a[unit].word_select(lane, 16)),
                product.b.eq(self.b[unit].word_select(lane, 16)),
            ]
            if link == 0:
                for sums in (lowers, uppers):
                    sums.append(starts.pop(0) if starts else Const(0, signed(1)))
            for sums, term, kind in ((lowers, product.lower, "lower"), (uppers, product.upper, "upper")):
                total = sums[-1] + term
                total = total[:_BITS].as_signed() if len(total) > _BITS else total
                sums[-1] = delay(m, total, 1, name=f"{kind}_{unit}_{lane}")
        # A last chain with fewer links waits for the others.
        waits = -self._lanes % self._links
        return [
            delay(m, total, waits if number == len(sums) - 1 else 0, name=f"{kind}_{unit}_whole")
            for sums, kind in ((lowers, "lower"), (uppers, "upper"))
            for number, total in enumerate(sums)
        ]
