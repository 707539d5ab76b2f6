"""Loops of a program, inside each other."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.core.word import LOOPS

__all__ = ["LoopStack"]


class _LoopLayout(data.StructLayout):
    """A loop that is under way."""

    def __init__(self):
        super().__init__({"index": unsigned(32), "left": unsigned(32)})  # of its word; times that it goes back


class LoopStack(wiring.Component):
    """Says at the end of each loop's body whether the program goes back.

    The loops that are under way lie in a memory, the innermost one last. The word at hand can only be the end of that
    one, or of a loop that is new: a loop that is under way is not left but through its end.

    Members
    -------
    clear : In(1)
        Strobe: there are no loops.
    index : In(32)
        Of the word at hand. From the cycle before ``ends`` on it and ``count`` hold.
    count : In(32)
        Rounds of the loop, 1 or more.
    ends : In(1)
        Strobe: the word at hand ends a loop.
    again : Out(1)
        It goes back.
    full : Out(1)
        It would go back for the first time, and there are ``LOOPS`` others under way; then ``ends`` must not come.
    """

    def __init__(self):
        self.depth = Signal(range(LOOPS + 1))
        super().__init__(
            {
                "clear": In(1),
                "index": In(32),
                "count": In(32),
                "ends": In(1),
                "again": Out(1),
                "full": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=_LoopLayout(), depth=LOOPS, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        depth, top = self.depth, Signal(range(LOOPS))
        known, single, last = Signal(), Signal(), Signal()  # the loop is under way; it has one round; was its last one
        m.d.comb += [
            top.eq(depth - 1),
            read.addr.eq(top),
            self.full.eq(~known & ~single & (depth == LOOPS)),
            self.again.eq(Mux(known, ~last, ~single)),
            write.en.eq(self.ends & self.again),
            write.addr.eq(Mux(known, top, depth)),
            write.data.index.eq(self.index),
            write.data.left.eq(Mux(known, read.data.left, self.count) - 1),
        ]
        m.d.sync += [
            known.eq((depth != 0) & (read.data.index == self.index)),
            single.eq(self.count == 1),
            last.eq(read.data.left == 1),
        ]
        with m.If(self.clear):
            m.d.sync += depth.eq(0)
        with m.Elif(self.ends):
            m.d.sync += depth.eq(depth + (self.again & ~known) - (~self.again & known))
        return m
