"""Accumulators of one unit of a slave."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.conv.params import CHANNELS_AT_ONCE

from .unit import FOLDS

__all__ = ["Sums"]


class Sums(wiring.Component):
    """16 accumulators for each of four channels, twice: one bank fills while the other one is read.

    They lie in memories that are read combinationally, so that a channel may come in every cycle. An accumulator of 32
    bits wraps; with ``maximum`` the larger one of both numbers stays.

    Latency: an addition is in memory in the next cycle. Throughput: one a cycle; nothing stalls it.

    Parameters
    ----------
    lanes : int
        The first so many accumulators can keep a maximum.
    bits : int
        Of the numbers of which a maximum is kept, signed.

    Members
    -------
    i : In(array of 16 signed(32))
    valid : In(1)
    first : In(1)
        Accumulators begin with ``i``.
    maximum : In(1)
    address : In(3)
        Channel, then bank.
    read : In(3)
        Channel, then bank.
    o : Out(array of 16 32)
        Combinational from ``read``.
    """

    def __init__(self, lanes, bits):
        self._lanes, self._bits = lanes, bits
        super().__init__(
            {
                "i": In(data.ArrayLayout(signed(32), FOLDS)),
                "valid": In(1),
                "first": In(1),
                "maximum": In(1),
                "address": In(range(2 * CHANNELS_AT_ONCE)),
                "read": In(range(2 * CHANNELS_AT_ONCE)),
                "o": Out(data.ArrayLayout(32, FOLDS)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=FOLDS * 32, depth=2 * CHANNELS_AT_ONCE, init=[])
        write, old = memory.write_port(), memory.read_port(domain="comb")
        read = memory.read_port(domain="comb")
        m.d.comb += [
            old.addr.eq(self.address),
            write.addr.eq(self.address),
            write.en.eq(self.valid),
            read.addr.eq(self.read),
            self.o.eq(read.data),
        ]
        # Whatever is kept is a sum, where one of both is left out: so there is one adder, and no choice behind it.
        for place in range(FOLDS):
            term, before = self.i[place], old.data.word_select(place, 32).as_signed()
            with_term, with_before = Signal(name=f"with_term{place}"), Signal(name=f"with_before{place}")
            m.d.comb += [with_term.eq(1), with_before.eq(~self.first)]
            if place < self._lanes:
                larger = term[: self._bits].as_signed() > before[: self._bits].as_signed()
                with m.If(self.maximum):
                    m.d.comb += [with_term.eq(self.first | larger), with_before.eq(~(self.first | larger))]
            m.d.comb += write.data.word_select(place, 32).eq(
                (term & with_term.replicate(32)) + (before & with_before.replicate(32))
            )
        return m
