"""AXI4: signatures and encodings, no logic. Names are those of the AMBA specification in lower case."""

from amaranth.hdl import unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Axi4ReadSignature", "Burst", "Response"]


class Burst(enum.Enum, shape=2):
    """ARBURST: how the address goes on from beat to beat."""

    FIXED = 0  #: it stays
    INCR = 1  #: it grows by the size of a beat
    WRAP = 2  #: it grows and wraps at the size of the burst


class Response(enum.Enum, shape=2):
    """RRESP: what became of a beat. Bit 1 says that it failed."""

    OKAY = 0
    EXOKAY = 1  #: answer to an exclusive access
    SLVERR = 2  #: the subordinate refused
    DECERR = 3  #: nobody lives at this address


class Axi4ReadSignature(wiring.Signature):
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
        super().__init__(
            {
                "arid": Out(id_width),
                "araddr": Out(addr_width),
                "arlen": Out(unsigned(8)),
                "arsize": Out(unsigned(3)),
                "arburst": Out(Burst),
                "arprot": Out(unsigned(3)),
                "arcache": Out(unsigned(4)),
                "arvalid": Out(1),
                "arready": In(1),
                "rid": In(id_width),
                "rdata": In(data_width),
                "rresp": In(Response),
                "rlast": In(1),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )

    @property
    def addr_width(self):
        return self._addr_width

    @property
    def data_width(self):
        return self._data_width

    @property
    def id_width(self):
        return self._id_width

    def __eq__(self, other):
        return isinstance(other, Axi4ReadSignature) and self.members == other.members

    def __repr__(self):
        return f"Axi4ReadSignature({self.addr_width}, {self.data_width}, {self.id_width})"
