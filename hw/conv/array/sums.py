"""Accumulators of one unit of a slave."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..params import FOLDS

__all__ = ["Sums"]


class Sums(wiring.Component):
    """16 accumulators for each channel of each bank: one bank fills while others are finished, or read.

    They lie in memories that are read combinationally, so that a channel may come in every cycle. An accumulator of 32
    bits wraps; with ``maximum`` the larger one of both numbers stays.

    Latency: an addition is in memory in the next cycle. Throughput: one a cycle; nothing stalls it.

    Parameters
    ----------
    lanes : int
        The first so many accumulators can keep a maximum.
    bits : int
        Of the numbers of which a maximum is kept, signed.
    floats : bool
        There are sums of floats too, which are made elsewhere: those of a place in ``before`` are their beginning.
    apart : bool
        Each accumulator is read by itself, or not, out of a copy in block memory. What is being written is not read.
    depth : int
        Channels of all banks.

    Members
    -------
    i : In(array of 16 signed(32))
    valid : In(1)
    first : In(1)
        Accumulators begin with ``i``.
    maximum : In(1)
    address : In(range(depth))
        Channel, then bank.
    read : In(range(depth))
        Channel, then bank.
    on : In(16) if apart
        Accumulators that are read; the others are 0 in ``o``.
    o : Out(array of 16 32)
        Combinational from ``read``; if ``apart`` in the next cycle.
    floats : In(1) if floats
        Sums of floats are under way, instead of others.
    begun : In(range(depth)) if floats
        Channel, then bank, of accumulators that are to be added to.
    before : Out(array of 16 32) if floats
        Combinational from ``begun``.
    ended : In(range(depth)) if floats
        Channel, then bank, of accumulators that are replaced where ``valid``.
    sums : In(array of 16 32) if floats
        By these.
    """

    def __init__(self, lanes, bits, *, floats=False, apart=False, depth=16):
        self._lanes, self._bits, self._floats, self._apart, self._depth = lanes, bits, floats, apart, depth
        numbers, address = data.ArrayLayout(32, FOLDS), range(depth)
        more = {
            "floats": In(1),
            "begun": In(address),
            "before": Out(numbers),
            "ended": In(address),
            "sums": In(numbers),
        }
        super().__init__(
            (more if floats else {})
            | ({"on": In(FOLDS)} if apart else {})
            | {
                "i": In(data.ArrayLayout(signed(32), FOLDS)),
                "valid": In(1),
                "first": In(1),
                "maximum": In(1),
                "address": In(address),
                "read": In(address),
                "o": Out(data.ArrayLayout(32, FOLDS)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=FOLDS * 32, depth=self._depth, init=[])
        write, old = memory.write_port(granularity=32), memory.read_port(domain="comb")
        m.d.comb += [old.addr.eq(self.address), write.addr.eq(self.address)]
        if self._apart:
            self._read_apart(m, write)
        else:
            read = memory.read_port(domain="comb")
            m.d.comb += [read.addr.eq(self.read), self.o.eq(read.data)]
        # What is written is a sum, or the number that came; of maxima only where that is the larger one.
        added = ~(self.first | self.maximum)
        for place in range(FOLDS):
            term, before = self.i[place], old.data.word_select(place, 32).as_signed()
            m.d.comb += [
                write.en[place].eq(self.valid),
                write.data.word_select(place, 32).eq(term + (before & added.replicate(32))),
            ]
            if place < self._lanes:
                # The sign of a difference: a comparison would have tables in front of its carries.
                difference = before[: self._bits].as_signed() - term[: self._bits].as_signed()
                m.d.comb += write.en[place].eq(self.valid & (~self.maximum | self.first | difference[-1]))
        if self._floats:
            m.d.comb += self.before.eq(old.data)
            with m.If(self.floats):
                m.d.comb += [old.addr.eq(self.begun), write.addr.eq(self.ended), write.data.eq(self.sums)]
        return m

    def _read_apart(self, m, write):
        """Copies that are read: their registers stand here, so that tools see that none is read while it is written."""
        written = Signal()
        m.d.comb += written.eq(self.valid & (write.addr == self.read))
        for place, result in enumerate(self.o):
            m.submodules[f"copy{place}"] = copy = Memory(
                shape=32, depth=self._depth, init=[], attrs={"ram_style": "block"}
            )
            into, read = copy.write_port(), copy.read_port(domain="comb")
            m.d.comb += [
                into.addr.eq(write.addr),
                into.data.eq(write.data.word_select(place, 32)),
                into.en.eq(write.en[place]),
                read.addr.eq(self.read),
            ]
            with m.If(~written):
                m.d.sync += result.eq(read.data)
            with m.If(~self.on[place]):
                m.d.sync += result.eq(0)
