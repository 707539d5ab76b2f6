"""AXI4-Lite: the signature, and what turns it into one stream of accesses."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .axi4 import Response

__all__ = ["AccessLayout", "AccessSplit", "AnswerLayout", "Axi4LiteBridge", "Axi4LiteSignature"]


class Axi4LiteSignature(wiring.Signature):
    """An AXI4-Lite port with 32-bit data, as seen by the manager. Names are those of the specification in lower case.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address, 3 to 32.

    Members
    -------
    awaddr : Out(addr_width)
    awprot : Out(3)
    awvalid : Out(1)
        Address of a write; holds until ``awready``.
    wdata : Out(32)
    wstrb : Out(4)
    wvalid : Out(1)
        Word to write and a strobe for each of its bytes; holds until ``wready``.
    bresp : In(Response)
    bvalid : In(1)
        Answer to a write; holds until ``bready``.
    araddr : Out(addr_width)
    arprot : Out(3)
    arvalid : Out(1)
        Address of a read; holds until ``arready``.
    rdata : In(32)
    rresp : In(Response)
    rvalid : In(1)
        Answer to a read; holds until ``rready``.
    awready, wready, arready : In(1)
        Acceptance by the subordinate.
    bready, rready : Out(1)
        Acceptance by the manager.
    """

    def __init__(self, addr_width):
        if not isinstance(addr_width, int) or not 3 <= addr_width <= 32:
            raise ValueError(f"addr_width must be an int from 3 to 32, not {addr_width!r}")
        self._addr_width = addr_width
        super().__init__(
            {
                "awaddr": Out(addr_width),
                "awprot": Out(3),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(32),
                "wstrb": Out(4),
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(Response),
                "bvalid": In(1),
                "bready": Out(1),
                "araddr": Out(addr_width),
                "arprot": Out(3),
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(32),
                "rresp": In(Response),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )

    @property
    def addr_width(self):
        return self._addr_width

    def __eq__(self, other):
        return isinstance(other, Axi4LiteSignature) and self.members == other.members

    def __repr__(self):
        return f"Axi4LiteSignature({self.addr_width})"


class AccessLayout(data.StructLayout):
    """A read or write of one 32-bit word."""

    def __init__(self):
        super().__init__(
            {
                "address": unsigned(32),  # byte address; the two lowest bits are ignored
                "write": unsigned(1),
                "data": unsigned(32),  # of a write
                "strobe": unsigned(4),  # of a write, one bit a byte
            }
        )


class AnswerLayout(data.StructLayout):
    """What became of an access: one for each, in order."""

    def __init__(self):
        super().__init__(
            {
                "data": unsigned(32),  # of a read
                "error": unsigned(1),  # refused: nothing was read or written
            }
        )


class Axi4LiteBridge(wiring.Component):
    """Turns an AXI4-Lite port into accesses, one at a time.

    A write is taken when its address and its data are there; when reads and writes come together they take turns. An
    access is offered one cycle after it was taken, and its answer is passed on in the cycle in which it comes. An error
    is answered with SLVERR.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.

    Members
    -------
    axi : In(Axi4LiteSignature)
    accesses : Out(stream of AccessLayout)
        Registered.
    answers : In(stream of AnswerLayout)
    """

    def __init__(self, addr_width):
        self.waiting = Signal()  # for the answer to the access that was accepted
        super().__init__(
            {
                "axi": In(Axi4LiteSignature(addr_width)),
                "accesses": Out(stream.Signature(AccessLayout())),
                "answers": In(stream.Signature(AnswerLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        axi, access, answers = self.axi, self.accesses.payload, self.answers
        waiting = self.waiting
        take_read, take_write = Signal(), Signal()
        write_offered = Signal()
        idle = Signal()
        m.d.comb += [
            idle.eq(~self.accesses.valid & ~waiting),
            write_offered.eq(axi.awvalid & axi.wvalid),
            # After a write it is the turn of reads.
            take_write.eq(idle & write_offered & ~(axi.arvalid & access.write)),
            take_read.eq(idle & axi.arvalid & ~take_write),
            axi.awready.eq(take_write),
            axi.wready.eq(take_write),
            axi.arready.eq(take_read),
        ]
        with m.If(take_write):
            m.d.sync += access.address.eq(axi.awaddr)
        with m.If(take_read):
            m.d.sync += access.address.eq(axi.araddr)
        with m.If(take_write | take_read):
            m.d.sync += [
                self.accesses.valid.eq(1),
                access.write.eq(take_write),
                access.data.eq(axi.wdata),
                access.strobe.eq(axi.wstrb),
            ]
        with m.If(self.accesses.valid & self.accesses.ready):
            m.d.sync += [self.accesses.valid.eq(0), waiting.eq(1)]

        response = Signal(Response)
        with m.If(answers.payload.error):
            m.d.comb += response.eq(Response.SLVERR)
        answer_offered = Signal()
        m.d.comb += [
            answer_offered.eq(waiting & answers.valid),
            axi.bvalid.eq(answer_offered & access.write),
            axi.bresp.eq(response),
            axi.rvalid.eq(answer_offered & ~access.write),
            axi.rresp.eq(response),
            axi.rdata.eq(answers.payload.data),
            answers.ready.eq(waiting & ((access.write & axi.bready) | (~access.write & axi.rready))),
        ]
        with m.If(answers.valid & answers.ready):
            m.d.sync += waiting.eq(0)
        return m


class AccessSplit(wiring.Component):
    """Sends each access to one of two targets by one bit of its address.

    Combinational. Of use only behind somebody who waits for each answer before the next access, such as
    :class:`Axi4LiteBridge`.

    Parameters
    ----------
    bit : int
        Number of the address bit: 0 chooses the low target, 1 the high one.

    Members
    -------
    accesses : In(stream of AccessLayout)
    answers : Out(stream of AnswerLayout)
    low_accesses, high_accesses : Out(stream of AccessLayout)
        Addresses with ``bit`` cleared: each target counts from zero.
    low_answers, high_answers : In(stream of AnswerLayout)
    """

    def __init__(self, bit):
        if not isinstance(bit, int) or not 2 <= bit < 32:
            raise ValueError(f"bit must be an int from 2 to 31, not {bit!r}")
        self._bit = bit
        accesses, answers = stream.Signature(AccessLayout()), stream.Signature(AnswerLayout())
        super().__init__(
            {
                "accesses": In(accesses),
                "answers": Out(answers),
                "low_accesses": Out(accesses),
                "low_answers": In(answers),
                "high_accesses": Out(accesses),
                "high_answers": In(answers),
            }
        )

    def elaborate(self, platform):
        m = Module()
        high = self.accesses.payload.address[self._bit]
        for target in (self.low_accesses, self.high_accesses):
            m.d.comb += target.payload.eq(self.accesses.payload)
            m.d.comb += target.payload.address[self._bit].eq(0)
        with m.If(high):
            m.d.comb += self.high_accesses.valid.eq(self.accesses.valid)
            m.d.comb += self.accesses.ready.eq(self.high_accesses.ready)
        with m.Else():
            m.d.comb += self.low_accesses.valid.eq(self.accesses.valid)
            m.d.comb += self.accesses.ready.eq(self.low_accesses.ready)

        # Only the target that was asked answers.
        with m.If(self.high_answers.valid):
            m.d.comb += self.answers.payload.eq(self.high_answers.payload)
        with m.Else():
            m.d.comb += self.answers.payload.eq(self.low_answers.payload)
        m.d.comb += [
            self.answers.valid.eq(self.low_answers.valid | self.high_answers.valid),
            self.low_answers.ready.eq(self.answers.ready),
            self.high_answers.ready.eq(self.answers.ready),
        ]
        return m
