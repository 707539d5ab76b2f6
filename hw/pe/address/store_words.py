"""The words that STORE writes: read from the registers when their item sets out."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...lib.slot import Slot
from ...lib.stream import DeepQueue
from ..layouts import LANE_READ_LATENCY, JobKind, LaneReadLayout
from ..params import LANES
from ..signatures import LaneReadSignature
from .items import ItemLayout

__all__ = ["WORDS_UNDER_WAY", "StoreWords"]

#: Items of STORE that may be between this block and the one that takes the words.
WORDS_UNDER_WAY = 16


class StoreWords(wiring.Component):
    """Lets an item of STORE pass together with the request for its words; other items pass as they are.

    Combinational from ``i`` to ``o``. Words are there ``LANE_READ_LATENCY + 3`` cycles after their item has passed.
    With ``params.paced`` the request waits in a register, so that the item does not wait for the registers: words
    are there a cycle later, and a STORE passes every other cycle.

    Members
    -------
    i : In(stream of ItemLayout)
    o : Out(stream of ItemLayout)
        Once ready, it must be ready until it is given an item. Not more than ``WORDS_UNDER_WAY`` items whose
        words are not taken.
    lane_reads : Out(LaneReadSignature)
    words : Out(stream of array of LANES 32)
        In the order of the items.
    reading : Out(1)
        A request is still to be taken, or an answer to come.
    """

    def __init__(self, params):
        words = data.ArrayLayout(32, LANES)
        self._params = params
        self._queue = DeepQueue(words, WORDS_UNDER_WAY)
        super().__init__(
            {
                "i": In(stream.Signature(ItemLayout(params))),
                "o": Out(stream.Signature(ItemLayout(params))),
                "lane_reads": Out(LaneReadSignature(params)),
                "words": Out(stream.Signature(words)),
                "reading": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self._queue
        item, reads = self.i.p, self.lane_reads.requests
        stores, waiting = Signal(), Signal()  # it is a STORE; the request of one is still to be taken
        requested = Signal(LANE_READ_LATENCY)  # in the cycles before
        if self._params.paced:
            m.submodules.slot = slot = Slot(LaneReadLayout(self._params))
            wiring.connect(m, slot=slot.o, reads=wiring.flipped(reads))
            request = slot.i
            m.d.comb += waiting.eq(slot.o.valid)
        else:
            request = reads
        m.d.comb += [
            stores.eq(item.job.kind == JobKind.STORE),
            self.o.p.eq(item),
            self.o.valid.eq(self.i.valid & (~stores | request.ready)),
            self.i.ready.eq(self.o.ready & (~stores | request.ready)),
            request.valid.eq(self.i.valid & stores & self.o.ready),
            request.p.register.eq(item.register),
            request.p.group.eq(item.thread >> 3),
            self.reading.eq(waiting | requested.any()),
            queue.i.valid.eq(requested[-1]),
            queue.i.p.eq(self.lane_reads.data),
            self.words.p.eq(queue.o.p),
            self.words.valid.eq(queue.o.valid),
            queue.o.ready.eq(self.words.ready),
        ]
        m.d.sync += requested.eq(Cat(reads.valid & reads.ready, requested))
        return m
