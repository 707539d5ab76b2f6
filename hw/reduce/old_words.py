"""Which writes are under way, so that what they change is not read."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec import PAGE_BYTES

from ..bus.axi4 import MODIFIABLE, UNPRIVILEGED_NON_SECURE, Axi4ReadSignature, Burst
from ..bus.bursts import BurstLayout, WriteBurstLayout
from ..lib.stream import Queue, SkidBuffer

__all__ = ["HazardGate", "OldWordReader"]

#: Bits of a burst's number. Once in 2^16 bursts one waits for another that has the number of one long gone.
_NUMBER_BITS = 16
#: By so many places words are shifted that lie a whole table apart: rows of a few words at such a distance do not meet.
_SHIFT = 3


class HazardGate(wiring.Component):
    """Lets a burst pass when no word of it is still to be written by one that has passed before.

    Bursts are numbered. A memory keeps for each word, by some bits of its address, which burst passed last with such a
    word. The numbers of those that have no response yet adjoin, so that their distance from the oldest one tells.
    Different words in one place make bursts wait without need, never too little. A number that is not under way means
    nothing, so that nothing is cleared but once, after a reset, a place a cycle; until then no burst is taken.

    Words go through three registers, all of which move when the word in the last one passes: the burst that is taken
    apart, the word whose number is being read, and the word whose number is known. A number that is written while it
    is on its way is that of the burst before: such a word waits until no burst is under way.

    Latency: two cycles more than the burst has words. Throughput: one word a cycle, without a pause between bursts.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word, a power of two.
    entries : int
        Words that the memory tells apart, a power of two.
    bursts : int
        That may have passed and have no response, a power of two, at most a quarter of the numbers.
    number_bits : int
        Of a burst's number.
    processors : int
        As of ``WriteBurstLayout``.

    Members
    -------
    i : In(stream of WriteBurstLayout)
        None is empty. Legal bursts: they stay in their page. ``ready`` depends combinationally on ``space`` and
        ``o.ready``.
    o : Out(stream of WriteBurstLayout)
    space : In(1)
        There is space for another old word; what comes true stays true until ``word_stb``.
    word_stb : Out(1)
        A word has passed: its space is taken.
    written : In(1)
        Strobe: the oldest burst that has passed has its response.
    busy : Out(1)
        A burst is in here.
    empty : Out(1)
        None has passed and has no response.
    """

    def __init__(self, addr_width, bus_bytes, entries, bursts, number_bits=_NUMBER_BITS, processors=1):
        for name, value in (("entries", entries), ("bursts", bursts)):
            if not isinstance(value, int) or value < 2 or value & (value - 1):
                raise ValueError(f"{name} must be a power of two of at least 2, not {value!r}")
        if 1 << number_bits < 4 * bursts:
            raise ValueError(f"number_bits must be {exact_log2(4 * bursts)} or more, not {number_bits!r}")
        self._page_log2 = exact_log2(PAGE_BYTES // bus_bytes)
        self._place_log2 = exact_log2(entries)
        self._bursts_log2 = exact_log2(bursts)
        self.memory = Memory(shape=unsigned(number_bits), depth=entries, init=[])
        burst = WriteBurstLayout(addr_width, bus_bytes, processors)
        self.burst = Signal(burst)  # the one that is taken apart
        self.taken = Signal()  # there is one
        self.beat = Signal(8)  # its next word, counted from zero
        word = {"valid": 1, "burst": burst, "last": 1, "place": self._place_log2, "rewritten": 1}
        self.read = Signal(data.StructLayout(word))  # the word whose number is at the memory's output
        self.found = Signal(number_bits)  # it
        # How many bursts its number is behind ``first``.
        self.known = Signal(data.StructLayout(word | {"behind": number_bits}))
        self.number = Signal(number_bits, init=1)  # of the burst that passes next; memory begins with zeros
        self.first = Signal(number_bits, init=1)  # of the oldest without response, a cycle behind
        self.late = Signal()  # ``written``, a cycle behind: it comes too late for a chain of carries
        self.passed = Signal(range(bursts + 1))  # bursts without response
        self.apart = Signal()  # the known word did not clash; a number of long ago may seem to later
        self.cleared = Signal(self._place_log2 + 1)  # places
        super().__init__(
            {
                "i": In(stream.Signature(burst)),
                "o": Out(stream.Signature(burst)),
                "space": In(1),
                "word_stb": Out(1),
                "written": In(1),
                "busy": Out(1),
                "empty": Out(1),
            }
        )

    def place(self, word):
        """Where the memory has a word."""
        return (word ^ (word[self._place_log2 :] << _SHIFT))[: self._place_log2]

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        write, read = self.memory.write_port(), self.memory.read_port()
        known, ready = self.known, self.cleared[-1]

        recent, clash, may, ends, moves = Signal(), Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            self.found.eq(read.data),
            # ``behind`` is one too many as long as ``late`` has not been taken off.
            recent.eq((known.behind[self._bursts_log2 :] == 0) & ~(self.late & (known.behind == 0))),
            clash.eq((self.passed != 0) & (known.rewritten | recent) & ~self.apart),
            may.eq(known.valid & ~clash & self.space & ~self.passed[-1]),
            ends.eq(may & known.last & self.o.ready),
            self.word_stb.eq(may & (~known.last | self.o.ready)),
            self.o.valid.eq(may & known.last),
            self.o.payload.eq(known.burst),
            moves.eq(~known.valid | self.word_stb),
            self.empty.eq(self.passed == 0),
            self.busy.eq(self.taken | self.read.valid | known.valid),
        ]
        # One chain behind the memory: what is found less ``first``, or what is known; less ``late``, its carry in.
        least = Cat(Const(1, 1), Mux(moves, self.found, known.behind))
        behind = least + Cat(~self.late, ~Mux(moves, self.first, 0))
        m.d.sync += [
            self.late.eq(self.written),
            self.number.eq(self.number + ends),
            self.first.eq(self.first + self.late),
            known.behind.eq(behind[1:]),
            self.apart.eq(known.valid & ~clash & ~moves),
        ]
        with m.If(ends ^ self.written):
            m.d.sync += self.passed.eq(Mux(ends, self.passed + 1, self.passed - 1))

        last, place = Signal(), Signal(self._place_log2)
        m.d.comb += [
            last.eq(self.beat == self.burst.beats_minus_one),
            place.eq(self.place(self._word(m))),
            self.i.ready.eq(ready & (~self.taken | (moves & last))),
            read.addr.eq(place),
            read.en.eq(moves),
            write.addr.eq(Mux(ready, known.place, self.cleared)),
            write.data.eq(Mux(ready, self.number, 0)),
            write.en.eq(self.word_stb | ~ready),
        ]
        m.d.sync += self.cleared.eq(self.cleared + (~ready)[0])

        with m.If(moves):
            m.d.sync += [
                Cat(known[name] for name in ("valid", "burst", "last", "place")).eq(
                    Cat(self.read[name] for name in ("valid", "burst", "last", "place"))
                ),
                known.rewritten.eq(self.read.rewritten | (known.valid & (known.place == self.read.place))),
                self.read.valid.eq(self.taken),
                self.read.burst.eq(self.burst),
                self.read.last.eq(last),
                self.read.place.eq(place),
                self.read.rewritten.eq(known.valid & (known.place == place)),
                self.beat.eq(self.beat + 1),
            ]
        with m.If(self.i.ready):
            m.d.sync += [self.taken.eq(self.i.valid), self.burst.eq(self.i.payload), self.beat.eq(0)]
        return m

    def _word(self, m):
        """The next word of the burst: bursts stay in their page."""
        word, low = Signal.like(self.burst.word), self.burst.word[: self._page_log2]
        m.d.comb += word.eq(self.burst.word)
        m.d.comb += word[: self._page_log2].eq(low + self.beat)
        return word


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
