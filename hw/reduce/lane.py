"""A lane of sixteen bytes: every reduction of every element type, or of every integer."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Element, Reduction

from .float_add import FloatAdder
from .float_format import BF16, F16, F32
from .integer import IntegerReducer

__all__ = ["ReduceLane"]

#: Formats of the adders; an index into the longer tuple, cut to one bit, is one into the shorter.
_WIDE, _NARROW = (BF16, F16, F32), (BF16, F16)


class ReduceLane(wiring.Component):
    """Combines what lies at a destination with what comes, sixteen bytes at once.

    Four words of 32 bits have two float adders each: a wide one for an F32 or for the 16-bit float in the low half, and
    a narrow one for that in the high half. All other work is done on eight bytes at a time.

    Latency: ``latency`` enabled cycles, whatever the operation: 6 with floats, otherwise 2. Throughput: sixteen bytes
    an enabled cycle.

    Specification: docs/tmau.md, "Stores and reductions".

    Parameters
    ----------
    floats : bool
        Elements of floats come.

    Members
    -------
    old, source : In(128)
        What lies there, and what comes.
    reduction : In(4)
        ``golden.spec.Reduction``. With NONE the result is the source.
    element : In(4)
        ``golden.spec.Element``. For a type that the reduction does not have, the result has no meaning.
    enable : In(1)
        Advances the pipeline; without it, every register holds.
    o : Out(128)
    """

    old: In(128)
    source: In(128)
    reduction: In(4)
    element: In(4)
    enable: In(1)
    o: Out(128)

    def __init__(self, floats):
        self._floats = floats
        self.latency = FloatAdder.LATENCY if floats else IntegerReducer.LATENCY
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        others = self._integers(m)
        if self._floats:
            self._join_floats(m, others)
        else:
            m.d.comb += self.o.eq(others)
        return m

    def _join_floats(self, m, others):
        """The output: sums of floats, or what the rest of the lane made ready earlier."""
        is_f16, is_f32 = self.element == Element.F16, self.element == Element.F32
        is_float = (self.reduction == Reduction.ADD) & (is_f16 | is_f32 | (self.element == Element.BF16))
        chosen = Signal(2)
        m.d.comb += chosen.eq(self._delayed(m, Cat(is_float, is_f32), self.latency))
        float_chosen, f32_chosen = chosen

        others = self._delayed(m, others, self.latency - IntegerReducer.LATENCY)
        for number, (wide, narrow) in enumerate(self._sums(m, Cat(is_f16, is_f32))):
            total = Cat(wide[:16], Mux(f32_chosen, wide[16:], narrow))
            m.d.comb += self.o.word_select(number, 32).eq(Mux(float_chosen, total, others.word_select(number, 32)))

    def _delayed(self, m, value, cycles):
        """``value`` after as many enabled cycles."""
        for _ in range(cycles):
            later = Signal(len(value))
            with m.If(self.enable):
                m.d.sync += later.eq(value)
            value = later
        return value

    def _integers(self, m):
        """What is not a sum of floats."""
        results = []
        for number in range(2):
            m.submodules[f"integer{number}"] = unit = IntegerReducer(self._floats)
            m.d.comb += [
                unit.old.eq(self.old.word_select(number, 64)),
                unit.source.eq(self.source.word_select(number, 64)),
                unit.reduction.eq(self.reduction),
                unit.element.eq(self.element),
                unit.enable.eq(self.enable),
            ]
            results.append(unit.o)
        return Cat(results)

    def _sums(self, m, fmt):
        """For each word of 32 bits, the sums of its wide and its narrow adder."""
        for number in range(4):
            old, source = self.old.word_select(number, 32), self.source.word_select(number, 32)
            m.submodules[f"wide{number}"] = wide = FloatAdder(_WIDE)
            m.submodules[f"narrow{number}"] = narrow = FloatAdder(_NARROW)
            for adder, low in ((wide, 0), (narrow, 16)):
                m.d.comb += [
                    adder.a.eq(old[low:]),
                    adder.b.eq(source[low:]),
                    adder.format.eq(fmt),  # what the narrow one makes of F32 is not looked at
                    adder.enable.eq(self.enable),
                ]
            yield wide.o, narrow.o
