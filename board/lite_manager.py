"""The other end of an AXI4-Lite port: accesses to registers that lie behind one."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.bus.axi4_lite import AccessSignature, Axi4LiteSignature

__all__ = ["Axi4LiteManager"]


class Axi4LiteManager(wiring.Component):
    """Turns accesses into reads and writes of an AXI4-Lite port, one at a time.

    An access is accepted when the port has taken its address and its data, and answered in the cycle in which the port
    answers: no cycle is added.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address of the port; those of an access above them are dropped.
    """

    def __init__(self, addr_width):
        super().__init__({"accesses": In(AccessSignature()), "axi": Out(Axi4LiteSignature(addr_width))})

    def elaborate(self, platform):
        m = Module()
        requests, answers, axi = self.accesses.requests, self.accesses.answers, self.axi
        access = requests.payload
        waiting, wrote = Signal(), Signal()  # for an answer; of a write
        address_taken, data_taken = Signal(), Signal()  # of the write that is offered
        offered = requests.valid & ~waiting
        m.d.comb += [
            axi.awaddr.eq(access.address),
            axi.araddr.eq(access.address),
            axi.wdata.eq(access.data),
            axi.wstrb.eq(access.strobe),
            axi.arvalid.eq(offered & ~access.write),
            axi.awvalid.eq(offered & access.write & ~address_taken),
            axi.wvalid.eq(offered & access.write & ~data_taken),
            requests.ready.eq(
                ~waiting & Mux(access.write, (address_taken | axi.awready) & (data_taken | axi.wready), axi.arready)
            ),
            answers.valid.eq(waiting & Mux(wrote, axi.bvalid, axi.rvalid)),
            answers.payload.data.eq(axi.rdata),
            answers.payload.error.eq(Mux(wrote, axi.bresp, axi.rresp)[1]),
            axi.bready.eq(waiting & wrote & answers.ready),
            axi.rready.eq(waiting & ~wrote & answers.ready),
        ]
        m.d.sync += [
            address_taken.eq(address_taken | (axi.awvalid & axi.awready)),
            data_taken.eq(data_taken | (axi.wvalid & axi.wready)),
        ]
        with m.If(requests.valid & requests.ready):
            m.d.sync += [waiting.eq(1), wrote.eq(access.write), address_taken.eq(0), data_taken.eq(0)]
        with m.If(answers.valid & answers.ready):
            m.d.sync += waiting.eq(0)
        return m
