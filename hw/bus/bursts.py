"""What passes between those that read memory and the AXI4 read port: ranges, bursts, and the words that come."""

from amaranth import unsigned
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.hdl import unsigned as beats_unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec import PAGE_BYTES

from ..lib.component import Port
from ..lib.stream import Queue

__all__ = [
    "NO_TAG",
    "BeatLayout",
    "BeatSequencer",
    "BurstLayout",
    "BurstSplitter",
    "DescriptorWordLayout",
    "RangeLayout",
    "ReadWordLayout",
    "TaggedBurstLayout",
    "WriteBurstLayout",
    "WriteResponseLayout",
    "WriteWordLayout",
    "WritesSignature",
    "processor_members",
]  # fmt: skip

#: The shape of a tag that says nothing.
NO_TAG = unsigned(0)


class RangeLayout(data.StructLayout):
    """Adjoining bus words; ``tag`` is what their bursts take over."""

    def __init__(self, word_width, count_width, tag=NO_TAG):
        super().__init__(
            {
                "word": unsigned(word_width),  # address of the first, in bus words
                "beyond": unsigned(count_width),  # words behind the first
                "tag": tag,
            }
        )


class BurstLayout(data.StructLayout):
    """One legal INCR burst."""

    def __init__(self, word_width, tag=NO_TAG):
        super().__init__(
            {
                "word": unsigned(word_width),  # address of the first beat, in bus words
                "beats_minus_one": unsigned(8),
                "tag": tag,  # of the range that it is a part of
            }
        )


class ReadWordLayout(data.StructLayout):
    """A bus word of data as it comes back."""

    def __init__(self, addr_width, bus_bytes):
        super().__init__(
            {
                "data": unsigned(8 * bus_bytes),
                "error": unsigned(1),  # SLVERR or DECERR
                "address": unsigned(addr_width),  # byte address of the word
            }
        )


class DescriptorWordLayout(data.StructLayout):
    """A bus word of a descriptor as it comes back."""

    def __init__(self, bus_bytes):
        super().__init__(
            {
                "data": unsigned(8 * bus_bytes),
                "error": unsigned(1),  # SLVERR or DECERR
                "last": unsigned(1),  # of the descriptor
            }
        )


def processor_members(processors):
    """Members of a burst, by name, that say whose it is; none where there is one processor."""
    return {"processor": range(processors)} if processors > 1 else {}


class WriteBurstLayout(data.StructLayout):
    """A legal AXI burst of writes: it does not cross 4 KiB. Of several processors it has the number of its own."""

    def __init__(self, addr_width, bus_bytes, processors=1):
        super().__init__(
            {
                "word": unsigned(addr_width - (bus_bytes.bit_length() - 1)),  # byte address of its first bus word >> …
                "beats_minus_one": unsigned(8),
                "empty": unsigned(1),  # no burst, and no words: only a response is due, in its turn
                "refused": unsigned(1),  # empty, and the response says error; only guard and reducer set it
                "last": unsigned(1),  # last of a transfer; comes back with the response
                "reduction": unsigned(4),  # spec.Reduction
                "element": unsigned(4),  # spec.Element
                **processor_members(processors),
            }
        )


class WriteWordLayout(data.StructLayout):
    """One bus word of a burst."""

    def __init__(self, bus_bytes):
        super().__init__({"data": unsigned(8 * bus_bytes), "strobe": unsigned(bus_bytes)})


class WriteResponseLayout(data.StructLayout):
    """What became of a burst: one for each, in order."""

    def __init__(self, addr_width):
        super().__init__(
            {
                "error": unsigned(1),  # refused by the bus or the guard
                "last": unsigned(1),  # as the burst said
                "address": unsigned(addr_width),  # byte address of the burst's first word
            }
        )


class WritesSignature(Port):
    """Writes, as their source sees them.

    Parameters
    ----------
    addr_width, bus_bytes, processors : int
        As of ``WriteBurstLayout``.

    Members
    -------
    bursts : Out(stream of WriteBurstLayout)
    words : Out(stream of WriteWordLayout)
        Those of all bursts that are not empty, in order.
    responses : In(stream of WriteResponseLayout)
        One for each burst, in order, in a later cycle.
    """

    def __init__(self, addr_width, bus_bytes, processors=1):
        super().__init__(
            {
                "bursts": Out(stream.Signature(WriteBurstLayout(addr_width, bus_bytes, processors))),
                "words": Out(stream.Signature(WriteWordLayout(bus_bytes))),
                "responses": In(stream.Signature(WriteResponseLayout(addr_width))),
            }
        )


class BurstSplitter(wiring.Component):
    """Cuts ranges of bus words into as few bursts as the page boundary and ``max_burst`` allow.

    Latency 1, one burst a cycle, without a pause between ranges. The range at hand lies in a register, from which the
    burst is made; another register catches the range that comes while this one is not done. So ``i.ready`` depends on
    registers only.

    Parameters
    ----------
    word_width : int
        Bits of the address of a bus word.
    count_width : int
        Bits of the number of words in a range.
    bus_bytes : int
        Bytes of a bus word, a power of two.
    max_burst : int
        Words of a burst at most, a power of two up to 256; ``max_burst * bus_bytes`` is at most 4096.
    tag : shape-like
        Of what every burst takes over from its range.

    Members
    -------
    i : In(stream of RangeLayout)
    o : Out(stream of BurstLayout)
        With the tag of its range.
    last : Out(1)
        The burst at ``o`` is the last one of its range.
    """

    def __init__(self, *, word_width, count_width, bus_bytes, max_burst, tag=NO_TAG):
        for name, value, most in (("bus_bytes", bus_bytes, 128), ("max_burst", max_burst, 256)):
            if not isinstance(value, int) or not 1 <= value <= most or value & (value - 1):
                raise ValueError(f"{name} must be a power of two from 1 to {most}, not {value!r}")
        if max_burst * bus_bytes > PAGE_BYTES:
            raise ValueError(f"max_burst of {max_burst} words of {bus_bytes} bytes is longer than {PAGE_BYTES} bytes")
        self._burst_log2 = exact_log2(max_burst)
        self._page_log2 = exact_log2(PAGE_BYTES // bus_bytes)
        shape = RangeLayout(word_width, count_width, tag)
        self.todo = Signal(shape)  # what is left of the range at hand, if ``o.valid``
        self.caught = Signal()  # ``following`` is the range behind it
        self.following = Signal(shape)
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(BurstLayout(word_width, tag))),
                "last": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        burst_log2, page_log2 = self._burst_log2, self._page_log2
        todo, caught, following = self.todo, self.caught, self.following

        # The page ends within the next max_burst words only if the bits of the address between the two are all ones;
        # then the space left is max_burst - (word mod max_burst). Both cases lead to a multiple of max_burst, or on by
        # max_burst: the upper bits of the address advance by one.
        place, upper = todo.word[:burst_log2], todo.word[burst_log2:]
        near_end = upper[: page_log2 - burst_log2].all()
        most = Signal(burst_log2)  # space, less one word
        m.d.comb += most.eq(Mux(near_end, ~place, -1))

        burst, last = self.o.payload, self.last
        m.d.comb += [
            last.eq(todo.beyond <= most),
            burst.word.eq(todo.word),
            burst.beats_minus_one.eq(Mux(last, todo.beyond, most)),
            burst.tag.eq(todo.tag),
            self.i.ready.eq(~caught),
        ]
        done = ~self.o.valid | (self.o.ready & last)
        with m.If(done):
            m.d.sync += [
                self.o.valid.eq(self.i.valid | caught),
                todo.eq(Mux(caught, following, self.i.payload)),
                caught.eq(0),
            ]
        with m.Else():
            with m.If(self.o.ready):
                m.d.sync += [
                    todo.word.eq(Cat(Mux(near_end, Const(0, burst_log2), place), upper + 1)),
                    todo.beyond.eq(todo.beyond - most - 1),
                ]
            with m.If(self.i.valid):
                m.d.sync += caught.eq(1)
        with m.If(~caught):
            m.d.sync += following.eq(self.i.payload)
        return m


class TaggedBurstLayout(data.StructLayout):
    """How long a burst is, and what its user needs at each of its beats."""

    def __init__(self, tag):
        super().__init__({"beats_minus_one": beats_unsigned(8), "tag": tag})


class BeatLayout(data.StructLayout):
    """One beat of a burst."""

    def __init__(self, tag):
        super().__init__({"tag": tag, "last": beats_unsigned(1)})


class BeatSequencer(wiring.Component):
    """Makes of each burst as many items as it has beats. Words that come beside bursts are taken together with these.

    Latency 1, one burst and one beat a cycle. The bursts wait in memory.

    Parameters
    ----------
    tag : shape-like
        Of what the user needs.
    depth : int
        Bursts that may be ahead of their beats: 2 to 1024, a power of two.

    Members
    -------
    bursts : In(stream of TaggedBurstLayout)
        ``ready`` depends on the number of bursts held only.
    beats : Out(stream of BeatLayout)
    """

    def __init__(self, tag, depth):
        self.queue = Queue(TaggedBurstLayout(tag), depth)
        self.beat = Signal(8)  # of the oldest burst, counted from zero
        super().__init__(
            {"bursts": In(stream.Signature(TaggedBurstLayout(tag))), "beats": Out(stream.Signature(BeatLayout(tag)))}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        wiring.connect(m, bursts=wiring.flipped(self.bursts), queue=queue.i)
        last = Signal()
        m.d.comb += [
            last.eq(self.beat == queue.o.payload.beats_minus_one),
            self.beats.valid.eq(queue.o.valid),
            self.beats.payload.tag.eq(queue.o.payload.tag),
            self.beats.payload.last.eq(last),
            queue.o.ready.eq(self.beats.ready & last),
        ]
        with m.If(self.beats.valid & self.beats.ready):
            m.d.sync += self.beat.eq(Mux(last, 0, self.beat + 1))
        return m
