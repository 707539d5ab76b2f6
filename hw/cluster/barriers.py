"""Barrier operations between cores: a core arrives at barriers in the shared memories of others."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import BarrierOp
from tilewright.spec.cluster import MOST_CORES

from ..lib.routing import StreamArbiter, StreamShare
from ..lib.stream import SkidBuffer
from ..smem.layouts import AcceptanceLayout, BarrierRequestLayout, BarrierResultLayout
from ..smem.signatures import BarrierEventSignature

__all__ = ["ArrivalAnswerLayout", "ArrivalLayout", "BarrierGate", "BarrierNetwork", "CallLayout", "RemoteCaller"]


class CallLayout(data.StructLayout):
    """An arrival at a barrier of another core."""

    def __init__(self, params):
        request = BarrierRequestLayout(params)
        super().__init__({name: request[name].shape for name in ("address", "value")})


class ArrivalLayout(data.StructLayout):
    """A call that a core takes in."""

    def __init__(self, params, cores):
        super().__init__({"call": CallLayout(params), "sender": unsigned(cores)})  # sender: one-hot


class ArrivalAnswerLayout(data.StructLayout):
    """What became of a call."""

    def __init__(self):
        super().__init__(
            {
                "valid": unsigned(1),  # strobe
                "done": unsigned(1),  # the phase completed now
                "error": unsigned(1),  # it did not arrive
                "closed": unsigned(1),  # because the core did not accept it: that is not recorded yet
            }
        )


_MOST = 7  # operations on own barriers without a result


class RemoteCaller(wiring.Component):
    """Passes operations to the core's own barriers, or as calls to another core; results come in order.

    Calls go one at a time, and wait for the results of own operations; own operations wait for the answer of a call.
    Operations that no core may do on another one, and calls that the other core did not accept, are refused, and
    ``refused`` reports it.

    Latency: one cycle from a request to the operation. ``requests.ready`` is a register.

    Specification: docs/cluster.md, "Remote arrival".

    Parameters
    ----------
    params : SmemParams
    cores : int
    own : int
        Number of the core.
    """

    def __init__(self, params, cores, own):
        self._params, self._cores, self._own = params, cores, own
        self.buffer = SkidBuffer(BarrierRequestLayout(params, cores))
        super().__init__(
            {
                "requests": In(stream.Signature(BarrierRequestLayout(params, cores))),
                "results": Out(stream.Signature(BarrierResultLayout())),
                # Mask of the cores that this one may name.
                "reach": In(cores),
                # Operations on own barriers.
                "barriers": Out(stream.Signature(BarrierRequestLayout(params))),
                # One for each, in order.
                "barrier_results": In(stream.Signature(BarrierResultLayout())),
                # To each core; that to itself is not used.
                "calls": Out(stream.Signature(CallLayout(params))).array(cores),
                # To the call.
                "answer": In(ArrivalAnswerLayout()),
                # Stays until it is recorded.
                "refused": Out(BarrierEventSignature(params)),
                # ``refused`` is recorded in this cycle; means nothing without one.
                "recorded": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = self.buffer
        connect(m, requests=flipped(self.requests), buffer=buffer.i)
        head, request, refused = buffer.o.valid, buffer.o.payload, self.refused
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
            *(self.barriers.payload[name].eq(request[name]) for name in ("op", "address", "value")),
        ]
        taken = refuses | (self.barriers.valid & self.barriers.ready)
        for number, port in enumerate(self.calls):
            m.d.comb += [
                port.valid.eq(calls & allowed & (request.core == number)),
                port.payload.address.eq(request.address),
                port.payload.value.eq(request.value),
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
            self.results.payload.eq(Mux(answered, result, self.barrier_results.payload)),
            self.barrier_results.ready.eq(~answered & self.results.ready),
        ]
        return m


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
    """

    def __init__(self, params, cores):
        self._params, self._cores = params, cores
        self.buffer = SkidBuffer(ArrivalLayout(params, cores))
        self.requests, self.answered = SkidBuffer(BarrierRequestLayout(params)), SkidBuffer(BarrierResultLayout())
        super().__init__(
            {
                "own": In(stream.Signature(BarrierRequestLayout(params))),
                "own_results": Out(stream.Signature(BarrierResultLayout())),
                # From each core, which has one at a time.
                "calls": In(stream.Signature(CallLayout(params))).array(cores),
                # To each core. Registered; all zeros in other cycles.
                "answers": Out(ArrivalAnswerLayout()).array(cores),
                "acceptance": In(AcceptanceLayout(params, cores)),
                # Registered.
                "barriers": Out(stream.Signature(BarrierRequestLayout(params))),
                # ``ready`` is a register.
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
            connect(m, calls=flipped(port), arbiter=arbiter.i[number])
        connect(m, own=flipped(self.own), share=share.requests[0])
        connect(m, share=share.results[0], own=flipped(self.own_results))
        connect(m, share=share.merged, requests=self.requests.i)
        connect(m, requests=self.requests.o, barriers=flipped(self.barriers))
        connect(m, results=flipped(self.results), answered=self.answered.i)
        connect(m, answered=self.answered.o, share=share.answers)

        call, acceptance = buffer.o.payload.call, self.acceptance
        asked, open_, over = Signal(), Signal(), Signal()  # the barrier has been asked; it may be; the call ends
        row, asks, result = call.address[7:], share.requests[1], share.results[1]
        inside = ~acceptance.confine | ((acceptance.first <= row) & (row <= acceptance.last))
        m.d.comb += [
            buffer.i.valid.eq(arbiter.o.valid),
            buffer.i.payload.call.eq(arbiter.o.payload),
            buffer.i.payload.sender.eq(arbiter.winner),
            arbiter.o.ready.eq(buffer.i.ready),
            open_.eq((acceptance.cores & buffer.o.payload.sender).any() & inside & ~call.address[:3].any()),
            asks.valid.eq(buffer.o.valid & open_ & ~asked),
            asks.payload.op.eq(BarrierOp.ARRIVE),
            asks.payload.address.eq(call.address),
            asks.payload.value.eq(call.value),
            result.ready.eq(1),
            over.eq(buffer.o.valid & (~open_ | result.valid)),
            buffer.o.ready.eq(over),
        ]
        m.d.sync += asked.eq((asked | (asks.valid & asks.ready)) & ~over)
        for number, answer in enumerate(self.answers):
            ends = over & buffer.o.payload.sender[number]
            m.d.sync += [
                answer.valid.eq(ends),
                answer.done.eq(ends & open_ & result.payload.done),
                answer.error.eq(ends & (~open_ | result.payload.error)),
                answer.closed.eq(ends & ~open_),
            ]
        return m


class BarrierNetwork(wiring.Component):
    """Connects the barrier ports of all cores: operations go to the own core, arrivals also to other cores.

    Parameters
    ----------
    params : SmemParams
    cores : int
        2 to 16.
    """

    def __init__(self, params, cores):
        self._params, self._cores = params, cores
        super().__init__(
            {
                # Of the processors of each core.
                "requests": In(stream.Signature(BarrierRequestLayout(params, cores))).array(cores),
                # One for each, in order.
                "results": Out(stream.Signature(BarrierResultLayout())).array(cores),
                # To each core.
                "barriers": Out(stream.Signature(BarrierRequestLayout(params))).array(cores),
                "barrier_results": In(stream.Signature(BarrierResultLayout())).array(cores),
                # Of each core: whom it may name.
                "reach": In(cores).array(cores),
                "acceptance": In(AcceptanceLayout(params, cores)).array(cores),
                # For the error record of each core; stays until it is recorded.
                "refused": Out(BarrierEventSignature(params)).array(cores),
                "recorded": In(1).array(cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        callers = [RemoteCaller(self._params, self._cores, number) for number in range(self._cores)]
        gates = [BarrierGate(self._params, self._cores) for _ in range(self._cores)]
        for number, (caller, gate) in enumerate(zip(callers, gates, strict=True)):
            m.submodules[f"caller{number}"], m.submodules[f"gate{number}"] = caller, gate
            connect(m, requests=flipped(self.requests[number]), caller=caller.requests)
            connect(m, caller=caller.results, results=flipped(self.results[number]))
            connect(m, caller=caller.barriers, gate=gate.own)
            connect(m, gate=gate.own_results, caller=caller.barrier_results)
            connect(m, gate=gate.barriers, barriers=flipped(self.barriers[number]))
            connect(m, barrier_results=flipped(self.barrier_results[number]), gate=gate.results)
            connect(m, caller=caller.refused, refused=flipped(self.refused[number]))
            for owner, port in enumerate(caller.calls):
                connect(m, caller=port, gate=gates[owner].calls[number])
            m.d.comb += [
                caller.reach.eq(self.reach[number]),
                caller.recorded.eq(self.recorded[number]),
                gate.acceptance.eq(self.acceptance[number]),
                *(
                    caller.answer[name].eq(_any(other.answers[number][name] for other in gates))
                    for name, _ in ArrivalAnswerLayout()
                ),
            ]
        return m


def _any(values):
    """A core has one call at a time, so one answer."""
    found = 0
    for value in values:
        found |= value
    return found
