"""Several users of one port that answers."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from .arbiter import StreamArbiter
from .stream import Queue

__all__ = ["StreamShare"]

#: Requests whose answers are under way: the port and a buffer before it hold four; answers may wait for their readers.
_IN_FLIGHT = 8


class StreamShare(wiring.Component):
    """Merges the requests of ``n`` users, round-robin, and gives each its own answers in order.

    Combinational in both directions: no latency of its own. An answer that its user does not take holds up those
    behind it.

    Parameters
    ----------
    request, answer : shape-like
    n : int
        Users, at least 2.

    Members
    -------
    requests : In(array of n stream of request)
    results : Out(array of n stream of answer)
    merged : Out(stream of request)
        To the port that is shared.
    answers : In(stream of answer)
        From it, one for each, in order.
    """

    def __init__(self, request, answer, n):
        self._request = request
        self._n = n
        super().__init__(
            {
                "requests": In(stream.Signature(request)).array(n),
                "results": Out(stream.Signature(answer)).array(n),
                "merged": Out(stream.Signature(request)),
                "answers": In(stream.Signature(answer)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = StreamArbiter(self._request, self._n)
        m.submodules.owners = owners = Queue(self._n, _IN_FLIGHT)
        for index in range(self._n):
            connect(m, requests=wiring.flipped(self.requests[index]), arbiter=arbiter.i[index])
            m.d.comb += self.results[index].payload.eq(self.answers.payload)
            m.d.comb += self.results[index].valid.eq(self.answers.valid & owners.o.valid & owners.o.payload[index])

        # Neither waits for the other's ready: the queue has space whenever the request may pass.
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
