"""Short quotients of all threads, as a softmax of bytes needs them."""

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.component import shared_module
from ...lib.logic import delay, named
from .steps import digit

__all__ = ["QuotientRow", "ShortDivider"]

#: Bits of a quotient, one of which says that it is too large; how many a stage computes.
_BITS, _DIGITS = 11, 3


class ShortDivider(wiring.Component):
    """QDIV: ⌊(a · (c mod 1024) + ⌊b / 2⌋) / b⌋, at most 1023; by zero 1023 (docs/pe.md, "Arithmetic").

    Latency: ``LATENCY`` cycles: one for the product, one for the sum, four for the division. Throughput: one a cycle.
    """

    LATENCY = 6

    a: In(32)
    b: In(32)
    c: In(10)
    o: Out(10)

    def elaborate(self, platform):
        m = Module()
        product = delay(m, self.a * self.c, 1, name="product")
        b = delay(m, self.b, 1, name="b")
        # Below 2^42: quotients from 2^10 on need one digit more.
        dividend = delay(m, (product + b[1:])[:42], 1, name="dividend")
        divisor = delay(m, b, 1, name="divisor")
        # The digits of the quotient come where bits of the dividend go.
        remainder, bits = Cat(dividend[_BITS:], 0, 0), dividend[:_BITS]
        for first in range(0, _BITS, _DIGITS):
            for _ in range(min(_DIGITS, _BITS - first)):
                remainder = digit(m, remainder, bits[-1], divisor)
                bits = Cat(~remainder[-1], bits)[:_BITS]
            remainder, bits, divisor = (
                delay(m, value, 1, name=f"{name}_{first}")
                for name, value in (("remainder", remainder), ("bits", bits), ("divisor", divisor))
            )
        large = named(m, bits[-1], "large")
        m.d.comb += self.o.eq(bits[:-1] | large.replicate(_BITS - 1))
        return m


class QuotientRow(wiring.Component):
    """QDIV of all threads, of which ``sharing`` share a :class:`ShortDivider`.

    ``start`` takes the operands of all threads, and may do so every ``sharing`` cycles. ``o`` has the results
    ``latency`` cycles after it, in that cycle alone.

    Latency: ``latency`` cycles: ``ShortDivider.LATENCY`` + ``sharing``. Throughput: a row each ``sharing`` cycles.

    Parameters
    ----------
    threads : int
    sharing : int
        1, 2 or 4.
    """

    def __init__(self, threads, sharing):
        if sharing not in (1, 2, 4):
            raise ValueError(f"1, 2 or 4 threads share a divider, not {sharing!r}")
        self._threads, self._sharing = threads, sharing
        self.latency = ShortDivider.LATENCY + sharing
        words = data.ArrayLayout(32, threads)
        super().__init__(
            {
                "start": In(1),  # strobe; at least ``sharing`` cycles after the last one
                "a": In(words),
                "b": In(words),
                "c": In(words),
                "o": Out(data.ArrayLayout(32, threads)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # The first thread of each group goes at once, the others wait.
        turn = Signal(range(self._sharing))
        with m.If(self.start | (turn != 0)):
            m.d.sync += turn.eq(turn + 1)
        late = delay(m, turn, ShortDivider.LATENCY, name="turn")
        for first in range(0, self._threads, self._sharing):
            divider = ShortDivider()
            m.submodules[f"divider_{first}"] = shared_module(platform, divider)
            members = range(first, min(first + self._sharing, self._threads))
            for name in "abc":
                port, row = getattr(divider, name), getattr(self, name)
                choices = [row[first]]
                for thread in members[1:]:
                    waiting = Signal(len(port), name=f"{name}_{thread}", reset_less=True)
                    with m.If(self.start):
                        m.d.sync += waiting.eq(row[thread])
                    choices.append(waiting)
                m.d.comb += port.eq(Array(choices)[turn] if len(choices) > 1 else choices[0])
            for number, thread in enumerate(members):
                with m.If(late == number):
                    m.d.sync += self.o[thread].eq(divider.o)
        return m
