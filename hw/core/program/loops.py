"""The loops of a program that are under way."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec.core import LOOPS

__all__ = ["LoopStack"]


class _LoopLayout(data.StructLayout):
    """A loop that is under way."""

    def __init__(self):
        super().__init__({"index": unsigned(32), "left": unsigned(32)})  # of its word; times that it goes back


class LoopStack(wiring.Component):
    """Says at the end of each loop's body whether the program goes back.

    The loops that are under way lie in a memory, the innermost one last. The word at hand can only be the end of that
    one, or of a loop that is new: a loop that is under way is not left but through its end.
    """

    def __init__(self):
        self.depth = Signal(range(LOOPS + 1))
        super().__init__(
            {
                # Strobe: there are no loops.
                "clear": In(1),
                # Of the current word. From the cycle before ``ends`` on it and ``count`` hold.
                "index": In(32),
                # Rounds of the loop, 1 or more.
                "count": In(32),
                # Strobe: the current word ends a loop.
                "ends": In(1),
                # It goes back.
                "again": Out(1),
                # It would go back for the first time, and there are ``LOOPS`` others under way; then ``ends`` must not
                # come.
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
