"""AXI4: signatures and encodings, no logic but wires. Names are those of the AMBA specification in lower case."""

from amaranth.hdl import Module, Mux, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from ..lib.component import Port
from ..lib.routing import RoundRobinArbiter

__all__ = [
    "MODIFIABLE",
    "UNPRIVILEGED_NON_SECURE",
    "Axi4ReadMux",
    "Axi4ReadSignature",
    "Axi4Signature",
    "Axi4WriteSignature",
    "Burst",
    "Response",
    "forward_channels",
]  # fmt: skip

#: ARCACHE, AWCACHE: an interconnect may merge and split, but neither keep nor answer writes before they are done, so
#: that a read after the answer finds the new bytes.
MODIFIABLE = 0b0010

#: ARPROT, AWPROT.
UNPRIVILEGED_NON_SECURE = 0b010


class Burst(enum.Enum, shape=2):
    """ARBURST, AWBURST: how the address goes on from beat to beat."""

    FIXED = 0  #: it stays
    INCR = 1  #: it grows by the size of a beat
    WRAP = 2  #: it grows and wraps at the size of the burst


class Response(enum.Enum, shape=2):
    """RRESP, BRESP: what became of a beat or a burst. Bit 1 says that it failed."""

    OKAY = 0
    EXOKAY = 1  #: answer to an exclusive access
    SLVERR = 2  #: the subordinate refused
    DECERR = 3  #: no subordinate has this address


class _Axi4Signature(Port):
    """What the signatures of AXI4 ports have in common: their parameters, and what makes two of them the same."""

    def __init__(self, addr_width, data_width, id_width):
        if not isinstance(addr_width, int) or not 12 <= addr_width <= 64:
            raise ValueError(f"addr_width must be an int from 12 to 64, not {addr_width!r}")
        if data_width not in (32, 64, 128, 256, 512, 1024):
            raise ValueError(f"data_width must be 32, 64, 128, 256, 512 or 1024, not {data_width!r}")
        if not isinstance(id_width, int) or id_width < 1:
            raise ValueError(f"id_width must be an int of at least 1, not {id_width!r}")
        self._addr_width = addr_width
        self._data_width = data_width
        self._id_width = id_width
        super().__init__(self._channels())

    def _read_channels(self):
        return {
            **self._address_channel("ar"),
            "rid": In(self.id_width),
            "rdata": In(self.data_width),
            "rresp": In(Response),
            "rlast": In(1),
            "rvalid": In(1),
            "rready": Out(1),
        }

    def _write_channels(self):
        return {
            **self._address_channel("aw"),
            "wdata": Out(self.data_width),
            "wstrb": Out(self.data_width // 8),
            "wlast": Out(1),
            "wvalid": Out(1),
            "wready": In(1),
            "bid": In(self.id_width),
            "bresp": In(Response),
            "bvalid": In(1),
            "bready": Out(1),
        }

    def _address_channel(self, name):
        return {
            f"{name}id": Out(self.id_width),
            f"{name}addr": Out(self.addr_width),
            f"{name}len": Out(unsigned(8)),
            f"{name}size": Out(unsigned(3)),
            f"{name}burst": Out(Burst),
            f"{name}prot": Out(unsigned(3)),
            f"{name}cache": Out(unsigned(4)),
            f"{name}valid": Out(1),
            f"{name}ready": In(1),
        }

    @property
    def addr_width(self):
        return self._addr_width

    @property
    def data_width(self):
        return self._data_width

    @property
    def id_width(self):
        return self._id_width

    def __repr__(self):
        return f"{type(self).__name__}({self.addr_width}, {self.data_width}, {self.id_width})"


class Axi4ReadSignature(_Axi4Signature):
    """The read channels AR and R of an AXI4 port, as seen by the manager.

    Parameters
    ----------
    addr_width : int
        Bits of ARADDR, 12 to 64.
    data_width : int
        Bits of RDATA: 32, 64, 128, 256, 512 or 1024.
    id_width : int
        Bits of ARID and RID, at least 1.

    Members
    -------
    arid : Out(id_width)
        Requests of one ID are answered in order, those of different IDs in any order.
    araddr : Out(addr_width)
        Byte address of the first beat.
    arlen : Out(8)
        Beats of the burst minus one.
    arsize : Out(3)
        Log2 of the bytes of a beat.
    arburst : Out(Burst)
        How the address goes on.
    arprot : Out(3)
        Bit 0 privileged, bit 1 non-secure, bit 2 instruction.
    arcache : Out(4)
        Bit 0 bufferable, bit 1 modifiable, bit 2 read-allocate, bit 3 write-allocate.
    arvalid : Out(1)
        A request is offered. It and the signals above hold until ``arready``.
    arready : In(1)
        The request is accepted.
    rid : In(id_width)
        ID of the request that this beat answers.
    rdata : In(data_width)
        The beat.
    rresp : In(Response)
        What became of it.
    rlast : In(1)
        The last beat of its burst.
    rvalid : In(1)
        A beat is offered. It and the signals above hold until ``rready``.
    rready : Out(1)
        The beat is accepted.
    """

    def _channels(self):
        return self._read_channels()


class Axi4WriteSignature(_Axi4Signature):
    """The write channels AW, W and B of an AXI4 port, as seen by the manager.

    Parameters
    ----------
    addr_width, data_width, id_width : int
        As of :class:`Axi4ReadSignature`.

    Members
    -------
    awid : Out(id_width)
        Bursts of one ID are answered in order, those of different IDs in any order.
    awaddr : Out(addr_width)
        Byte address of the first beat.
    awlen : Out(8)
        Beats of the burst minus one.
    awsize : Out(3)
        Log2 of the bytes of a beat.
    awburst : Out(Burst)
        How the address goes on.
    awprot : Out(3)
        Bit 0 privileged, bit 1 non-secure, bit 2 instruction.
    awcache : Out(4)
        Bit 0 bufferable, bit 1 modifiable, bit 2 read-allocate, bit 3 write-allocate.
    awvalid : Out(1)
        A burst is offered. It and the signals above hold until ``awready``.
    awready : In(1)
        The burst is accepted.
    wdata : Out(data_width)
        A beat. Bursts' beats follow each other in the order of their requests, whose acceptance they need not await.
    wstrb : Out(data_width // 8)
        The bytes of the beat that are written.
    wlast : Out(1)
        The last beat of its burst.
    wvalid : Out(1)
        A beat is offered. It and the signals above hold until ``wready``.
    wready : In(1)
        The beat is accepted.
    bid : In(id_width)
        ID of the request that this answers.
    bresp : In(Response)
        What became of the burst.
    bvalid : In(1)
        An answer is offered. It and the signals above hold until ``bready``.
    bready : Out(1)
        The answer is accepted.
    """

    def _channels(self):
        return self._write_channels()


class Axi4Signature(_Axi4Signature):
    """All five channels of an AXI4 port, as seen by the manager.

    Parameters
    ----------
    addr_width, data_width, id_width : int
        As of :class:`Axi4ReadSignature`.

    Members
    -------
    **Axi4ReadSignature(addr_width, data_width, id_width).members
    **Axi4WriteSignature(addr_width, data_width, id_width).members
    """

    def _channels(self):
        return self._read_channels() | self._write_channels()


def forward_channels(m, axi, port):
    """Sends the channels of ``port`` out at ``axi``, which has these and perhaps more.

    Parameters
    ----------
    m : Module
    axi : interface
        The component's own port, in the manager's direction.
    port : interface
        The port of a submodule, in the manager's direction: all channels, or the read or the write channels only.

    Raises
    ------
    TypeError
        If a member of ``port`` is not a member of ``axi``, with the same shape.
    """
    for name, member in port.signature.members.items():
        if axi.signature.members.get(name) != member:
            raise TypeError(f"{port.signature!r} does not fit {axi.signature!r}: {name} differs")
        source, sink = (port, axi) if member.flow == Out else (axi, port)
        m.d.comb += getattr(sink, name).eq(getattr(source, name))


_REQUEST = ("araddr", "arlen", "arsize", "arburst", "arprot", "arcache")


class Axi4ReadMux(wiring.Component):
    """Requests take turns; beats find their way by their ID.

    Combinational in both directions. A request that waits at ``axi`` stays.

    Parameters
    ----------
    addr_width, data_width : int
        Bits of ARADDR and RDATA.

    Members
    -------
    movers : In(Axi4ReadSignature(addr_width, data_width, 1))
        IDs 0 and 1.
    reducer : In(Axi4ReadSignature(addr_width, data_width, 2))
        Its ARID must be 2.
    axi : Out(Axi4ReadSignature(addr_width, data_width, 2))
    """

    def __init__(self, addr_width, data_width):
        self.arbiter = RoundRobinArbiter(2)
        super().__init__(
            {
                "movers": In(Axi4ReadSignature(addr_width, data_width, 1)),
                "reducer": In(Axi4ReadSignature(addr_width, data_width, 2)),
                "axi": Out(Axi4ReadSignature(addr_width, data_width, 2)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        axi, movers, reducer = self.axi, self.movers, self.reducer

        reduces = arbiter.grant[1]
        m.d.comb += [
            arbiter.requests[0].eq(movers.arvalid),
            arbiter.requests[1].eq(reducer.arvalid),
            arbiter.advance.eq(axi.arready),
            axi.arvalid.eq(arbiter.requests.any()),
            axi.arid.eq(Mux(reduces, reducer.arid, movers.arid)),
            movers.arready.eq(axi.arready & arbiter.grant[0]),
            reducer.arready.eq(axi.arready & arbiter.grant[1]),
        ]
        for name in _REQUEST:
            m.d.comb += getattr(axi, name).eq(Mux(reduces, getattr(reducer, name), getattr(movers, name)))

        for_reducer = axi.rid[1]
        m.d.comb += [
            movers.rvalid.eq(axi.rvalid & ~for_reducer),
            reducer.rvalid.eq(axi.rvalid & for_reducer),
            # An idle RID means nothing, and is X before the first beat: without RVALID neither manager is chosen.
            axi.rready.eq((reducer.rvalid & reducer.rready) | (movers.rvalid & movers.rready)),
        ]
        for manager in (movers, reducer):
            m.d.comb += manager.rid.eq(axi.rid)  # of the movers' one bit is left
            m.d.comb += [getattr(manager, name).eq(getattr(axi, name)) for name in ("rdata", "rresp", "rlast")]
        return m
