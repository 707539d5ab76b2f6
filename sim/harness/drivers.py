"""Managers for test benches: each turns one item of a script into a transaction and reports its answer."""

from amaranth import unsigned
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.bus.axi4_lite import AccessLayout, Axi4LiteSignature
from tilewright.hw.smem.layouts import BarrierRequestLayout, BarrierResultLayout

__all__ = ["BarrierDriver", "BarrierItemLayout", "RegisterAnswerLayout", "RegisterDriver"]


class BarrierItemLayout(data.StructLayout):
    """A barrier operation of a script."""

    def __init__(self, params, cores=1):
        super().__init__({"request": BarrierRequestLayout(params, cores), "retry": unsigned(1)})  # until done or error


class BarrierDriver(wiring.Component):
    """Does barrier operations one after the other; repeats those marked ``retry`` until they are done or refused.

    Members
    -------
    i : In(stream of BarrierItemLayout(params, cores))
        Accepted when the final answer comes.
    requests : Out(stream of BarrierRequestLayout(params, cores))
    results : In(stream of BarrierResultLayout)
        The barrier port, seen from the processor.
    answer_valid : Out(1)
        High for one cycle with the final answer of each item.
    answer : Out(BarrierResultLayout)
    """

    def __init__(self, params, cores=1):
        super().__init__(
            {
                "i": In(stream.Signature(BarrierItemLayout(params, cores))),
                "requests": Out(stream.Signature(BarrierRequestLayout(params, cores))),
                "results": In(stream.Signature(BarrierResultLayout())),
                "answer_valid": Out(1),
                "answer": Out(BarrierResultLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        waiting = Signal()
        final = ~self.i.payload.retry | self.results.payload.done | self.results.payload.error
        m.d.comb += [
            self.requests.payload.eq(self.i.payload.request),
            self.requests.valid.eq(self.i.valid & ~waiting),
            self.results.ready.eq(waiting),
            self.answer.eq(self.results.payload),
            self.answer_valid.eq(waiting & self.results.valid & final),
            self.i.ready.eq(self.answer_valid),
        ]
        with m.If(self.requests.valid & self.requests.ready):
            m.d.sync += waiting.eq(1)
        with m.If(waiting & self.results.valid):
            m.d.sync += waiting.eq(0)
        return m


class RegisterAnswerLayout(data.StructLayout):
    """What came back from a register access."""

    def __init__(self):
        super().__init__({"data": unsigned(32), "response": unsigned(2)})  # BRESP or RRESP


class RegisterDriver(wiring.Component):
    """Does AXI4-Lite accesses one after the other; address and data of a write are offered together.

    Members
    -------
    i : In(stream of AccessLayout)
        Accepted when the answer comes.
    axi : Out(Axi4LiteSignature)
    answer_valid : Out(1)
        High for one cycle with the answer of each access.
    answer : Out(RegisterAnswerLayout)
    """

    def __init__(self, addr_width):
        super().__init__(
            {
                "i": In(stream.Signature(AccessLayout())),
                "axi": Out(Axi4LiteSignature(addr_width)),
                "answer_valid": Out(1),
                "answer": Out(RegisterAnswerLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        axi, access = self.axi, self.i.payload
        for channel, wanted in (("aw", access.write), ("w", access.write), ("ar", ~access.write)):
            valid, ready = getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}ready")
            taken = Signal(name=f"{channel}_taken")
            m.d.comb += valid.eq(self.i.valid & wanted & ~taken)
            with m.If(self.i.ready):
                m.d.sync += taken.eq(0)
            with m.Elif(valid & ready):
                m.d.sync += taken.eq(1)
        m.d.comb += [
            axi.awaddr.eq(access.address),
            axi.araddr.eq(access.address),
            axi.wdata.eq(access.data),
            axi.wstrb.eq(access.strobe),
            axi.bready.eq(1),
            axi.rready.eq(1),
            self.answer.data.eq(axi.rdata),
            self.answer_valid.eq(axi.bvalid | axi.rvalid),
            self.i.ready.eq(self.answer_valid),
        ]
        with m.If(axi.bvalid):
            m.d.comb += self.answer.response.eq(axi.bresp)
        with m.Else():
            m.d.comb += self.answer.response.eq(axi.rresp)
        return m
