"""Test-bench ends of streams: a driver that issues what a script memory holds, and a log that remembers what passes."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..hdl.word_array import WordArray
from .stall import Stall

__all__ = ["Log", "LogRowLayout", "ScriptDriver", "ScriptRowLayout"]


class _RowLayout(data.StructLayout):
    """A row of an array: stored in whole bytes, least significant bit first."""

    @property
    def bytes(self):
        """Bytes of the row, the last one filled up with zeros."""
        return -(-self.size // 8)


class ScriptRowLayout(_RowLayout):
    """A row of a script."""

    def __init__(self, shape):
        super().__init__({"item": shape, "wait": 1})  # wait until what was issued before is complete


class LogRowLayout(_RowLayout):
    """A row of a log."""

    def __init__(self, shape):
        super().__init__({"cycle": 32, "entry": shape})


class ScriptDriver(wiring.Component):
    """Issues the first ``count`` items of its script as a stream, back to back without pauses.

    Parameters
    ----------
    shape : shape-like
        Of an item.
    depth : int
        Items of the script.
    number : int
        Of its ``Stall``.

    Members
    -------
    o : Out(stream of shape)
        The items.
    start : In(1)
        Begin at the first item in the next cycle.
    count : In(range(depth + 1))
        Items to issue.
    enable : In(1)
        Nothing is issued before it is high; once it is, it stays.
    idle : In(1)
        What was issued before is complete. An item whose ``wait`` is set is not issued before.
    stall : In(8)
    seed : In(16)
        Probability of a pause before an item, and how to vary it.
    issued : Out(range(depth + 1))
        Items that were accepted since the start.
    finished : Out(1)
        All were.
    """

    def __init__(self, shape, *, depth, number):
        self._shape = shape
        self._number = number
        self._row = ScriptRowLayout(shape)
        #: Rows of :class:`ScriptRowLayout`.
        self.script = WordArray(width=8 * self._row.bytes, depth=depth)
        super().__init__(
            {
                "o": Out(stream.Signature(shape)),
                "start": In(1),
                "count": In(range(depth + 1)),
                "enable": In(1),
                "idle": In(1),
                "stall": In(8),
                "seed": In(16),
                "issued": Out(range(depth + 1)),
                "finished": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.script = script = self.script
        m.submodules.stall = stall = Stall(self._number)
        row = Signal(self._row)
        held = Signal()
        following = Signal.like(self.issued)

        m.d.comb += [
            stall.probability.eq(self.stall),
            stall.seed.eq(self.seed),
            stall.start.eq(self.start),
            row.eq(script.read_data),
            self.o.payload.eq(row.item),
            # An item that has been shown stays.
            self.o.valid.eq(~self.start & ~self.finished & self.enable & (~row.wait | self.idle) & (stall.go | held)),
            self.finished.eq(self.issued == self.count),
            following.eq(self.issued + (self.o.valid & self.o.ready)),
            script.read_enable.eq(1),
            script.read_address.eq(following),
        ]
        m.d.sync += [self.issued.eq(following), held.eq(self.o.valid & ~self.o.ready)]
        with m.If(self.start):
            m.d.comb += script.read_address.eq(0)
            m.d.sync += [self.issued.eq(0), held.eq(0)]
        return m


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
        self.memory = WordArray(width=8 * self._row.bytes, depth=depth)
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
