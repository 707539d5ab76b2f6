"""Numbers of binary32 become numbers of 16 bits."""

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...lib.delay import delay
from ...lib.shift import shift_down
from .significand import rounds_up

__all__ = ["HalfRounder"]

_NAN, _BRAIN_NAN, _INFINITY = 0x7E00, 0x7FC0, 0x7C00
#: Exponents of binary32 of the least normal number of fp16, and of the first one that is too large.
_NORMAL, _TOO_LARGE = 113, 143
#: A shift of so many places leaves nothing that counts.
_FAR = 15


class HalfRounder(wiring.Component):
    """binary32 rounded to fp16 or bf16, to nearest even; subnormal numbers are kept (docs/conv.md, "Types").

    Latency: ``LATENCY`` cycles. Throughput: one a cycle; nothing stalls it.

    Members
    -------
    i : In(32)
    brain : In(1)
        bf16. To hold while results are under way.
    o : Out(16)
    """

    LATENCY = 3

    i: In(32)
    brain: In(1)
    o: Out(16)

    def elaborate(self, platform):
        m = Module()
        # Cycle 1: by how many places a number moves that is subnormal in fp16; what lies below 12 places counts as one.
        mantissa, exponent = self.i[:23], self.i[23:31]
        normal, ones = exponent >= _NORMAL, exponent.all()
        distance = Mux(normal, 0, Mux(exponent < _NORMAL - _FAR, _FAR, (_NORMAL - exponent)[:4]))
        distance = delay(m, distance[:4], 1, name="distance")
        significand = delay(m, Cat(mantissa[:12].any(), mantissa[12:], exponent.any()), 1, name="significand")
        small = delay(m, Mux(normal, (exponent - (_NORMAL - 1))[:5], 0)[:5], 1, name="small")
        infinite = delay(m, ~self.brain & (exponent >= _TOO_LARGE), 2, name="infinite")
        nan = delay(m, ones & mantissa.any(), 2, name="nan")
        upper = delay(m, self.i[16:], 1, name="upper")
        brain_up = delay(m, rounds_up(self.i[16:], self.i[:16]), 1, name="brain_up")

        # Cycle 2.
        significand = shift_down(m, significand, distance)
        size = delay(m, Mux(self.brain, upper[:15], Cat(significand[2:12], small)), 1, name="number")
        up = delay(m, Mux(self.brain, brain_up, rounds_up(significand[2:], significand[:2])), 1, name="up")
        minus = delay(m, upper[15], 1, name="minus")

        # Cycle 3: a carry out of the mantissa counts the exponent up, to infinity if need be.
        rounded = Cat(Mux(infinite, _INFINITY, (size + up)[:15])[:15], minus)
        m.d.comb += self.o.eq(delay(m, Mux(nan, Mux(self.brain, _BRAIN_NAN, _NAN), rounded)[:16], 1, name="packed"))
        return m
