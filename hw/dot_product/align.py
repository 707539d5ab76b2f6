"""Terms moved to their places in the window of a sum."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .terms import TERM, TOP

__all__ = ["ALIGNED", "Aligner"]

#: W + 1 places and a sign: bit 48 is the highest place of the largest term, bit 0 the one below the window.
ALIGNED = signed(50)

_COARSE = 4  # log2 of the step of the first shifter


class Aligner(wiring.Component):
    """Shifts a term down by the distance of its highest place from the highest of all; docs/pe.md, "Numbers", step 3.

    The shift is arithmetic, and bit 0 also takes the OR of all that falls off. That is the cut of step 3 for negative
    terms too: rounding down takes one from the places above, a one in the place below gives a half of it back.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle.

    Members
    -------
    term : In(TERM)
    top : In(TOP)
        Its own; no larger than ``highest``.
    highest : In(TOP)
        The largest of the sum.
    o : Out(ALIGNED)
    """

    LATENCY = 2

    term: In(TERM)
    top: In(TOP)
    highest: In(TOP)
    o: Out(ALIGNED)

    def elaborate(self, platform):
        m = Module()
        distance = Signal(TOP)
        whole = Signal(ALIGNED)
        m.d.comb += [
            distance.eq(self.highest - self.top),
            whole.eq(Cat(Const(0, ALIGNED.width - TERM.width), self.term)),
        ]
        # 63 places are as far as any distance beyond.
        places = Signal(6)
        m.d.comb += places.eq(distance[:6] | distance[6:].any().replicate(6))

        moved, lost = self._down(m, whole, places[_COARSE:], 1 << _COARSE, "coarse")
        fine = Signal(_COARSE, reset_less=True)
        coarse, coarse_lost = Signal(ALIGNED, reset_less=True), Signal(reset_less=True)
        m.d.sync += [fine.eq(places[:_COARSE]), coarse.eq(moved), coarse_lost.eq(lost)]

        moved, lost = self._down(m, coarse, fine, 1, "fine")
        aligned = Signal(ALIGNED, reset_less=True)
        m.d.sync += aligned.eq(Cat(moved[0] | lost | coarse_lost, moved[1:]))
        m.d.comb += self.o.eq(aligned)
        return m

    @staticmethod
    def _down(m, value, places, step, name):
        """``value`` shifted right by ``places`` times ``step``, and whether any one was lost."""
        losses = []
        for bit in reversed(range(len(places))):
            distance = step << bit
            losses.append(places[bit] & value[:distance].any())
            moved = Signal(ALIGNED, name=f"{name}_{distance}")
            m.d.comb += moved.eq(Mux(places[bit], value >> distance, value))
            value = moved
        return value, Cat(losses).any()
