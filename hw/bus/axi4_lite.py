"""Where the parts of a top lie in the addresses of its AXI4-Lite port."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..lib.component import Port, join
from .axi4 import Response

__all__ = ["AccessLayout", "AccessSignature", "AccessSplit", "AnswerLayout", "Axi4LiteBridge", "Axi4LiteSignature",
           "Region", "address_map", "map_addr_width", "serve_accesses", "serve_registers"]  # fmt: skip


@dataclass(frozen=True)
class Region:
    """A part of an address space.

    Attributes
    ----------
    bit : int or None
        Number of the address bit that selects it; None for the one that begins at 0, which no bit selects.
    addr_width : int
        Bits of a byte address in it.
    """

    bit: int | None
    addr_width: int

    @property
    def base(self):
        """Its first byte address."""
        return 0 if self.bit is None else 1 << self.bit

    @property
    def size(self):
        """Its bytes."""
        return 1 << self.addr_width


def address_map(**addr_widths):
    """The regions of a top by name, each above those before it and aligned to its size.

    The first begins at 0. The others are selected by one bit each, the highest that is set.

    Parameters
    ----------
    **addr_widths : int
        Bits of a byte address in each region.

    Returns
    -------
    dict of str to Region
    """
    regions, used = {}, 0
    for name, width in addr_widths.items():
        bit = max(used, width) if regions else None
        regions[name] = Region(bit, width)
        used = width if bit is None else bit + 1
    return regions


def map_addr_width(regions):
    """Bits of a byte address that reaches all of ``regions``."""
    *_, last = regions.values()
    return last.addr_width if last.bit is None else last.bit + 1


class Axi4LiteSignature(Port):
    """An AXI4-Lite port with 32-bit data, as seen by the manager. Names are those of the specification in lower case.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address, 3 to 32.

    Members
    -------
    awaddr, araddr : Out(addr_width)
        Byte address; the two lowest bits are ignored.
    awprot, arprot : Out(3)
        Ignored.
    wdata : Out(32)
        What is to be written.
    wstrb : Out(4)
        One bit a byte of ``wdata``.
    awvalid, wvalid, arvalid : Out(1)
        Offered; it and what belongs to it hold until the subordinate's ready.
    awready, wready, arready : In(1)
        Taken.
    rdata : In(32)
        What was read.
    bresp, rresp : In(Response)
        OKAY, or SLVERR if the access was refused.
    bvalid, rvalid : In(1)
        Answers; they hold until the manager's ready.
    bready, rready : Out(1)
        The answer is taken.
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


class AccessSignature(Port):
    """Accesses to registers, as their source sees them.

    Members
    -------
    requests : Out(stream of AccessLayout)
    answers : In(stream of AnswerLayout)
    """

    def __init__(self):
        requests, answers = stream.Signature(AccessLayout()), stream.Signature(AnswerLayout())
        super().__init__({"requests": Out(requests), "answers": In(answers)})


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
    accesses : Out(AccessSignature)
        Requests are registered.
    """

    def __init__(self, addr_width):
        self.waiting = Signal()  # for the answer to the access that was accepted
        super().__init__({"axi": In(Axi4LiteSignature(addr_width)), "accesses": Out(AccessSignature())})

    def elaborate(self, platform):
        m = Module()
        axi, requests, answers = self.axi, self.accesses.requests, self.accesses.answers
        access = requests.payload
        waiting = self.waiting
        take_read, take_write = Signal(), Signal()
        write_offered = Signal()
        idle = Signal()
        m.d.comb += [
            idle.eq(~requests.valid & ~waiting),
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
                requests.valid.eq(1),
                access.write.eq(take_write),
                access.data.eq(axi.wdata),
                access.strobe.eq(axi.wstrb),
            ]
        with m.If(requests.valid & requests.ready):
            m.d.sync += [requests.valid.eq(0), waiting.eq(1)]

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

    Combinational. Of use only behind a block that waits for each answer before the next access, such as
    :class:`Axi4LiteBridge`.

    Parameters
    ----------
    bit : int
        Number of the address bit: 0 chooses the low target, 1 the high one.

    Members
    -------
    accesses : In(AccessSignature)
    low, high : Out(AccessSignature)
        Addresses with ``bit`` cleared: each target counts from zero.
    """

    def __init__(self, bit):
        if not isinstance(bit, int) or not 2 <= bit < 32:
            raise ValueError(f"bit must be an int from 2 to 31, not {bit!r}")
        self._bit = bit
        access = AccessSignature()
        super().__init__({"accesses": In(access), "low": Out(access), "high": Out(access)})

    def elaborate(self, platform):
        m = Module()
        requests, answers = self.accesses.requests, self.accesses.answers
        low, high = self.low, self.high
        for target in (low, high):
            m.d.comb += target.requests.payload.eq(requests.payload)
            m.d.comb += target.requests.payload.address[self._bit].eq(0)
        with m.If(requests.payload.address[self._bit]):
            m.d.comb += [high.requests.valid.eq(requests.valid), requests.ready.eq(high.requests.ready)]
        with m.Else():
            m.d.comb += [low.requests.valid.eq(requests.valid), requests.ready.eq(low.requests.ready)]

        # Only the target of the access answers.
        m.d.comb += [
            answers.payload.eq(Mux(high.answers.valid, high.answers.payload, low.answers.payload)),
            answers.valid.eq(low.answers.valid | high.answers.valid),
            low.answers.ready.eq(answers.ready),
            high.answers.ready.eq(answers.ready),
        ]
        return m


def serve_registers(m, axi, regions, **targets):
    """Puts targets of accesses behind an AXI4-Lite port.

    Parameters
    ----------
    m : Module
        Of a top.
    axi : interface
        The top's own port, of an :class:`Axi4LiteSignature`.
    regions, **targets
        As of :func:`serve_accesses`.
    """
    m.submodules.bridge = bridge = Axi4LiteBridge(axi.signature.addr_width)
    join(m, axi=flipped(axi), bridge=bridge.axi)
    serve_accesses(m, bridge.accesses, regions, **targets)


def serve_accesses(m, accesses, regions, **targets):
    """Sends each access to its target.

    Parameters
    ----------
    m : Module
    accesses : interface
        The source, an :class:`AccessSignature` of a block that waits for each answer before the next access.
    regions : dict of str to Region
        From :func:`~tilewright.hw.bus.axi4_lite.address_map`.
    **targets : interface
        What lies in each region, by its name.
    """
    first, *higher = regions
    for name in reversed(higher):
        bit = regions[name].bit
        m.submodules[f"split_{bit}"] = split = AccessSplit(bit)
        join(m, accesses=accesses, split=split.accesses)
        join(m, split=split.high, target=targets[name])
        accesses = split.low
    join(m, accesses=accesses, target=targets[first])
