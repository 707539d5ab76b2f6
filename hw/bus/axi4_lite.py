"""AXI4-Lite: the signature, its accesses as one stream, and the address map that says where each of them goes."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.component import Port
from .axi4 import Response

__all__ = [
    "AccessLayout",
    "AccessSignature",
    "AccessSplit",
    "AnswerLayout",
    "Axi4LiteBridge",
    "Axi4LiteSignature",
    "Region",
    "address_map",
    "map_addr_width",
    "serve_accesses",
    "serve_registers",
]


@dataclass(frozen=True)
class Region:
    """A part of an address space.

    Attributes
    ----------
    bit : int or None
        Number of the address bit that selects it; None for the first one, which no bit selects.
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
    """The regions of a top by name, each above the previous ones and aligned to its size.

    The first one begins at 0. The others are selected by one bit each, the highest that is set.

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
    """

    def __init__(self, addr_width):
        if not isinstance(addr_width, int) or not 3 <= addr_width <= 32:
            raise ValueError(f"addr_width must be an int from 3 to 32, not {addr_width!r}")
        self.addr_width = addr_width
        super().__init__(
            {
                "awaddr": Out(addr_width),  # byte address; the two lowest bits are ignored
                "awprot": Out(3),  # ignored
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(32),
                "wstrb": Out(4),  # one bit a byte
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(Response),  # OKAY, or SLVERR if the access was refused
                "bvalid": In(1),
                "bready": Out(1),
                "araddr": Out(addr_width),  # byte address; the two lowest bits are ignored
                "arprot": Out(3),  # ignored
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(32),
                "rresp": In(Response),  # OKAY, or SLVERR if the access was refused
                "rvalid": In(1),
                "rready": Out(1),
            }
        )

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
    """The outcome of an access."""

    def __init__(self):
        super().__init__(
            {
                "data": unsigned(32),  # of a read
                "error": unsigned(1),  # refused: nothing was read or written
            }
        )


class AccessSignature(Port):
    """Accesses to registers, as their source sees them: one answer for each request, in order."""

    def __init__(self):
        requests, answers = stream.Signature(AccessLayout()), stream.Signature(AnswerLayout())
        super().__init__({"requests": Out(requests), "answers": In(answers)})


class Axi4LiteBridge(wiring.Component):
    """Turns an AXI4-Lite port into accesses, one at a time.

    A write is accepted when its address and its data are there; simultaneous reads and writes take turns. The request
    is offered one cycle later, from registers, and its answer is forwarded in its cycle. An error is answered with
    SLVERR.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    """

    def __init__(self, addr_width):
        self.waiting = Signal()  # for the answer to the request that was accepted
        super().__init__({"axi": In(Axi4LiteSignature(addr_width)), "accesses": Out(AccessSignature())})

    def elaborate(self, platform):
        m = Module()
        axi, requests, answers, waiting = self.axi, self.accesses.requests, self.accesses.answers, self.waiting
        access = requests.payload
        idle, accept_read, accept_write = Signal(), Signal(), Signal()
        m.d.comb += [
            idle.eq(~requests.valid & ~waiting),
            # After a write it is the turn of reads.
            accept_write.eq(idle & axi.awvalid & axi.wvalid & ~(axi.arvalid & access.write)),
            accept_read.eq(idle & axi.arvalid & ~accept_write),
            axi.awready.eq(accept_write),
            axi.wready.eq(accept_write),
            axi.arready.eq(accept_read),
        ]
        with m.If(accept_write | accept_read):
            m.d.sync += [
                requests.valid.eq(1),
                access.address.eq(Mux(accept_write, axi.awaddr, axi.araddr)),
                access.write.eq(accept_write),
                access.data.eq(axi.wdata),
                access.strobe.eq(axi.wstrb),
            ]
        with m.If(requests.valid & requests.ready):
            m.d.sync += [requests.valid.eq(0), waiting.eq(1)]

        response, answered = Signal(Response), Signal()
        m.d.comb += [
            response.eq(Mux(answers.payload.error, Response.SLVERR, Response.OKAY)),
            answered.eq(waiting & answers.valid),
            axi.bvalid.eq(answered & access.write),
            axi.bresp.eq(response),
            axi.rvalid.eq(answered & ~access.write),
            axi.rresp.eq(response),
            axi.rdata.eq(answers.payload.data),
            answers.ready.eq(waiting & Mux(access.write, axi.bready, axi.rready)),
        ]
        with m.If(answers.valid & answers.ready):
            m.d.sync += waiting.eq(0)
        return m


class AccessSplit(wiring.Component):
    """Sends each access to one of two targets by one bit of its address.

    Combinational. The source must wait for each answer before the next access, as :class:`Axi4LiteBridge` does.

    Parameters
    ----------
    bit : int
        Number of the address bit: 0 selects ``low``, 1 ``high``, which sees the address without it.
    """

    def __init__(self, bit):
        if not isinstance(bit, int) or not 2 <= bit < 32:
            raise ValueError(f"bit must be an int from 2 to 31, not {bit!r}")
        self._bit = bit
        access = AccessSignature()
        super().__init__({"accesses": In(access), "low": Out(access), "high": Out(access)})

    def elaborate(self, platform):
        m = Module()
        requests, answers, low, high = self.accesses.requests, self.accesses.answers, self.low, self.high
        select = requests.payload.address[self._bit]
        for number, target in enumerate((low, high)):
            m.d.comb += [
                target.requests.payload.eq(requests.payload),
                target.requests.payload.address[self._bit].eq(0),
                target.requests.valid.eq(requests.valid & (select == number)),
                target.answers.ready.eq(answers.ready),
            ]
        m.d.comb += [
            requests.ready.eq(Mux(select, high.requests.ready, low.requests.ready)),
            # Only the target of the access answers.
            answers.payload.eq(Mux(high.answers.valid, high.answers.payload, low.answers.payload)),
            answers.valid.eq(low.answers.valid | high.answers.valid),
        ]
        return m


def serve_registers(m, axi, regions, **targets):
    """Connects targets of accesses to an AXI4-Lite port.

    Parameters
    ----------
    m : Module
        Of a top.
    axi : interface
        The top's own port, of an :class:`Axi4LiteSignature`.
    regions, **targets
        See :func:`serve_accesses`.
    """
    m.submodules.bridge = bridge = Axi4LiteBridge(axi.signature.addr_width)
    connect(m, axi=flipped(axi), bridge=bridge.axi)
    serve_accesses(m, bridge.accesses, regions, **targets)


def serve_accesses(m, accesses, regions, **targets):
    """Sends each access to its target.

    Parameters
    ----------
    m : Module
    accesses : interface
        The source, an :class:`AccessSignature` of a block that waits for each answer before the next access.
    regions : dict of str to Region
        From :func:`address_map`.
    **targets : interface
        The target of each region, by its name.
    """
    first, *higher = regions
    for name in reversed(higher):
        bit = regions[name].bit
        m.submodules[f"split_{bit}"] = split = AccessSplit(bit)
        connect(m, accesses=accesses, split=split.accesses)
        connect(m, split=split.high, target=targets[name])
        accesses = split.low
    connect(m, accesses=accesses, target=targets[first])
