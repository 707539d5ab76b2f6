"""AXI4: signatures, encodings, and a multiplexer of read channels. Signal names are those of the AMBA specification."""

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
    "drive_request",
    "forward_channels",
    "is_error",
]

#: ARCACHE, AWCACHE: an interconnect may merge and split, but neither cache nor answer writes before they are performed,
#: so that a read after the answer finds the new bytes.
MODIFIABLE = 0b0010

#: ARPROT, AWPROT.
UNPRIVILEGED_NON_SECURE = 0b010


class Burst(enum.Enum, shape=2):
    """ARBURST, AWBURST: how the address changes from beat to beat."""

    FIXED = 0  #: it does not change
    INCR = 1  #: it grows by the size of a beat
    WRAP = 2  #: it grows and wraps at the size of the burst


class Response(enum.Enum, shape=2):
    """RRESP, BRESP: the outcome of a beat or a burst. Bit 1 says that it failed."""

    OKAY = 0
    EXOKAY = 1  #: answer to an exclusive access
    SLVERR = 2  #: the subordinate refused
    DECERR = 3  #: no subordinate has this address


def is_error(response):
    """Whether a ``Response`` is SLVERR or DECERR."""
    return response.as_value()[1]


class Axi4Signature(Port):
    """All five channels of an AXI4 port, as seen by the manager.

    Valid and the signals that belong to it hold until ready. Requests of one ID are answered in order, requests of
    different IDs in any order.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address, 12 to 64.
    data_width : int
        Bits of a beat: 32, 64, 128, 256, 512 or 1024.
    id_width : int
        Bits of an ID, at least 1.
    """

    _reads = _writes = True

    def __init__(self, addr_width, data_width, id_width):
        if not isinstance(addr_width, int) or not 12 <= addr_width <= 64:
            raise ValueError(f"addr_width must be an int from 12 to 64, not {addr_width!r}")
        if data_width not in (32, 64, 128, 256, 512, 1024):
            raise ValueError(f"data_width must be 32, 64, 128, 256, 512 or 1024, not {data_width!r}")
        if not isinstance(id_width, int) or id_width < 1:
            raise ValueError(f"id_width must be an int of at least 1, not {id_width!r}")
        self.addr_width, self.data_width, self.id_width = addr_width, data_width, id_width
        reads = {
            **self._address_channel("ar"),
            "rid": In(id_width),  # ID of the request that this beat answers
            "rdata": In(data_width),
            "rresp": In(Response),
            "rlast": In(1),  # the last beat of its burst
            "rvalid": In(1),
            "rready": Out(1),
        }
        writes = {
            **self._address_channel("aw"),
            "wdata": Out(data_width),  # beats in the order of the requests, before or after their request
            "wstrb": Out(data_width // 8),  # the bytes of the beat that are written
            "wlast": Out(1),  # the last beat of its burst
            "wvalid": Out(1),
            "wready": In(1),
            "bid": In(id_width),  # ID of the request that this answers
            "bresp": In(Response),
            "bvalid": In(1),
            "bready": Out(1),
        }
        super().__init__((reads if self._reads else {}) | (writes if self._writes else {}))

    def _address_channel(self, name):
        return {
            f"{name}id": Out(self.id_width),
            f"{name}addr": Out(self.addr_width),  # byte address of the first beat
            f"{name}len": Out(unsigned(8)),  # beats of the burst minus one
            f"{name}size": Out(unsigned(3)),  # log2 of the bytes of a beat
            f"{name}burst": Out(Burst),
            f"{name}prot": Out(unsigned(3)),  # bit 0 privileged, bit 1 non-secure, bit 2 instruction
            # Bit 0 bufferable, bit 1 modifiable, bit 2 read-allocate, bit 3 write-allocate.
            f"{name}cache": Out(unsigned(4)),
            f"{name}valid": Out(1),
            f"{name}ready": In(1),
        }

    def __repr__(self):
        return f"{type(self).__name__}({self.addr_width}, {self.data_width}, {self.id_width})"


class Axi4ReadSignature(Axi4Signature):
    """The read channels AR and R of an AXI4 port, as seen by the manager."""

    _writes = False


class Axi4WriteSignature(Axi4Signature):
    """The write channels AW, W and B of an AXI4 port, as seen by the manager."""

    _reads = False


def forward_channels(m, axi, port):
    """Connects the channels of ``port`` to ``axi``, which has these and perhaps more.

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
        If a member of ``port`` is not a member of ``axi`` with the same shape.
    """
    for name, member in port.signature.members.items():
        if axi.signature.members.get(name) != member:
            raise TypeError(f"{port.signature!r} does not fit {axi.signature!r}: {name} differs")
        source, sink = (port, axi) if member.flow == Out else (axi, port)
        m.d.comb += getattr(sink, name).eq(getattr(source, name))


def drive_request(m, axi, channel, request, *, address, beats_minus_one, ident):
    """Drives an address channel of INCR bursts of whole bus words.

    Parameters
    ----------
    m : Module
    axi : interface
    channel : str
        ``"ar"`` or ``"aw"``.
    request : stream
        Its handshake is the channel's.
    address, beats_minus_one, ident : Value
        Parts of its payload.
    """
    values = {
        "id": ident,
        "addr": address,
        "len": beats_minus_one,
        "size": (axi.signature.data_width // 8).bit_length() - 1,
        "burst": Burst.INCR,
        "prot": UNPRIVILEGED_NON_SECURE,
        "cache": MODIFIABLE,
        "valid": request.valid,
    }
    m.d.comb += [getattr(axi, channel + name).eq(value) for name, value in values.items()]
    m.d.comb += request.ready.eq(getattr(axi, f"{channel}ready"))


class Axi4ReadMux(wiring.Component):
    """Two managers that read over one port: their requests take turns, and beats are routed by ID.

    Combinational in both directions. A request that waits at ``axi`` stays there.

    Parameters
    ----------
    addr_width, data_width : int
        Bits of ARADDR and RDATA.
    """

    def __init__(self, addr_width, data_width):
        self.arbiter = RoundRobinArbiter(2)
        super().__init__(
            {
                "movers": In(Axi4ReadSignature(addr_width, data_width, 1)),  # IDs 0 and 1
                "reducer": In(Axi4ReadSignature(addr_width, data_width, 2)),  # ARID must be 2
                "axi": Out(Axi4ReadSignature(addr_width, data_width, 2)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        axi, movers, reducer = self.axi, self.movers, self.reducer
        m.d.comb += [arbiter.advance.eq(axi.arready), axi.arvalid.eq(arbiter.requests.any())]
        for number, manager in enumerate((movers, reducer)):
            m.d.comb += [
                arbiter.requests[number].eq(manager.arvalid),
                manager.arready.eq(axi.arready & arbiter.grant[number]),
                manager.rvalid.eq(axi.rvalid & (axi.rid[1] == number)),
                manager.rid.eq(axi.rid),
                *(getattr(manager, name).eq(getattr(axi, name)) for name in ("rdata", "rresp", "rlast")),
            ]
        for name in ("arid", "araddr", "arlen", "arsize", "arburst", "arprot", "arcache"):
            m.d.comb += getattr(axi, name).eq(Mux(arbiter.grant[1], getattr(reducer, name), getattr(movers, name)))
        # Without RVALID neither manager is chosen, because an idle RID means nothing, and is X before the first beat.
        m.d.comb += axi.rready.eq((reducer.rvalid & reducer.rready) | (movers.rvalid & movers.rready))
        return m
