"""Counting what is under way."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CreditCounter"]


class CreditCounter(wiring.Component):
    """Counts what has been begun and has not ended, up to a limit.

    Parameters
    ----------
    limit : int
        Most that may be under way, at least 1.

    Members
    -------
    take : In(1)
        Strobe: one more begins. Only while ``available``.
    give : In(1)
        Strobe: one has ended. Only while ``in_flight`` is not zero; may come together with ``take``.
    available : Out(1)
        Fewer than ``limit`` are under way; depends on the count only.
    in_flight : Out(range(limit + 1))
        The count, registered.
    """

    def __init__(self, limit):
        if not isinstance(limit, int) or limit < 1:
            raise ValueError(f"limit must be an int of at least 1, not {limit!r}")
        self._limit = limit
        super().__init__({"take": In(1), "give": In(1), "available": Out(1), "in_flight": Out(range(limit + 1))})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.available.eq(self.in_flight != self._limit)
        m.d.sync += self.in_flight.eq(self.in_flight + self.take - self.give)
        return m
