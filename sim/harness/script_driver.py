"""The end of a stream that issues what a script memory holds."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..hdl.packing import row_bytes
from ..hdl.word_array import WordArray
from .stall import Stall

__all__ = ["ScriptDriver", "ScriptRowLayout"]


class ScriptRowLayout(data.StructLayout):
    """A row of a script."""

    def __init__(self, shape):
        super().__init__({"item": shape, "wait": 1})  # wait until what was issued before is complete


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
        self.script = WordArray(width=8 * row_bytes(self._row), depth=depth)
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
