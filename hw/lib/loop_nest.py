"""Nested loops in hardware."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LoopNest"]


def _levels_layout(widths):
    """One unsigned number a level, by the number of the level."""
    fields = {level: data.Field(unsigned(width), sum(widths[:level])) for level, width in enumerate(widths)}
    return data.FlexibleLayout(sum(widths), fields)


class LoopNest(wiring.Component):
    """``n`` nested counters: all combinations of indices, level 0 changing fastest.

    ``indices``, one a level, are registers. A step is possible in every cycle, and a ``start`` together with the final
    step begins the next nest without a gap. The nest does not know whether it is active: its user does.

    Parameters
    ----------
    widths : sequence of int
        Bits of the index of each level, innermost first.
    pairs : bool
        A step can cover two indices of level 0.
    """

    def __init__(self, widths, *, pairs=False):
        widths = list(widths)
        if not widths or not all(isinstance(width, int) and width >= 1 for width in widths):
            raise ValueError(f"widths must be one or more ints of at least 1, not {widths!r}")
        self._widths, self._pairs = widths, pairs
        layout = _levels_layout(widths)
        self.bounds = Signal(layout)  # ``lasts`` of the current nest
        # Computed with the index, so that no comparison is on the path from one step to the next.
        self.ends = Signal(len(widths), init=(1 << len(widths)) - 1)  # for each level: its index is the last one
        self.near = Signal()  # with pairs: the index of level 0 is the last but one
        super().__init__(
            {
                "start": In(1),  # strobe: load ``lasts`` and go to the first combination, all zero; wins over ``step``
                "lasts": In(layout),  # last index of each level: its count minus one
                "step": In(1),  # strobe: go to the next combination; the first one follows the final one
                "cut": In(len(widths)),  # for each level: its index counts as the last one
                # The current index of level 0 and the next one are covered together; not at the last one.
                **({"pair": In(1)} if pairs else {}),
                "indices": Out(layout),
                # For each level: its index is the last one, or counts as such, or is covered together with it.
                "at_last": Out(len(widths)),
                # One-hot: the level that a step increments, while those inside it return to zero; zero if ``final``.
                "advance": Out(len(widths)),
                "final": Out(1),  # every level is at its last index
            }
        )

    def elaborate(self, platform):
        m = Module()
        levels = range(len(self._widths))
        pair = self.pair if self._pairs else Const(0, 1)
        m.d.comb += [
            self.at_last.eq(self.ends | self.cut | (pair & self.near)),
            # x + 1 turns the lowest zero of x into a one: the innermost level that is not at its last index.
            self.advance.eq(~self.at_last & (self.at_last + 1)),
            self.final.eq(self.at_last.all()),
        ]
        with m.If(self.start):
            m.d.sync += [
                self.bounds.eq(self.lasts),
                self.indices.eq(0),
                self.ends.eq(Cat(self.lasts[level] == 0 for level in levels)),
                self.near.eq((self.lasts[0] == 1) & self._pairs),
            ]
        with m.Elif(self.step):
            for level in levels:
                with m.If(self.at_last[:level].all()):
                    index, last, over = self.indices[level], self.bounds[level], self.at_last[level]
                    following = index + 1 if level else index + 1 + pair
                    m.d.sync += [
                        index.eq(Mux(over, 0, following)),
                        self.ends[level].eq(Mux(over, last == 0, following == last)),
                    ]
            if self._pairs:
                index, last = self.indices[0], self.bounds[0]
                m.d.sync += self.near.eq(Mux(self.at_last[0], last == 1, index + 2 + pair == last))
        return m
