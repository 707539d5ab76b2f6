"""Random pauses in hardware, before each transfer with a settable probability."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Stall"]


class Stall(wiring.Component):
    """Decides every cycle whether to go on.

    Parameters
    ----------
    number : int
        Instances with different numbers pause at different times.
    """

    # Of a pause, in 256ths: 0 never pauses, 255 goes on in one cycle of 256.
    probability: In(8)
    # Mixed into the sequence while ``start`` is high.
    seed: In(16)
    # Begin the sequence again.
    start: In(1)
    # No pause in this cycle. Independent from cycle to cycle, so a stream's source must remember that it has shown an
    # item.
    go: Out(1)

    def __init__(self, number):
        self._number = number
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        # Marsaglia's xorshift: 32 new bits a cycle, period 2^32 - 1.
        state = Signal(32, init=1)
        first, second = Signal.like(state), Signal.like(state)
        m.d.comb += [first.eq(state ^ (state << 13)), second.eq(first ^ (first >> 17))]
        m.d.sync += state.eq(second ^ (second << 5))
        with m.If(self.start):
            m.d.sync += state.eq(Cat(self.seed, (self.seed ^ (0x5EED + 0x9E37 * self._number)) | 0x8000))
        m.d.comb += self.go.eq(state[-8:] >= self.probability)
        return m
