"""From ranges of bus words to legal AXI bursts."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.golden.spec import PAGE_BYTES

from .reads import NO_TAG, BurstLayout, RangeLayout

__all__ = ["BurstSplitter"]


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
