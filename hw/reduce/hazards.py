"""Which writes are under way, so that what they change is not read."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.golden.spec import PAGE_BYTES

from ..bus.writes import WriteBurstLayout

__all__ = ["HazardGate"]

#: Bits of a burst's number. Once in 2^16 bursts one waits for another that has the number of one long gone.
_NUMBER_BITS = 16
#: By so many places words are shifted that lie a whole table apart: rows of a few words at such a distance do not meet.
_SHIFT = 3


class HazardGate(wiring.Component):
    """Lets a burst pass when no word of it is still to be written by one that has passed before.

    Bursts are numbered. A memory keeps for each word, by some bits of its address, which burst passed last with such a
    word. The numbers of those that have no response yet adjoin, so that one comparison tells whether it is among them.
    Different words in one place make bursts wait without need, never too little. A number that is not under way means
    nothing, so that nothing is cleared but once, after a reset, a place a cycle; until then no burst is taken.

    Latency: as many cycles as the burst has words. Throughput: one word a cycle, without a pause between bursts.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word, a power of two.
    entries : int
        Words that the memory tells apart, a power of two.
    bursts : int
        That may have passed and have no response, a power of two below half of the numbers.
    number_bits : int

    Members
    -------
    i : In(stream of WriteBurstLayout)
        None is empty. Legal bursts: they stay in their page. ``ready`` depends combinationally on ``space`` and
        ``o.ready``.
    o : Out(stream of WriteBurstLayout)
    space : In(1)
        There is space for another old word; what comes true stays true until ``word_stb``.
    word_stb : Out(1)
        A word of the burst has been looked at: its space is taken.
    written : In(1)
        Strobe: the oldest burst that has passed has its response.
    busy : Out(1)
        A burst is in here.
    empty : Out(1)
        None has passed and has no response.
    """

    def __init__(self, addr_width, bus_bytes, entries, bursts, number_bits=_NUMBER_BITS):
        for name, value in (("entries", entries), ("bursts", bursts)):
            if not isinstance(value, int) or value < 2 or value & (value - 1):
                raise ValueError(f"{name} must be a power of two of at least 2, not {value!r}")
        self._page_log2 = exact_log2(PAGE_BYTES // bus_bytes)
        self._place_log2 = exact_log2(entries)
        self._bursts = bursts
        self.memory = Memory(shape=unsigned(number_bits), depth=entries, init=[])
        self.burst = Signal(WriteBurstLayout(addr_width, bus_bytes))  # the one in here
        self.beat = Signal(8)  # its next word, counted from zero
        self.last = Signal(number_bits)  # number of the burst that passed last; memory begins with zeros
        self.passed = Signal(range(bursts + 1))  # bursts without response: those with the numbers before
        self.cleared = Signal(self._place_log2 + 1)  # places
        self.found = Signal(number_bits)  # what is read
        self.looked = Signal()  # it is of the next word, and was not written meanwhile
        super().__init__(
            {
                "i": In(stream.Signature(WriteBurstLayout(addr_width, bus_bytes))),
                "o": Out(stream.Signature(WriteBurstLayout(addr_width, bus_bytes))),
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
        burst, beat = self.burst, self.beat

        ready = self.cleared[-1]
        back = Signal(len(self.last))  # bursts that have passed since
        clash, may, last, ends = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            self.found.eq(read.data),
            back.eq(self.last - self.found),
            clash.eq(back < self.passed),
            may.eq(self.busy & self.looked & ~clash & self.space & (self.passed != self._bursts)),
            last.eq(beat == burst.beats_minus_one),
            ends.eq(may & last & self.o.ready),
            self.word_stb.eq(may & (~last | self.o.ready)),
            self.o.valid.eq(may & last),
            self.o.payload.eq(burst),
            self.i.ready.eq(ready & (~self.busy | ends)),
            self.empty.eq(self.passed == 0),
        ]

        # The word that is looked at next: bursts stay in their page.
        following, low = Signal.like(burst.word), burst.word[: self._page_log2]
        m.d.comb += following.eq(burst.word)
        m.d.comb += following[: self._page_log2].eq(low + beat + self.word_stb)
        m.d.comb += [
            read.addr.eq(self.place(Mux(self.i.ready, self.i.payload.word, following))),
            write.addr.eq(Mux(ready, self.place(self._now(m)), self.cleared)),
            write.data.eq(Mux(ready, self.last + 1, 0)),
            write.en.eq(self.word_stb | ~ready),
        ]
        m.d.sync += self.cleared.eq(self.cleared + (~ready)[0])
        m.d.sync += self.looked.eq(~(write.en & (write.addr == read.addr)))

        with m.If(self.i.ready):
            m.d.sync += [self.busy.eq(self.i.valid), burst.eq(self.i.payload), beat.eq(0)]
        with m.Elif(self.word_stb):
            m.d.sync += beat.eq(beat + 1)
        m.d.sync += [
            self.last.eq(self.last + ends),
            self.passed.eq(self.passed + ends - self.written),
        ]
        return m

    def _now(self, m):
        """The word that is being looked at."""
        word, low = Signal.like(self.burst.word), self.burst.word[: self._page_log2]
        m.d.comb += word.eq(self.burst.word)
        m.d.comb += word[: self._page_log2].eq(low + self.beat)
        return word
