"""Barrier gate: lets other cores arrive at the barriers of a core that it has opened."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec import BarrierOp

from ...lib.arbiter import StreamArbiter
from ...lib.join import join
from ...lib.share import StreamShare
from ...lib.stream import SkidBuffer
from ...smem.layouts import AcceptanceLayout, BarrierRequestLayout, BarrierResultLayout
from .layouts import ArrivalAnswerLayout, ArrivalLayout, CallLayout

__all__ = ["BarrierGate"]


class BarrierGate(wiring.Component):
    """Own operations and, one at a time, calls of other cores, in turns, to the barriers.

    A call goes through if the core accepts its sender, its shared window holds the barrier, and there may be one at
    that address; otherwise it is answered as closed. Who does not take the results of own operations holds up calls.

    Latency: a call one cycle to the operation and one from its result; own operations one each way. ``ready`` of what
    comes in depends on registers and on the ``valid`` of others.

    Specification: docs/cluster.md, "Remote arrival".

    Parameters
    ----------
    params : SmemParams
    cores : int

    Members
    -------
    own : In(stream of BarrierRequestLayout(params))
    own_results : Out(stream of BarrierResultLayout())
    calls : In(array of cores stream of CallLayout(params))
        From each core, which has one at a time.
    answers : Out(array of cores ArrivalAnswerLayout())
        To each core. Registered; all zeros in other cycles.
    acceptance : In(AcceptanceLayout)
    barriers : Out(stream of BarrierRequestLayout(params))
        Registered.
    results : In(stream of BarrierResultLayout())
        ``ready`` is a register.
    """

    def __init__(self, params, cores):
        self._params, self._cores = params, cores
        self.buffer = SkidBuffer(ArrivalLayout(params, cores))
        self.requests, self.answered = SkidBuffer(BarrierRequestLayout(params)), SkidBuffer(BarrierResultLayout())
        super().__init__(
            {
                "own": In(stream.Signature(BarrierRequestLayout(params))),
                "own_results": Out(stream.Signature(BarrierResultLayout())),
                "calls": In(stream.Signature(CallLayout(params))).array(cores),
                "answers": Out(ArrivalAnswerLayout()).array(cores),
                "acceptance": In(AcceptanceLayout(params, cores)),
                "barriers": Out(stream.Signature(BarrierRequestLayout(params))),
                "results": In(stream.Signature(BarrierResultLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = StreamArbiter(CallLayout(self._params), self._cores)
        m.submodules.share = share = StreamShare(BarrierRequestLayout(self._params), BarrierResultLayout(), 2)
        m.submodules.buffer = buffer = self.buffer
        m.submodules.requests, m.submodules.answered = self.requests, self.answered
        for number, port in enumerate(self.calls):
            join(m, calls=flipped(port), arbiter=arbiter.i[number])
        join(m, own=flipped(self.own), share=share.requests[0])
        join(m, share=share.results[0], own=flipped(self.own_results))
        join(m, share=share.merged, requests=self.requests.i)
        join(m, requests=self.requests.o, barriers=flipped(self.barriers))
        join(m, results=flipped(self.results), answered=self.answered.i)
        join(m, answered=self.answered.o, share=share.answers)

        call, acceptance = buffer.o.p.call, self.acceptance
        asked, open_, over = Signal(), Signal(), Signal()  # the barrier has been asked; it may be; the call ends
        row, asks, result = call.address[7:], share.requests[1], share.results[1]
        inside = ~acceptance.confine | ((acceptance.first <= row) & (row <= acceptance.last))
        m.d.comb += [
            buffer.i.valid.eq(arbiter.o.valid),
            buffer.i.p.call.eq(arbiter.o.p),
            buffer.i.p.sender.eq(arbiter.winner),
            arbiter.o.ready.eq(buffer.i.ready),
            open_.eq((acceptance.cores & buffer.o.p.sender).any() & inside & ~call.address[:3].any()),
            asks.valid.eq(buffer.o.valid & open_ & ~asked),
            asks.p.op.eq(BarrierOp.ARRIVE),
            asks.p.address.eq(call.address),
            asks.p.value.eq(call.value),
            result.ready.eq(1),
            over.eq(buffer.o.valid & (~open_ | result.valid)),
            buffer.o.ready.eq(over),
        ]
        m.d.sync += asked.eq((asked | (asks.valid & asks.ready)) & ~over)
        for number, answer in enumerate(self.answers):
            ends = over & buffer.o.p.sender[number]
            m.d.sync += [
                answer.valid.eq(ends),
                answer.done.eq(ends & open_ & result.p.done),
                answer.error.eq(ends & (~open_ | result.p.error)),
                answer.closed.eq(ends & ~open_),
            ]
        return m
