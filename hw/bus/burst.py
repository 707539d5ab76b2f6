"""From ranges of bus words to legal AXI bursts."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.golden.spec import PAGE_BYTES

from .reads import BurstLayout, RangeLayout

__all__ = ["BurstSplitter"]


class BurstSplitter(wiring.Component):
    """Cuts ranges of bus words into as few bursts as the page boundary and ``max_burst`` allow.

    Combinational from ``i`` to ``o``, one burst a cycle. The range waits at ``i`` until its last burst has been taken;
    a register keeps what is left of it.

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

    Members
    -------
    i : In(stream of RangeLayout)
    o : Out(stream of BurstLayout)
    last : Out(1)
        The burst at ``o`` is the last one of its range.
    """

    def __init__(self, *, word_width, count_width, bus_bytes, max_burst):
        for name, value, most in (("bus_bytes", bus_bytes, 128), ("max_burst", max_burst, 256)):
            if not isinstance(value, int) or not 1 <= value <= most or value & (value - 1):
                raise ValueError(f"{name} must be a power of two from 1 to {most}, not {value!r}")
        if max_burst * bus_bytes > PAGE_BYTES:
            raise ValueError(f"max_burst of {max_burst} words of {bus_bytes} bytes is longer than {PAGE_BYTES} bytes")
        self._burst_log2 = exact_log2(max_burst)
        self._page_log2 = exact_log2(PAGE_BYTES // bus_bytes)
        self.left = Signal()  # ``rest`` is what is left of the range at ``i``
        self.rest = Signal(RangeLayout(word_width, count_width))
        super().__init__(
            {
                "i": In(stream.Signature(RangeLayout(word_width, count_width))),
                "o": Out(stream.Signature(BurstLayout(word_width))),
                "last": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        burst_log2, page_log2 = self._burst_log2, self._page_log2
        todo = Signal.like(self.rest)
        m.d.comb += todo.eq(Mux(self.left, self.rest, self.i.payload))

        # The page ends within the next max_burst words only if the bits of the address between the two are all ones;
        # then the space left is max_burst - (word mod max_burst).
        lost = Signal(burst_log2)
        m.d.comb += lost.eq(Mux(todo.word[burst_log2:page_log2].all(), todo.word[:burst_log2], 0))
        space = Signal(burst_log2 + 1)
        m.d.comb += space.eq((1 << burst_log2) - lost)

        last = self.last
        m.d.comb += [
            last.eq(todo.count <= space),
            self.o.valid.eq(self.i.valid),
            self.o.payload.word.eq(todo.word),
            self.o.payload.beats_minus_one.eq(Mux(last, todo.count, space) - 1),
            self.i.ready.eq(self.o.ready & last),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += self.left.eq(~last)
            m.d.sync += self.rest.word.eq(todo.word + space)
            m.d.sync += self.rest.count.eq(todo.count - space)
        return m
