"""A serial line: bytes as a start bit, eight bits, lowest first, and a stop bit."""

from amaranth.hdl import Cat, Const, Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["UartReceiver", "UartTransmitter"]

_BITS = 10  # of a byte on the line


def _check(cycles_per_bit):
    if not isinstance(cycles_per_bit, int) or isinstance(cycles_per_bit, bool):
        raise TypeError(f"cycles_per_bit must be an int, not {cycles_per_bit!r}")
    if not 4 <= cycles_per_bit <= 1 << 16:
        raise ValueError(f"cycles_per_bit must be 4 to 65536, not {cycles_per_bit!r}")
    return cycles_per_bit


class UartTransmitter(wiring.Component):
    """Bytes to the line, one every ``10 * cycles_per_bit + 1`` cycles.

    Parameters
    ----------
    cycles_per_bit : int
        4 to 65536.

    Members
    -------
    i : In(stream of 8)
        ``ready`` is a register; a byte is taken as soon as the one before it is through.
    line : Out(1)
        Registered; high while there is nothing to send.
    """

    def __init__(self, cycles_per_bit):
        self._cycles_per_bit = _check(cycles_per_bit)
        super().__init__({"i": In(stream.Signature(unsigned(8))), "line": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        last = self._cycles_per_bit - 1
        cycle = Signal(range(self._cycles_per_bit))
        left = Signal(range(_BITS + 1))  # bits, that on the line included
        bits = Signal(_BITS - 1, init=-1)  # those behind it
        m.d.comb += self.i.ready.eq(left == 0)
        with m.If(left == 0):
            m.d.sync += cycle.eq(0)
            with m.If(self.i.valid):
                m.d.sync += [Cat(self.line, bits).eq(Cat(Const(0, 1), self.i.payload, Const(1, 1))), left.eq(_BITS)]
        with m.Else():
            m.d.sync += cycle.eq(cycle + 1)
            with m.If(cycle == last):
                m.d.sync += [cycle.eq(0), Cat(self.line, bits).eq(Cat(bits, Const(1, 1))), left.eq(left - 1)]
        return m


class UartReceiver(wiring.Component):
    """Bytes from the line, which need not be synchronous to the clock.

    A bit is looked at in its middle. A start bit that is gone by then, or a byte without a stop bit, is none.

    Parameters
    ----------
    cycles_per_bit : int
        4 to 65536.

    Members
    -------
    line : In(1)
    o : Out(stream of 8)
        Valid 3 cycles after the middle of the stop bit. A byte that is through while another waits is lost.
    """

    def __init__(self, cycles_per_bit):
        self._cycles_per_bit = _check(cycles_per_bit)
        super().__init__({"line": In(1, init=1), "o": Out(stream.Signature(unsigned(8)))})

    def elaborate(self, platform):
        m = Module()
        line = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.line, line, init=1)
        cycle = Signal(range(self._cycles_per_bit))
        left = Signal(range(_BITS + 1))  # bits that have not been looked at
        bits = Signal(8)
        start, look = Signal(), Signal()
        m.d.comb += [start.eq((left == 0) & ~line), look.eq((left != 0) & (cycle == 0))]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(start):
            m.d.sync += [left.eq(_BITS), cycle.eq(self._cycles_per_bit // 2 - 1)]
        with m.Elif(look):
            m.d.sync += [left.eq(left - 1), cycle.eq(self._cycles_per_bit - 1), bits.eq(Cat(bits[1:], line))]
            with m.If((left == _BITS) & line):
                m.d.sync += left.eq(0)
            with m.If((left == 1) & line & ~(self.o.valid & ~self.o.ready)):
                m.d.sync += [self.o.valid.eq(1), self.o.payload.eq(bits)]
        with m.Elif(left != 0):
            m.d.sync += cycle.eq(cycle - 1)
        return m
