"""Remote caller: the barrier port of a core, some of whose operations are for barriers of other cores."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec import BarrierOp
from tilewright.golden.spec.cluster.delivery import MOST_CORES

from ...lib.join import join
from ...lib.stream import SkidBuffer
from ...smem.layouts import BarrierRequestLayout, BarrierResultLayout
from ...smem.signatures import BarrierEventSignature
from .layouts import ArrivalAnswerLayout, CallLayout

__all__ = ["RemoteCaller"]

_MOST = 7  # operations on own barriers without a result


class RemoteCaller(wiring.Component):
    """Hands operations on to the core's own barriers, or as calls to another core; results come in order.

    Calls go one at a time, and wait until own operations have their results, as own ones wait for a call. What no core
    may ask of another one, and what the other one did not let through, is refused here, and ``refused`` says so.

    Latency: one cycle from a request to the operation. ``requests.ready`` is a register.

    Specification: docs/cluster.md, "Remote arrival".

    Parameters
    ----------
    params : SmemParams
    cores : int
    own : int
        Number of the core.

    Members
    -------
    requests : In(stream of BarrierRequestLayout(params, cores))
    results : Out(stream of BarrierResultLayout())
    reach : In(cores)
        Mask of the cores that this one may name.
    barriers : Out(stream of BarrierRequestLayout(params))
        Operations on own barriers.
    barrier_results : In(stream of BarrierResultLayout())
        One for each, in order.
    calls : Out(array of cores stream of CallLayout(params))
        To each core; that to itself is not used.
    answer : In(ArrivalAnswerLayout())
        To the call.
    refused : Out(BarrierEventSignature(params))
        Stays until it is recorded.
    recorded : In(1)
        ``refused`` is recorded in this cycle; means nothing without one.
    """

    def __init__(self, params, cores, own):
        self._params, self._cores, self._own = params, cores, own
        self.buffer = SkidBuffer(BarrierRequestLayout(params, cores))
        super().__init__(
            {
                "requests": In(stream.Signature(BarrierRequestLayout(params, cores))),
                "results": Out(stream.Signature(BarrierResultLayout())),
                "reach": In(cores),
                "barriers": Out(stream.Signature(BarrierRequestLayout(params))),
                "barrier_results": In(stream.Signature(BarrierResultLayout())),
                "calls": Out(stream.Signature(CallLayout(params))).array(cores),
                "answer": In(ArrivalAnswerLayout()),
                "refused": Out(BarrierEventSignature(params)),
                "recorded": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = self.buffer
        join(m, requests=flipped(self.requests), buffer=buffer.i)
        head, request, refused = buffer.o.valid, buffer.o.p, self.refused
        waiting = Signal(range(_MOST + 1))  # own operations without a result
        called, answered = Signal(), Signal()  # a call is under way; its result is there
        result, foreign, allowed, refuses, calls = Signal(BarrierResultLayout()), *(Signal() for _ in range(4))
        reach = Cat(self.reach, Const(0, MOST_CORES - self._cores))
        m.d.comb += [
            foreign.eq(request.remote & (request.core != self._own)),
            allowed.eq((request.op == BarrierOp.ARRIVE) & reach.bit_select(request.core, 1)),
            calls.eq(head & foreign & ~called & ~answered & (waiting == 0) & ~refused.valid),
            refuses.eq(calls & ~allowed),
            self.barriers.valid.eq(head & ~foreign & ~called & ~answered & (waiting != _MOST)),
            *(self.barriers.p[name].eq(request[name]) for name in ("op", "address", "value")),
        ]
        taken = refuses | (self.barriers.valid & self.barriers.ready)
        for number, port in enumerate(self.calls):
            m.d.comb += [
                port.valid.eq(calls & allowed & (request.core == number)),
                port.p.address.eq(request.address),
                port.p.value.eq(request.value),
            ]
            taken |= port.valid & port.ready
            with m.If(port.valid & port.ready):
                m.d.sync += called.eq(1)
        m.d.comb += buffer.o.ready.eq(taken)
        with m.If(calls):
            m.d.sync += refused.address.eq(request.address)

        ended = self.answer.valid | refuses
        with m.If(self.recorded):
            m.d.sync += refused.valid.eq(0)
        with m.If(ended):
            m.d.sync += [
                called.eq(0),
                answered.eq(1),
                result.done.eq(~refuses & self.answer.done),
                result.error.eq(refuses | self.answer.error),
                refused.valid.eq(refuses | self.answer.closed),
            ]
        with m.Elif(self.results.ready):
            m.d.sync += answered.eq(0)
        m.d.sync += waiting.eq(
            waiting
            + (self.barriers.valid & self.barriers.ready)
            - (self.barrier_results.valid & self.barrier_results.ready)
        )
        m.d.comb += [
            self.results.valid.eq(answered | self.barrier_results.valid),
            self.results.p.eq(Mux(answered, result, self.barrier_results.p)),
            self.barrier_results.ready.eq(~answered & self.results.ready),
        ]
        return m
