"""Sums of floats, sixteen bytes at once."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Element
from tilewright.golden.spec.tmau.features import FLOAT_SUMS

from .float_add import FloatAdder
from .float_format import BF16, F16, F32

__all__ = ["FloatSums", "is_summed"]

#: Formats of the adders; an index into the longer tuple, cut to one bit, is one into the shorter.
_WIDE, _NARROW = (BF16, F16, F32), (BF16, F16)


class FloatSums(wiring.Component):
    """Adds floats of three types.

    Four words of 32 bits have two adders each: a wide one for an F32 or for the 16-bit float in the low half, and a
    narrow one for that in the high half.

    Latency: ``LATENCY`` enabled cycles. Throughput: sixteen bytes an enabled cycle.

    Members
    -------
    old, source : In(128)
    element : In(4)
        ``golden.spec.Element``. For another type than F16, BF16 and F32 the result has no meaning.
    enable : In(1)
        Advances the pipeline.
    o : Out(128)
    """

    LATENCY = FloatAdder.LATENCY

    old: In(128)
    source: In(128)
    element: In(4)
    enable: In(1)
    o: Out(128)

    def elaborate(self, platform):
        m = Module()
        is_f32 = self.element == Element.F32
        chosen = is_f32
        for stage in range(self.LATENCY):
            later = Signal(name=f"is_f32_{stage}")
            with m.If(self.enable):
                m.d.sync += later.eq(chosen)
            chosen = later
        fmt = Cat(self.element == Element.F16, is_f32)
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
            m.d.comb += self.o.word_select(number, 32).eq(Cat(wide.o[:16], Mux(chosen, wide.o[16:], narrow.o)))
        return m


def is_summed(element):
    """Whether elements are floats, as ``golden.spec.Element``."""
    return Cat(element == kind for kind in FLOAT_SUMS).any()
