"""Old words for reductions: read early, but not while an earlier burst still has to write them."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from tilewright.spec import PAGE_BYTES

from ..bus.axi4 import Axi4ReadSignature, drive_request, is_error
from ..bus.bursts import BurstLayout, WriteBurstLayout
from ..lib.stream import Queue, SkidBuffer

__all__ = ["HazardGate", "OldWordReader"]

#: Bits of the number of a burst. About once in 2^16 bursts one waits because an old number has come round again.
_NUMBER_BITS = 16
#: Entries by which words at a distance of the whole memory are moved apart, so that rows of a few words do not collide.
_SHIFT = 3


class HazardGate(wiring.Component):
    """Passes a burst when none of its words still has to be written by a burst that has passed before.

    Bursts are numbered. A memory stores for each word, by some bits of its address, the number of the last burst that
    passed with such a word. Bursts without a response have consecutive numbers, so the distance of a number from the
    oldest one tells whether its burst is one of them; other numbers mean nothing. Different words in one entry make
    bursts wait needlessly, but never too little. The memory is only cleared after a reset, an entry a cycle; until then
    no burst is accepted.

    Words pass three registers, which all advance when the word in the last one passes: the burst that is split into
    words, the word whose entry is read, and the word whose number is known. A number that is written while it is on its
    way is out of date: such a word waits until all bursts have their responses.

    Latency: two cycles more than the burst has words. Throughput: one word a cycle, without a pause between bursts.
    ``i.ready`` depends combinationally on ``space`` and ``o.ready``.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word, a power of two.
    entries : int
        Entries of the memory, a power of two.
    bursts : int
        Bursts without a response at most, a power of two, at most a quarter of the numbers.
    number_bits : int
        Bits of the number of a burst.
    processors : int
        See ``WriteBurstLayout``.
    """

    def __init__(self, addr_width, bus_bytes, entries, bursts, number_bits=_NUMBER_BITS, processors=1):
        for name, value in (("entries", entries), ("bursts", bursts)):
            if not isinstance(value, int) or value < 2 or value & (value - 1):
                raise ValueError(f"{name} must be a power of two of at least 2, not {value!r}")
        if 1 << number_bits < 4 * bursts:
            raise ValueError(f"number_bits must be {exact_log2(4 * bursts)} or more, not {number_bits!r}")
        self._page_log2 = exact_log2(PAGE_BYTES // bus_bytes)
        self._entry_log2 = exact_log2(entries)
        self._bursts_log2 = exact_log2(bursts)
        self.memory = Memory(shape=unsigned(number_bits), depth=entries, init=[])
        burst = WriteBurstLayout(addr_width, bus_bytes, processors)
        self.burst = Signal(burst)  # the one that is split into words
        self.active = Signal()  # there is one
        self.beat = Signal(8)  # its next word, counted from zero
        word = {"valid": 1, "burst": burst, "last": 1, "entry": self._entry_log2, "rewritten": 1}
        self.read = Signal(data.StructLayout(word))  # the word whose number is at the output of the memory
        self.stored = Signal(number_bits)  # that number
        # The word whose number is known; ``behind``: that number minus ``first``.
        self.known = Signal(data.StructLayout(word | {"behind": number_bits}))
        self.number = Signal(number_bits, init=1)  # of the next burst; the memory begins with zeros
        self.first = Signal(number_bits, init=1)  # of the oldest burst without a response, one cycle late
        self.late = Signal()  # ``written``, one cycle late, because it arrives too late for a carry chain
        self.passed = Signal(range(bursts + 1))  # bursts without a response
        self.safe = Signal()  # the known word has been found not to collide: its number may come round again later
        self.cleared = Signal(self._entry_log2 + 1)  # entries
        super().__init__(
            {
                "i": In(stream.Signature(burst)),  # legal bursts, which stay in their page; none is empty
                "o": Out(stream.Signature(burst)),
                "space": In(1),  # for another old word; once high it is high until ``word_stb``
                "word_stb": Out(1),  # a word has passed: its space is used
                "written": In(1),  # strobe: the response of the oldest burst that has passed
                "busy": Out(1),  # a burst has been accepted and has not passed
                "empty": Out(1),  # all bursts that have passed have their responses
            }
        )

    def entry(self, word):
        """The entry of a word in the memory."""
        return (word ^ (word[self._entry_log2 :] << _SHIFT))[: self._entry_log2]

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        write, read = self.memory.write_port(), self.memory.read_port()
        known, ready = self.known, self.cleared[-1]

        recent, collides, may_pass, ends, advance = Signal(), Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            self.stored.eq(read.data),
            # While ``late`` is high, ``first`` is one too low and so ``behind`` one too high.
            recent.eq((known.behind[self._bursts_log2 :] == 0) & ~(self.late & (known.behind == 0))),
            collides.eq((self.passed != 0) & (known.rewritten | recent) & ~self.safe),
            may_pass.eq(known.valid & ~collides & self.space & ~self.passed[-1]),
            ends.eq(may_pass & known.last & self.o.ready),
            self.word_stb.eq(may_pass & (~known.last | self.o.ready)),
            self.o.valid.eq(may_pass & known.last),
            self.o.payload.eq(known.burst),
            advance.eq(~known.valid | self.word_stb),
            self.empty.eq(self.passed == 0),
            self.busy.eq(self.active | self.read.valid | known.valid),
        ]
        # One carry chain after the memory: stored number minus ``first``, or ``behind``; minus ``late``, the carry in.
        start = Cat(Const(1, 1), Mux(advance, self.stored, known.behind))
        behind = start + Cat(~self.late, ~Mux(advance, self.first, 0))
        m.d.sync += [
            self.late.eq(self.written),
            self.number.eq(self.number + ends),
            self.first.eq(self.first + self.late),
            known.behind.eq(behind[1:]),
            self.safe.eq(known.valid & ~collides & ~advance),
        ]
        with m.If(ends ^ self.written):
            m.d.sync += self.passed.eq(Mux(ends, self.passed + 1, self.passed - 1))

        last, entry = Signal(), Signal(self._entry_log2)
        m.d.comb += [
            last.eq(self.beat == self.burst.beats_minus_one),
            entry.eq(self.entry(self._word(m))),
            self.i.ready.eq(ready & (~self.active | (advance & last))),
            read.addr.eq(entry),
            read.en.eq(advance),
            write.addr.eq(Mux(ready, known.entry, self.cleared)),
            write.data.eq(Mux(ready, self.number, 0)),
            write.en.eq(self.word_stb | ~ready),
        ]
        m.d.sync += self.cleared.eq(self.cleared + (~ready)[0])

        with m.If(advance):
            m.d.sync += [
                Cat(known[name] for name in ("valid", "burst", "last", "entry")).eq(
                    Cat(self.read[name] for name in ("valid", "burst", "last", "entry"))
                ),
                known.rewritten.eq(self.read.rewritten | (known.valid & (known.entry == self.read.entry))),
                self.read.valid.eq(self.active),
                self.read.burst.eq(self.burst),
                self.read.last.eq(last),
                self.read.entry.eq(entry),
                self.read.rewritten.eq(known.valid & (known.entry == entry)),
                self.beat.eq(self.beat + 1),
            ]
        with m.If(self.i.ready):
            m.d.sync += [self.active.eq(self.i.valid), self.burst.eq(self.i.payload), self.beat.eq(0)]
        return m

    def _word(self, m):
        """The next word of the burst, which stays in its page."""
        word, low = Signal.like(self.burst.word), self.burst.word[: self._page_log2]
        m.d.comb += word.eq(self.burst.word)
        m.d.comb += word[: self._page_log2].eq(low + self.beat)
        return word


_READ_ID = 2


class OldWordReader(wiring.Component):
    """Reads the words of each burst before it goes on.

    The words of a burst are requested when all earlier bursts that share a word with it have been written, and when
    there is space for them, so that the bus never waits. It goes on when all have come. If one comes with an error, it
    goes on as empty and refused; its words are delivered nevertheless.

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
        Old words requested or waiting at most, a power of two from ``max_burst`` to 1024. Half as many bursts may wait
        for their words, and twice as many may be between their read and their response.
    processors : int
        See ``WriteBurstLayout``.
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
        self.outcomes = Queue(1, words // 2)  # of complete reads: whether a word came with an error
        self.old_words = Queue(8 * bus_bytes, words)
        self.free = Signal(range(words + 1), init=words)  # entries that are not reserved by a request
        self.space = Signal(init=1)  # there are some: a register, because every word waits for it
        self.failing = Signal()  # a word of the current read came with an error
        super().__init__(
            {
                "i": In(stream.Signature(burst)),  # none is empty
                "o": Out(stream.Signature(burst)),
                "words": Out(stream.Signature(8 * bus_bytes)),  # of the bursts at ``o``, in order, before their burst
                "written": In(1),  # strobe: the response of the oldest burst that has gone on
                "waiting": Out(1),  # a burst has been accepted and has not gone on
                "empty": Out(1),  # no burst is between its read and its response
                "axi": Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 2)),  # reads with ID 2
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name in ("gate", "requests", "pending", "outcomes", "old_words"):
            m.submodules[name] = getattr(self, name)
        self._request(m)
        self._accept_words(m)
        self._deliver_words(m)
        self._deliver_bursts(m)
        return m

    def _request(self, m):
        gate, request, pending = self.gate, self.requests.i, self.pending.i
        connect(m, i=flipped(self.i), gate=gate.i)
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
        request = self.requests.o
        drive_request(
            m,
            self.axi,
            "ar",
            request,
            ident=_READ_ID,
            address=Cat(Const(0, self._bus_log2), request.payload.word),
            beats_minus_one=request.payload.beats_minus_one,
        )

    def _accept_words(self, m):
        axi, word, outcome = self.axi, self.old_words.i, self.outcomes.i
        failed = Signal()
        m.d.comb += [
            word.valid.eq(axi.rvalid),
            word.payload.eq(axi.rdata),
            axi.rready.eq(word.ready),
            failed.eq(self.failing | is_error(axi.rresp)),
            outcome.valid.eq(axi.rvalid & axi.rready & axi.rlast),
            outcome.payload.eq(failed),
        ]
        with m.If(axi.rvalid & axi.rready):
            m.d.sync += self.failing.eq(failed & ~axi.rlast)

    def _deliver_words(self, m):
        word = self.old_words.o
        m.d.comb += [
            self.words.payload.eq(word.payload),
            self.words.valid.eq(word.valid),
            word.ready.eq(self.words.ready),
        ]
        reserved, released = self.gate.word_stb, word.valid & word.ready
        # Both strobes arrive late, so they enable the registers instead of entering the sum.
        with m.If(reserved ^ released):
            m.d.sync += [
                self.free.eq(Mux(released, self.free + 1, self.free - 1)),
                self.space.eq(released | (self.free != 1)),
            ]

    def _deliver_bursts(self, m):
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
