"""Two managers that read over one port."""

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..lib.arbiter import RoundRobinArbiter
from .axi4 import Axi4ReadSignature

__all__ = ["Axi4ReadMux"]

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
