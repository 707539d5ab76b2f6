"""What a computer asks for over a serial line: bytes to accesses, and answers to bytes."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ..bus.axi4_lite import AccessSignature

__all__ = ["REPLY_FAILED", "REPLY_OKAY", "ByteHost", "Op"]

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

    Members
    -------
    i : In(stream of 8)
        Not taken while an access waits for its answer, or bytes wait to be sent.
    o : Out(stream of 8)
        From registers.
    accesses : Out(AccessSignature)
        Registered; the next one comes after the answer. All strobes of a write are set.
    failed : Out(1)
        Some access was answered with an error since the reset.
    """

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(unsigned(8))),
                "o": Out(stream.Signature(unsigned(8))),
                "accesses": Out(AccessSignature()),
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
                m.d.comb += [
                    self.o.valid.eq(1),
                    self.o.payload.eq(Mux(failed, REPLY_FAILED, REPLY_OKAY)),
                ]
                with m.If(self.o.ready):
                    m.next = "OPERATION"
        return m
