"""What memory holds where a reduction will write: read early, but never too early."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..bus.axi4 import MODIFIABLE, UNPRIVILEGED_NON_SECURE, Axi4ReadSignature, Burst
from ..bus.reads import BurstLayout
from ..bus.writes import WriteBurstLayout
from ..lib.stream import Queue, SkidBuffer
from .hazards import HazardGate

__all__ = ["OldWordReader"]

_READ_ID = 2


class OldWordReader(wiring.Component):
    """Reads the words of each burst before it goes on.

    The words of a burst are requested when all earlier bursts that share a word with it have been written, and when
    there is space for its words, which are therefore always taken from the bus. It goes on when all have come. If one
    came with an error, it goes on as empty and refused, and its words come all the same.

    Latency: from a burst to AR one cycle more than it has words, and two from the last word to the burst. One word a
    cycle.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word, a power of two.
    max_burst : int
        Bus words of a burst at most, a power of two up to 256.
    words : int
        Old words that are on their way or wait at most, a power of two from ``max_burst`` to 1024. Half as many bursts
        may wait for theirs, and twice as many may be between their read and their response.
    processors : int
        As of ``WriteBurstLayout``.

    Members
    -------
    i : In(stream of WriteBurstLayout)
        None is empty.
    o : Out(stream of WriteBurstLayout)
    words : Out(stream of 8 * bus_bytes)
        Those of the bursts at ``o``, in order; there before their burst is.
    written : In(1)
        Strobe: the oldest burst that has gone on has its response.
    waiting : Out(1)
        A burst has been taken and has not gone on.
    empty : Out(1)
        No burst is between its read and ``written``.
    axi : Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 2))
        Reads with ID 2.
    """

    def __init__(self, addr_width, bus_bytes, max_burst, words, processors=1):
        if not isinstance(max_burst, int) or not 1 <= max_burst <= 256 or max_burst & (max_burst - 1):
            raise ValueError(f"max_burst must be a power of two from 1 to 256, not {max_burst!r}")
        if not isinstance(words, int) or not max(max_burst, 4) <= words <= 1024 or words & (words - 1):
            raise ValueError(f"words must be a power of two from {max(max_burst, 4)} to 1024, not {words!r}")
        self._bus_log2 = exact_log2(bus_bytes)
        self.gate = HazardGate(addr_width, bus_bytes, entries=4 * words, bursts=2 * words, processors=processors)
        self.requests = SkidBuffer(BurstLayout(addr_width - self._bus_log2))
        burst = WriteBurstLayout(addr_width, bus_bytes, processors)
        self.pending = Queue(burst, words // 2)  # bursts that wait for their words
        self.outcomes = Queue(1, words // 2)  # of the reads that have ended: whether a word came with an error
        self.old_words = Queue(8 * bus_bytes, words)
        self.free = Signal(range(words + 1), init=words)  # places in it that no word has been asked for
        self.space = Signal(init=1)  # there are some: a register, for every word waits for it
        self.failing = Signal()  # a word of the read that is coming came with an error
        super().__init__(
            {
                "i": In(stream.Signature(burst)),
                "o": Out(stream.Signature(burst)),
                "words": Out(stream.Signature(8 * bus_bytes)),
                "written": In(1),
                "waiting": Out(1),
                "empty": Out(1),
                "axi": Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 2)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name in ("gate", "requests", "pending", "outcomes", "old_words"):
            m.submodules[name] = getattr(self, name)
        self._ask(m)
        self._drive_ar(m)
        self._take_words(m)
        self._give_words(m)
        self._go_on(m)
        return m

    def _ask(self, m):
        gate, request, pending = self.gate, self.requests.i, self.pending.i
        wiring.connect(m, i=wiring.flipped(self.i), gate=gate.i)
        burst = gate.o
        m.d.comb += [
            gate.space.eq(self.space),
            gate.written.eq(self.written),
            request.valid.eq(burst.valid & pending.ready),
            request.payload.word.eq(burst.payload.word),
            request.payload.beats_minus_one.eq(burst.payload.beats_minus_one),
            pending.valid.eq(burst.valid & request.ready),
            pending.payload.eq(burst.payload),
            burst.ready.eq(request.ready & pending.ready),
            self.empty.eq(gate.empty),
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
            word.payload.eq(axi.rdata),
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
            self.words.payload.eq(word.payload),
            self.words.valid.eq(word.valid),
            word.ready.eq(self.words.ready),
        ]
        asked, given = self.gate.word_stb, word.valid & word.ready
        # Both come late: so they enable the registers, and are not added.
        with m.If(asked ^ given):
            m.d.sync += [
                self.free.eq(Mux(given, self.free + 1, self.free - 1)),
                self.space.eq(given | (self.free != 1)),
            ]

    def _go_on(self, m):
        pending, outcome = self.pending.o, self.outcomes.o
        m.d.comb += [
            self.o.payload.eq(pending.payload),
            self.o.valid.eq(outcome.valid),
            self.waiting.eq(pending.valid | self.gate.busy),
            outcome.ready.eq(self.o.ready),
            pending.ready.eq(outcome.valid & self.o.ready),
        ]
        with m.If(outcome.payload):
            m.d.comb += [self.o.payload.empty.eq(1), self.o.payload.refused.eq(1)]
