"""A lane of sixteen bytes: every reduction of every element type, or of every integer."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Reduction

from .float_sums import FloatSums, is_summed
from .integer import IntegerReducer, OperationLayout, reduce_integers

__all__ = ["ReduceLane"]


class ReduceLane(wiring.Component):
    """Combines what lies at a destination with what comes, sixteen bytes at once.

    Floats are added by :class:`FloatSums`. All other work is done on eight bytes at a time.

    Latency: ``latency`` enabled cycles, whatever the operation: 6 with floats, otherwise 2. Throughput: sixteen bytes
    an enabled cycle.

    Specification: docs/tmau.md, "Stores and reductions".

    Parameters
    ----------
    floats : bool
        Elements of floats come.
    decoded : bool
        As of :class:`IntegerReducer`.

    Members
    -------
    old, source : In(128)
        What lies there, and what comes.
    reduction : In(4)
        ``golden.spec.Reduction``. With NONE the result is the source.
    element : In(4)
        ``golden.spec.Element``. For a type that the reduction does not have, the result has no meaning.
    operation : In(OperationLayout()) if decoded
        The same two, decoded.
    enable : In(1)
        Advances the pipeline; without it, every register holds.
    o : Out(128)
    """

    def __init__(self, floats, decoded=False):
        self._floats, self._decoded = floats, decoded
        self.latency = FloatSums.LATENCY if floats else IntegerReducer.LATENCY
        super().__init__(
            {
                "old": In(128),
                "source": In(128),
                "reduction": In(4),
                "element": In(4),
                **({"operation": In(OperationLayout())} if decoded else {}),
                "enable": In(1),
                "o": Out(128),
            }
        )

    def elaborate(self, platform):
        m = Module()
        names = ("old", "source", "enable", *(("operation",) if self._decoded else ("reduction", "element")))
        operands = {name: getattr(self, name) for name in names}
        others = reduce_integers(m, "integer", self._floats, decoded=self._decoded, **operands)
        if self._floats:
            self._join_floats(m, others)
        else:
            m.d.comb += self.o.eq(others)
        return m

    def _join_floats(self, m, others):
        """The output: sums of floats, or what the rest of the lane made ready earlier."""
        m.submodules.sums = sums = FloatSums()
        chosen = self._delayed(m, (self.reduction == Reduction.ADD) & is_summed(self.element), self.latency)
        others = self._delayed(m, others, self.latency - IntegerReducer.LATENCY)
        m.d.comb += [
            *(getattr(sums, name).eq(getattr(self, name)) for name in ("old", "source", "element", "enable")),
            self.o.eq(Mux(chosen, sums.o, others)),
        ]

    def _delayed(self, m, value, cycles):
        """``value`` after as many enabled cycles."""
        for _ in range(cycles):
            later = Signal(len(value))
            with m.If(self.enable):
                m.d.sync += later.eq(value)
            value = later
        return value
