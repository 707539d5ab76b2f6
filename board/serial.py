"""A serial line: bytes as a start bit, eight bits, lowest first, and a stop bit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import enum, stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from tilewright.hw.bus.axi4_lite import AccessSignature

__all__ = ["REPLY_FAILED", "REPLY_OKAY", "ByteHost", "Op", "UartReceiver", "UartTransmitter"]

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
    """

    def __init__(self, cycles_per_bit):
        self._cycles_per_bit = _check(cycles_per_bit)
        # Registered; high while there is nothing to send.
        # ``ready`` is a register; a byte is taken as soon as the one before it is through.
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
    """

    def __init__(self, cycles_per_bit):
        self._cycles_per_bit = _check(cycles_per_bit)
        # Valid 3 cycles after the middle of the stop bit. A byte that is through while another waits is lost.
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


#: Last byte of every reply: all accesses of the frame were answered, or one of them with an error.
REPLY_OKAY, REPLY_FAILED = b"KE"
_HEADER_BYTES, _WORD_BYTES = 6, 4


class Op(enum.Enum, shape=8):
    """First byte of a frame. Any other is skipped."""

    READ = ord("R")
    WRITE = ord("W")


class ByteHost(wiring.Component):
    """Frames of bytes to accesses, one at a time.

    A frame begins with six bytes: an operation of :class:`Op`, a byte address of four bytes, lowest first, and the
    number of 32-bit words, less one. Behind that of a write come the words, lowest byte first. The reply is the words
    of a read, then one byte, ``REPLY_OKAY`` or ``REPLY_FAILED``. Words lie at addresses that count by four.
    """

    def __init__(self):
        super().__init__(
            {
                # Not taken while an access waits for its answer, or bytes wait to be sent.
                "i": In(stream.Signature(unsigned(8))),
                # From registers.
                "o": Out(stream.Signature(unsigned(8))),
                # Registered; the next one comes after the answer. All strobes of a write are set.
                "accesses": Out(AccessSignature()),
                # Some access was answered with an error since the reset.
                "failed": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        requests, answers = self.accesses.requests, self.accesses.answers
        access = requests.payload
        place = Signal(3)  # of the byte that comes or goes next
        left = Signal(8)  # words behind the one in work
        word = Signal(32)
        failed = Signal()  # an access of this frame
        byte = self.i.payload
        m.d.comb += [access.data.eq(word), access.strobe.eq(0b1111), self.o.payload.eq(word[:8])]
        with m.FSM():
            with m.State("OPERATION"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [place.eq(0), failed.eq(0), access.write.eq(byte == Op.WRITE.value)]
                with m.If(self.i.valid & ((byte == Op.READ.value) | (byte == Op.WRITE.value))):
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    header = Cat(access.address, left)
                    m.d.sync += [header.eq(Cat(header[8:], byte)), place.eq(place + 1)]
                    with m.If(place == _HEADER_BYTES - 2):
                        m.d.sync += place.eq(0)
                        with m.If(access.write):
                            m.next = "WORD"
                        with m.Else():
                            m.next = "REQUEST"
            with m.State("WORD"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    m.d.sync += [word.eq(Cat(word[8:], byte)), place.eq(place + 1)]
                    with m.If(place == _WORD_BYTES - 1):
                        m.next = "REQUEST"
            with m.State("REQUEST"):
                m.d.comb += requests.valid.eq(1)
                with m.If(requests.ready):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += answers.ready.eq(1)
                m.d.sync += [word.eq(answers.payload.data), place.eq(0)]
                with m.If(answers.valid):
                    m.d.sync += access.address.eq(access.address + _WORD_BYTES)
                    with m.If(answers.payload.error):
                        m.d.sync += [failed.eq(1), self.failed.eq(1)]
                    with m.If(~access.write):
                        m.next = "SEND"
                    with m.Elif(left == 0):
                        m.next = "END"
                    with m.Else():
                        m.d.sync += left.eq(left - 1)
                        m.next = "WORD"
            with m.State("SEND"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += [word.eq(word >> 8), place.eq(place + 1)]
                    with m.If(place == _WORD_BYTES - 1):
                        with m.If(left == 0):
                            m.next = "END"
                        with m.Else():
                            m.d.sync += left.eq(left - 1)
                            m.next = "REQUEST"
            with m.State("END"):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(Mux(failed, REPLY_FAILED, REPLY_OKAY))]
                with m.If(self.o.ready):
                    m.next = "OPERATION"
        return m
