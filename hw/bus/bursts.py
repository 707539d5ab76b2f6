"""Bursts: what passes between the blocks that use memory and the AXI4 ports, how ranges are cut, and bursts counted.

Writes go through a chain of blocks that have :class:`WritesSignature` on both sides: store path, reducer, write guard,
write port.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from tilewright.spec import PAGE_BYTES

from ..lib.component import Port
from ..lib.stream import Queue

__all__ = [
    "BURSTS_AHEAD",
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
]

#: The shape of a tag that is not used.
NO_TAG = unsigned(0)

#: Depth of the queue of a BeatSequencer beside a chain of writes: how many bursts may be ahead of their words.
BURSTS_AHEAD = 16


class RangeLayout(data.StructLayout):
    """Contiguous bus words; their bursts inherit ``tag``."""

    def __init__(self, word_width, count_width, tag=NO_TAG):
        super().__init__(
            {
                "word": unsigned(word_width),  # address of the first, in bus words
                "beyond": unsigned(count_width),  # words after the first
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
    """A bus word of data that was read."""

    def __init__(self, addr_width, bus_bytes):
        super().__init__(
            {
                "data": unsigned(8 * bus_bytes),
                "error": unsigned(1),  # SLVERR or DECERR
                "address": unsigned(addr_width),  # byte address of the word
            }
        )


class DescriptorWordLayout(data.StructLayout):
    """A bus word of a descriptor that was read."""

    def __init__(self, bus_bytes):
        super().__init__(
            {
                "data": unsigned(8 * bus_bytes),
                "error": unsigned(1),  # SLVERR or DECERR
                "last": unsigned(1),  # of the descriptor
            }
        )


def processor_members(processors):
    """Members of a burst, by name, that say which processor it belongs to; none if there is one processor."""
    return {"processor": range(processors)} if processors > 1 else {}


class WriteBurstLayout(data.StructLayout):
    """A legal AXI burst of writes, which does not cross 4 KiB. With several processors it has the number of its own."""

    def __init__(self, addr_width, bus_bytes, processors=1):
        super().__init__(
            {
                "word": unsigned(addr_width - exact_log2(bus_bytes)),  # address of the first beat, in bus words
                "beats_minus_one": unsigned(8),
                "empty": unsigned(1),  # without a burst on the bus or words: only a response is due, in its turn
                "refused": unsigned(1),  # empty, and the response says error; only guard and reducer set it
                "last": unsigned(1),  # last of a transfer; returned with the response
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
    """The outcome of a burst."""

    def __init__(self, addr_width):
        super().__init__(
            {
                "error": unsigned(1),  # refused by the bus or the guard
                "last": unsigned(1),  # of the burst
                "address": unsigned(addr_width),  # byte address of the burst's first word
            }
        )


class WritesSignature(Port):
    """Writes, as their source sees them.

    ``words`` are those of all bursts that are not empty, in order. Each burst has one response, in order, in a later
    cycle.
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

    Latency 1, one burst a cycle, without a pause between ranges. A second register holds the next range, so that
    ``i.ready`` is registered. Bursts have the tag of their range; ``last`` says that the one at ``o`` ends it.

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
        self.todo = Signal(shape)  # the rest of the current range, while ``o.valid``
        self.pending = Signal()  # ``following`` is the next range
        self.following = Signal(shape)
        super().__init__(
            {"i": In(stream.Signature(shape)), "o": Out(stream.Signature(BurstLayout(word_width, tag))), "last": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        burst_log2, page_log2 = self._burst_log2, self._page_log2
        todo, pending, following = self.todo, self.pending, self.following

        # The page ends within the next max_burst words only if the address bits between the two are all ones; then the
        # space is max_burst - (word mod max_burst). Either the next burst begins at a multiple of max_burst, or
        # max_burst words further: in both cases the upper bits of the address grow by one.
        offset, upper = todo.word[:burst_log2], todo.word[burst_log2:]
        near_end = upper[: page_log2 - burst_log2].all()
        most = Signal(burst_log2)  # space, less one word
        m.d.comb += most.eq(Mux(near_end, ~offset, -1))

        burst, last = self.o.payload, self.last
        m.d.comb += [
            last.eq(todo.beyond <= most),
            burst.word.eq(todo.word),
            burst.beats_minus_one.eq(Mux(last, todo.beyond, most)),
            burst.tag.eq(todo.tag),
            self.i.ready.eq(~pending),
        ]
        with m.If(~self.o.valid | (self.o.ready & last)):
            m.d.sync += [
                self.o.valid.eq(self.i.valid | pending),
                todo.eq(Mux(pending, following, self.i.payload)),
                pending.eq(0),
            ]
        with m.Else():
            with m.If(self.o.ready):
                m.d.sync += [
                    todo.word.eq(Cat(Mux(near_end, Const(0, burst_log2), offset), upper + 1)),
                    todo.beyond.eq(todo.beyond - most - 1),
                ]
            with m.If(self.i.valid):
                m.d.sync += pending.eq(1)
        with m.If(~pending):
            m.d.sync += following.eq(self.i.payload)
        return m


class TaggedBurstLayout(data.StructLayout):
    """The length of a burst, and what its user needs at each of its beats."""

    def __init__(self, tag):
        super().__init__({"beats_minus_one": unsigned(8), "tag": tag})


class BeatLayout(data.StructLayout):
    """One beat of a burst."""

    def __init__(self, tag):
        super().__init__({"tag": tag, "last": unsigned(1)})


class BeatSequencer(wiring.Component):
    """Makes of each burst as many items as it has beats, to be consumed together with the words of the bursts.

    Latency 1, one burst and one beat a cycle. Bursts wait in a queue.

    Parameters
    ----------
    tag : shape-like
        What the user needs at each beat.
    depth : int
        Bursts that may be ahead of their beats: 2 to 1024, a power of two.
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
        connect(m, bursts=flipped(self.bursts), queue=queue.i)
        burst, beats, last = queue.o, self.beats, Signal()
        m.d.comb += [
            last.eq(self.beat == burst.payload.beats_minus_one),
            beats.valid.eq(burst.valid),
            beats.payload.tag.eq(burst.payload.tag),
            beats.payload.last.eq(last),
            burst.ready.eq(beats.ready & last),
        ]
        with m.If(beats.valid & beats.ready):
            m.d.sync += self.beat.eq(Mux(last, 0, self.beat + 1))
        return m
