"""Division of all threads: a few dividers, each of which the operands of several threads go through."""

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.component import shared_module
from .divider import Divider

__all__ = ["SHARING", "DivideRow"]

#: Threads that share a divider: the last one's result comes as many cycles later, and 24 in all are allowed.
SHARING = 8


class DivideRow(wiring.Component):
    """Divides, or takes the square root, in all threads at once (docs/pe.md, "Arithmetic").

    ``start`` takes the operands of all threads. ``done`` is low from the next cycle on; after ``cycles`` cycles it is
    high again, and ``o`` has the results until the next start. A start before that abandons the results.

    Cycles: ``cycles`` of each row: ``Divider.LATENCY`` + 2, and one for each further thread that shares a divider.

    Parameters
    ----------
    threads : int
    integers, floats : bool
        Whether it computes DIV, DIVU, REM, REMU, and FDIV, FSQRT; other results are undefined.
    """

    def __init__(self, threads, *, integers, floats):
        self._threads, self._options = threads, {"integers": integers, "floats": floats}
        self._sharing = min(threads, SHARING)
        #: From ``start`` to ``done``.
        self.cycles = Divider.LATENCY + 1 + self._sharing
        #: Since the cycle after the last start.
        self.cycle = Signal(range(self.cycles), init=self.cycles - 1)
        words = data.ArrayLayout(32, threads)
        super().__init__(
            {
                "start": In(1),  # strobe
                "function": In(8),  # Function; sampled, as a and b are, with ``start``
                "a": In(words),
                "b": In(words),
                "o": Out(words),
                "done": Out(1, init=1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        words = data.ArrayLayout(32, self._threads)
        function = Signal(8, reset_less=True)
        a, b = (Signal(words, name=f"operands_{name}", reset_less=True) for name in "ab")
        cycle = self.cycle
        with m.If(self.start):
            m.d.sync += [function.eq(self.function), a.eq(self.a), b.eq(self.b), cycle.eq(0)]
        with m.Elif(~self.done):
            m.d.sync += cycle.eq(cycle + 1)
        m.d.comb += self.done.eq(cycle == self.cycles - 1)

        for first in range(0, self._threads, self._sharing):
            divider = Divider(**self._options)
            m.submodules[f"divider_{first}"] = shared_module(platform, divider, *self._options.items())
            members = range(first, min(first + self._sharing, self._threads))
            m.d.comb += divider.function.eq(function)
            for port, row in ((divider.a, a), (divider.b, b)):
                m.d.comb += port.eq(Array(row[thread] for thread in members)[cycle[: (len(members) - 1).bit_length()]])
            for number, thread in enumerate(members):
                with m.If(cycle == Divider.LATENCY + number):
                    m.d.sync += self.o[thread].eq(divider.o)
        return m
