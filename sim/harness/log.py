"""A memory of what passes."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..hdl.packing import row_bytes
from ..hdl.word_array import WordArray

__all__ = ["Log", "LogRowLayout"]


class LogRowLayout(data.StructLayout):
    """A row of a log."""

    def __init__(self, shape):
        super().__init__({"cycle": 32, "entry": shape})


class Log(wiring.Component):
    """Keeps what passes, in order, with the cycle; what comes when it is full is counted and lost.

    Parameters
    ----------
    shape : shape-like
        Of an entry.
    depth : int
        Entries that fit.

    Members
    -------
    valid : In(1)
        Keep ``entry`` in this cycle.
    entry : In(shape)
    cycle : In(32)
        The time to keep with it.
    start : In(1)
        Forget all.
    count : Out(32)
        Entries since the start, lost ones included.
    """

    def __init__(self, shape, *, depth):
        self._depth = depth
        self._row = LogRowLayout(shape)
        #: Rows of :class:`LogRowLayout`.
        self.memory = WordArray(width=8 * row_bytes(self._row), depth=depth)
        super().__init__({"valid": In(1), "entry": In(shape), "cycle": In(32), "start": In(1), "count": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = self.memory
        row = Signal(self._row)
        m.d.comb += [
            row.cycle.eq(self.cycle),
            row.entry.eq(self.entry),
            memory.write_enable.eq(self.valid & (self.count < self._depth)),
            memory.write_address.eq(self.count),
            memory.write_data.eq(row),
        ]
        with m.If(self.start):
            m.d.sync += self.count.eq(0)
        with m.Elif(self.valid):
            m.d.sync += self.count.eq(self.count + 1)
        return m
