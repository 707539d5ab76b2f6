"""Several processors at one barrier port."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from ..lib.arbiter import StreamArbiter
from ..lib.stream import Queue
from .layouts import BarrierRequestLayout, BarrierResultLayout

__all__ = ["BarrierShare"]

#: Operations whose answers are under way: the barrier unit has at most two, and its answers may wait for their readers.
_IN_FLIGHT = 4


class BarrierShare(wiring.Component):
    """Merges barrier operations of ``n`` processors, round-robin, and gives each its own answers in order.

    Combinational in both directions: no latency of its own. An answer that its processor does not take holds up those
    behind it.

    Parameters
    ----------
    params : SmemParams
    n : int
        Processors, at least 2.

    Members
    -------
    requests : In(array of n stream of BarrierRequestLayout)
    results : Out(array of n stream of BarrierResultLayout)
    merged : Out(stream of BarrierRequestLayout)
        To the shared memory.
    answers : In(stream of BarrierResultLayout)
        From it, one for each, in order.
    """

    def __init__(self, params, n):
        self._params = params
        self._n = n
        super().__init__(
            {
                "requests": In(stream.Signature(BarrierRequestLayout(params))).array(n),
                "results": Out(stream.Signature(BarrierResultLayout())).array(n),
                "merged": Out(stream.Signature(BarrierRequestLayout(params))),
                "answers": In(stream.Signature(BarrierResultLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = StreamArbiter(BarrierRequestLayout(self._params), self._n)
        m.submodules.owners = owners = Queue(self._n, _IN_FLIGHT)
        for index in range(self._n):
            connect(m, requests=wiring.flipped(self.requests[index]), arbiter=arbiter.i[index])
            m.d.comb += self.results[index].payload.eq(self.answers.payload)
            m.d.comb += self.results[index].valid.eq(self.answers.valid & owners.o.valid & owners.o.payload[index])

        # Neither waits for the other's ready: the queue has room whenever the request may pass.
        taken = Signal()
        m.d.comb += [
            self.merged.payload.eq(arbiter.o.payload),
            self.merged.valid.eq(arbiter.o.valid & owners.i.ready),
            arbiter.o.ready.eq(self.merged.ready & owners.i.ready),
            owners.i.payload.eq(arbiter.winner),
            owners.i.valid.eq(self.merged.valid & self.merged.ready),
            taken.eq(sum((owners.o.payload[i] & self.results[i].ready for i in range(self._n)), 0) != 0),
            self.answers.ready.eq(owners.o.valid & taken),
            owners.o.ready.eq(self.answers.valid & taken),
        ]
        return m
