"""Address generation: nested accumulators, one adder a level, or one for all, and no multiplier."""

from functools import reduce
from operator import or_

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.choice import chosen, first_of

__all__ = ["AddressGenerator"]


class AddressGenerator(wiring.Component):
    """Global address of the walker's run, modulo 2^addr_width.

    Each level keeps the address at which its current round began. When level d advances, its accumulator and those of
    all levels inside it move on to the next round: a level moves if all inside it are over. If all levels begin at one
    origin, the address is ``origin + Σ index[d] * stride[d]``.

    Parameters
    ----------
    addr_width : int
        Bits of an address.
    levels : int
        Nested loops of the walk, innermost first.
    shares : bool
        One adder for all levels, a power of two of them: fewer tables, and a choice in front of it.

    Members
    -------
    load : In(1)
        Start at ``origins``; has priority over ``step``.
    loading : In(1)
        If anything comes next it is ``load``. So what the sums are does not wait for whether it comes.
    origins : In(array of levels addr_width)
        The first is the address of the first run; that of level d is where the rounds of the levels inside d begin.
    strides : In(array of levels addr_width)
        Bytes from one index to the next. Must hold from load to load.
    step : In(1)
        Go on. If every level is over, no address that means anything comes of it.
    over : In(levels)
        For each level: it is in its last round. The innermost one that is not advances, levels inside it start over.
    address : Out(addr_width)
        Registered; follows ``load`` and ``step`` by one cycle.
    """

    def __init__(self, *, addr_width, levels, shares=False):
        self._shares = shares
        super().__init__(
            {
                "load": In(1),
                "loading": In(1),
                "origins": In(data.ArrayLayout(addr_width, levels)),
                "strides": In(data.ArrayLayout(addr_width, levels)),
                "step": In(1),
                "over": In(levels),
                "address": Out(addr_width),
            }
        )
        self.rounds = [Signal(addr_width, name=f"round{d}") for d in range(levels)]

    def elaborate(self, platform):
        m = Module()
        moved = Signal(len(self.address))  # one for all levels that change
        m.d.comb += [self.address.eq(self.rounds[0]), moved.eq(self._shared() if self._shares else self._apart())]
        for d, accumulator in enumerate(self.rounds):
            with m.If(self.load | (self.step & self.over[:d].all())):
                m.d.sync += accumulator.eq(moved | Mux(self.loading, self.origins[d], 0))
        return m

    def _apart(self):
        """The sum of the level that advances."""
        # x + 1 turns the lowest zero of x into a one.
        # With ``loading`` none advances, so that an origin is one more term and no choice behind the others.
        advance = Mux(self.loading, 0, ~self.over & (self.over + 1))
        sums = (
            Mux(advance[d], (accumulator + self.strides[d])[: len(accumulator)], 0)
            for d, accumulator in enumerate(self.rounds)
        )
        return reduce(or_, sums)

    def _shared(self):
        """The same, of what is chosen by the level's number."""
        number = first_of([~over for over in self.over])
        accumulator = chosen(number, dict(enumerate(self.rounds)))
        stride = chosen(number, dict(enumerate(self.strides)))
        return Mux(self.loading, 0, (accumulator + stride)[: len(accumulator)])
