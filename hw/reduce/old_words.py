"""What memory holds where a reduction will write: read early, but never too early."""

from amaranth.hdl import Cat, Const, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..bus.axi4 import MODIFIABLE, UNPRIVILEGED_NON_SECURE, Axi4ReadSignature, Burst
from ..bus.burst import BurstLayout
from ..bus.writes import WriteBurstLayout
from ..lib.stream import Queue, SkidBuffer
from .hazards import WriteTable

__all__ = ["OldWordReader"]

_READ_ID = 2

#: Old words that wait at most.
_MOST_WORDS = 1024


class OldWordReader(wiring.Component):
    """Reads the words of each burst before it goes on.

    A burst is taken, and its words are asked for, when all earlier ones that share a word with it have been written,
    and when there is room for its words, which are therefore always taken from the bus. It goes on when all have come.
    If one came with an error, it goes on as empty and refused, and its words come all the same.

    Latency: one cycle from a burst to AR, and two from the last word to the burst. One burst and one word a cycle.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word, a power of two.
    max_burst : int
        Bus words of a burst at most, a power of two up to 256.
    in_flight : int
        Bursts between their read and their response at most, 2 to 64, a power of two; fewer if their words were more
        than 1024.

    Members
    -------
    i : In(stream of WriteBurstLayout)
        None is empty. ``ready`` depends combinationally on the payload.
    o : Out(stream of WriteBurstLayout)
    words : Out(stream of 8 * bus_bytes)
        Those of the bursts at ``o``, in order; there before their burst is.
    written : In(1)
        Strobe: the oldest burst that has gone on has its response.
    waiting : Out(1)
        A burst has been taken and has not gone on.
    empty : Out(1)
        No burst is between ``i`` and ``written``.
    axi : Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 2))
        Reads with ID 2.
    """

    def __init__(self, addr_width, bus_bytes, max_burst, in_flight):
        if not isinstance(max_burst, int) or not 1 <= max_burst <= 256 or max_burst & (max_burst - 1):
            raise ValueError(f"max_burst must be a power of two from 1 to 256, not {max_burst!r}")
        if not isinstance(in_flight, int) or not 2 <= in_flight <= 64 or in_flight & (in_flight - 1):
            raise ValueError(f"in_flight must be a power of two from 2 to 64, not {in_flight!r}")
        self._bus_log2 = exact_log2(bus_bytes)
        entries = min(in_flight, _MOST_WORDS // max_burst)
        self._entries = entries
        # A place in the table stands for one in the queues of bursts.
        self.table = WriteTable(addr_width, bus_bytes, entries)
        self.requests = SkidBuffer(BurstLayout(addr_width - self._bus_log2))
        self.pending = Queue(WriteBurstLayout(addr_width, bus_bytes), entries)  # bursts that wait for their words
        self.outcomes = Queue(1, entries)  # of the reads that have ended: whether a word came with an error
        self.old_words = Queue(
            data.StructLayout({"word": unsigned(8 * bus_bytes), "last": unsigned(1)}), entries * max_burst
        )
        # Bursts whose words have not all been used. Not the same as those in the table: a refused burst can have its
        # response before.
        self.held = Signal(range(entries + 1))
        self.failing = Signal()  # a word of the read that is coming came with an error
        super().__init__(
            {
                "i": In(stream.Signature(WriteBurstLayout(addr_width, bus_bytes))),
                "o": Out(stream.Signature(WriteBurstLayout(addr_width, bus_bytes))),
                "words": Out(stream.Signature(8 * bus_bytes)),
                "written": In(1),
                "waiting": Out(1),
                "empty": Out(1),
                "axi": Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 2)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name in ("table", "requests", "pending", "outcomes", "old_words"):
            m.submodules[name] = getattr(self, name)
        self._ask(m)
        self._drive_ar(m)
        self._take_words(m)
        self._give_words(m)
        self._go_on(m)
        return m

    def _ask(self, m):
        burst, table, request, pending = self.i, self.table, self.requests.i, self.pending.i
        m.d.comb += [
            table.burst.word.eq(burst.payload.word),
            table.burst.beats_minus_one.eq(burst.payload.beats_minus_one),
            burst.ready.eq(~table.full & ~table.clash & (self.held != self._entries) & request.ready),
            table.push.eq(burst.valid & burst.ready),
            request.valid.eq(table.push),
            request.payload.eq(table.burst),
            pending.valid.eq(table.push),
            pending.payload.eq(burst.payload),
            table.pop.eq(self.written),
            self.empty.eq(table.empty),
        ]

    def _drive_ar(self, m):
        axi, request = self.axi, self.requests.o
        m.d.comb += [
            axi.arid.eq(_READ_ID),
            axi.araddr.eq(Cat(Const(0, self._bus_log2), request.payload.word)),
            axi.arlen.eq(request.payload.beats_minus_one),
            axi.arsize.eq(self._bus_log2),
            axi.arburst.eq(Burst.INCR),
            axi.arprot.eq(UNPRIVILEGED_NON_SECURE),
            axi.arcache.eq(MODIFIABLE),
            axi.arvalid.eq(request.valid),
            request.ready.eq(axi.arready),
        ]

    def _take_words(self, m):
        axi, word, outcome = self.axi, self.old_words.i, self.outcomes.i
        failed = Signal()
        m.d.comb += [
            word.valid.eq(axi.rvalid),
            word.payload.word.eq(axi.rdata),
            word.payload.last.eq(axi.rlast),
            axi.rready.eq(word.ready),
            failed.eq(self.failing | axi.rresp.as_value()[1]),
            outcome.valid.eq(axi.rvalid & axi.rready & axi.rlast),
            outcome.payload.eq(failed),
        ]
        with m.If(axi.rvalid & axi.rready):
            m.d.sync += self.failing.eq(failed & ~axi.rlast)

    def _give_words(self, m):
        word = self.old_words.o
        m.d.comb += [
            self.words.payload.eq(word.payload.word),
            self.words.valid.eq(word.valid),
            word.ready.eq(self.words.ready),
        ]
        used = word.valid & word.ready & word.payload.last
        m.d.sync += self.held.eq(self.held + self.table.push - used)

    def _go_on(self, m):
        pending, outcome = self.pending.o, self.outcomes.o
        m.d.comb += [
            self.o.payload.eq(pending.payload),
            self.o.valid.eq(outcome.valid),
            self.waiting.eq(pending.valid),
            outcome.ready.eq(self.o.ready),
            pending.ready.eq(outcome.valid & self.o.ready),
        ]
        with m.If(outcome.payload):
            m.d.comb += [self.o.payload.empty.eq(1), self.o.payload.refused.eq(1)]
