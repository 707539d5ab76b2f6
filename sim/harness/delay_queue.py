"""A queue whose items may leave when they have waited long enough."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["DelayQueue"]


class DelayQueue(wiring.Component):
    """Keeps items in order; one that goes in in cycle t may leave from cycle t + ``delay`` on, one a cycle.

    Parameters
    ----------
    shape : shape-like
        Of an item.
    depth : int
        Items that fit, a power of two.

    Members
    -------
    i : In(stream of shape)
    o : Out(stream of shape)
    delay : In(32)
        At least 1. To be changed only while the queue is empty.
    """

    def __init__(self, shape, *, depth):
        self._depth = depth
        self._row = data.StructLayout({"item": shape, "due": 32})
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "delay": In(32, init=1)})

    def elaborate(self, platform):
        m = Module()
        now = Signal(32)
        m.d.sync += now.eq(now + 1)

        m.submodules.rows = rows = Memory(shape=self._row, depth=self._depth, init=[])
        write = rows.write_port()
        read = rows.read_port(transparent_for=(write,))
        head = Signal(range(2 * self._depth))
        tail = Signal.like(head)
        following = Signal.like(head)
        level = (tail - head)[: len(head)]
        # Signed difference: the counter may wrap.
        due = (now - read.data.due)[:32].as_signed() >= 0
        m.d.comb += [
            self.i.ready.eq(level != self._depth),
            write.en.eq(self.i.valid & self.i.ready),
            write.addr.eq(tail),
            write.data.item.eq(self.i.payload),
            write.data.due.eq(now + self.delay),
            self.o.payload.eq(read.data.item),
            self.o.valid.eq((level != 0) & due),
            following.eq(head + (self.o.valid & self.o.ready)),
            read.addr.eq(following),
        ]
        m.d.sync += [tail.eq(tail + write.en), head.eq(following)]
        return m
