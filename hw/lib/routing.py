"""Round-robin arbitration, of requests and of streams."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from .stream import Queue

__all__ = ["Fork", "RoundRobinArbiter", "StreamArbiter", "StreamGate", "StreamShare", "pick"]


def _check_n(n):
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"n must be an int of at least 1, not {n!r}")


class RoundRobinArbiter(wiring.Component):
    """Grants one of ``n`` requests at a time; each waits for at most ``n - 1`` others.

    Combinational from ``requests`` to ``grant``. A grant stays while its request does, until ``advance``.

    Parameters
    ----------
    n : int
        Number of requests.

    Members
    -------
    requests : In(n)
    advance : In(1)
        The granted request is served in this cycle: the others come first from the next cycle on.
    grant : Out(n)
        One-hot, one of the requests; zero only if there is none.
    """

    def __init__(self, n):
        _check_n(n)
        self._n = n
        #: Ones from the position on that comes first.
        self.mask = Signal(n, init=-1)
        super().__init__({"requests": In(n), "advance": In(1), "grant": Out(n)})

    def elaborate(self, platform):
        m = Module()
        favoured = Signal(self._n)
        candidates = Signal(self._n)
        from_grant = Signal(self._n)
        m.d.comb += [
            favoured.eq(self.requests & self.mask),
            candidates.eq(Mux(favoured.any(), favoured, self.requests)),
            # The lowest one; then that and all above.
            self.grant.eq(Cat(bit & ~candidates[:index].any() for index, bit in enumerate(candidates))),
            from_grant.eq(Cat(self.grant[: index + 1].any() for index in range(self._n))),
        ]
        with m.If(self.requests.any()):
            # Unless it is served, the granted one stays first, so that none that comes later passes it.
            m.d.sync += self.mask.eq(from_grant ^ Mux(self.advance, self.grant, 0))
        return m


class StreamArbiter(wiring.Component):
    """Merges ``n`` streams, round-robin item by item.

    Combinational from inputs to output, one item a cycle. An item that waits at the output stays.

    Parameters
    ----------
    shape : shape-like
        Of the payload.
    n : int
        Number of streams to merge.

    Members
    -------
    i : In(array of n stream of shape)
    o : Out(stream of shape)
    winner : Out(n)
        One-hot: the stream whose item is at the output; zero while there is none.
    """

    def __init__(self, shape, n):
        _check_n(n)
        self._n = n
        self.arbiter = RoundRobinArbiter(n)
        super().__init__(
            {"i": In(stream.Signature(shape)).array(n), "o": Out(stream.Signature(shape)), "winner": Out(n)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        payload = 0
        for index, port in enumerate(self.i):
            m.d.comb += arbiter.requests[index].eq(port.valid)
            m.d.comb += port.ready.eq(arbiter.grant[index] & self.o.ready)
            payload |= Mux(arbiter.grant[index], Value.cast(port.payload), 0)
        m.d.comb += [
            arbiter.advance.eq(self.o.ready),
            self.winner.eq(arbiter.grant),
            self.o.valid.eq(arbiter.requests.any()),
            Value.cast(self.o.payload).eq(payload),
        ]
        return m


class Fork(wiring.Component):
    """Gives every item to each of ``n`` outputs, which take it in any order. Combinational, one item a cycle.

    Parameters
    ----------
    shape : shape-like
        Of the payload.
    n : int
        Number of outputs, at least 2.

    Members
    -------
    i : In(stream of shape)
        Accepted when the last output takes the item.
    o : Out(array of n stream of shape)
    """

    def __init__(self, shape, n):
        if not isinstance(n, int) or n < 2:
            raise ValueError(f"n must be an int of at least 2, not {n!r}")
        self.sent = Signal(n)  # outputs that have taken the item at ``i``
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)).array(n)})

    def elaborate(self, platform):
        m = Module()
        done = Signal.like(self.sent)
        for index, port in enumerate(self.o):
            m.d.comb += [
                port.p.eq(self.i.p),
                port.valid.eq(self.i.valid & ~self.sent[index]),
                done[index].eq(self.sent[index] | port.ready),
            ]
        m.d.comb += self.i.ready.eq(done.all())
        with m.If(self.i.valid):
            m.d.sync += self.sent.eq(done)
            with m.If(self.i.ready):
                m.d.sync += self.sent.eq(0)
        return m


class StreamGate(wiring.Component):
    """Lets items pass while it is open. Combinational; an item that the sink has been offered passes anyway.

    Parameters
    ----------
    shape : shape-like
        Of the payload.

    Members
    -------
    i : In(stream of shape)
    o : Out(stream of shape)
    closed : In(1)
    """

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "closed": In(1)})

    def elaborate(self, platform):
        m = Module()
        offered, passes = Signal(), Signal()
        m.d.sync += offered.eq(self.o.valid & ~self.o.ready)
        m.d.comb += [
            passes.eq(~self.closed | offered),
            self.o.valid.eq(self.i.valid & passes),
            self.o.payload.eq(self.i.payload),
            self.i.ready.eq(self.o.ready & passes),
        ]
        return m


def pick(m, ports, payload, valid, ready):
    """Connects the one of ``ports`` that is valid to ``payload`` and ``valid``.

    No arbitration: only one may be valid at a time, and so all have ``ready``, which does not wait for who it is. If
    none is valid the payload is the last one's, so that nothing waits for whether that one is.

    Parameters
    ----------
    m : Module
    ports : sequence of streams, in
    payload, valid : Signal
        To be driven.
    ready : Value
    """
    m.d.comb += [port.ready.eq(ready) for port in ports]
    *others, last = ports
    m.d.comb += [payload.eq(last.payload), valid.eq(last.valid)]
    for number, port in enumerate(others):
        with m.If(port.valid) if number == 0 else m.Elif(port.valid):
            m.d.comb += [payload.eq(port.payload), valid.eq(1)]


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
