"""Streams that are merged, shared, copied and gated. All blocks are combinational: an item a cycle, without latency."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .stream import Queue

__all__ = ["Fork", "RoundRobinArbiter", "StreamArbiter", "StreamGate", "StreamShare", "connect_exclusive"]

#: Requests in flight at a shared port: the port and a buffer before it hold four; answers may wait for their readers.
_IN_FLIGHT = 8


def _check_count(n, least):
    if not isinstance(n, int) or n < least:
        raise ValueError(f"n must be an int of at least {least}, not {n!r}")


class RoundRobinArbiter(wiring.Component):
    """Grants one of ``n`` requests at a time; each waits for at most ``n - 1`` others.

    ``grant`` is one-hot, or zero without a request, and depends combinationally on ``requests``. It stays with a
    request until this ends, or until ``advance`` says that it is served: then the others go first from the next cycle
    on.
    """

    def __init__(self, n):
        _check_count(n, 1)
        self._n = n
        self.mask = Signal(n, init=-1)  # ones from the favoured position up
        super().__init__({"requests": In(n), "advance": In(1), "grant": Out(n)})

    def elaborate(self, platform):
        m = Module()
        favoured = Signal(self._n)
        candidates = Signal(self._n)
        from_grant = Signal(self._n)
        m.d.comb += [
            favoured.eq(self.requests & self.mask),
            candidates.eq(Mux(favoured.any(), favoured, self.requests)),
            # The lowest candidate; then all positions from it up.
            self.grant.eq(Cat(bit & ~candidates[:index].any() for index, bit in enumerate(candidates))),
            from_grant.eq(Cat(self.grant[: index + 1].any() for index in range(self._n))),
        ]
        with m.If(self.requests.any()):
            # A grant that is not served stays favoured, so that no later request passes it.
            m.d.sync += self.mask.eq(from_grant ^ Mux(self.advance, self.grant, 0))
        return m


class StreamArbiter(wiring.Component):
    """Merges ``n`` streams round-robin, item by item.

    An item that waits at the output stays there. ``winner`` is one-hot: the stream whose item is at the output; zero
    while there is none.
    """

    def __init__(self, shape, n):
        _check_count(n, 1)
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


class StreamShare(wiring.Component):
    """Shares one port that answers among ``n`` users: merges their requests, and returns each user its own answers.

    The port, at ``merged`` and ``answers``, answers every request, in order. An answer whose user is not ready holds up
    all later ones.

    Parameters
    ----------
    request, answer : shape-like
    n : int
        Number of users, at least 2.
    """

    def __init__(self, request, answer, n):
        self._request, self._n = request, n
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
        ready = Signal()  # of the user to whom the answer belongs
        for request, result, port, owner in zip(self.requests, self.results, arbiter.i, owners.o.payload, strict=True):
            connect(m, request=flipped(request), arbiter=port)
            m.d.comb += [
                result.payload.eq(self.answers.payload),
                result.valid.eq(self.answers.valid & owners.o.valid & owner),
            ]
        m.d.comb += [
            # Neither waits for the other's ready: the queue has space whenever the request may pass.
            self.merged.payload.eq(arbiter.o.payload),
            self.merged.valid.eq(arbiter.o.valid & owners.i.ready),
            arbiter.o.ready.eq(self.merged.ready & owners.i.ready),
            owners.i.payload.eq(arbiter.winner),
            owners.i.valid.eq(self.merged.valid & self.merged.ready),
            ready.eq((owners.o.payload & Cat(result.ready for result in self.results)).any()),
            self.answers.ready.eq(owners.o.valid & ready),
            owners.o.ready.eq(self.answers.valid & ready),
        ]
        return m


class Fork(wiring.Component):
    """Copies every item to ``n`` outputs, which accept it in any order.

    The input is ready when the last output accepts the item.
    """

    def __init__(self, shape, n):
        _check_count(n, 2)
        self.sent = Signal(n)  # outputs that have accepted the item at ``i``
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)).array(n)})

    def elaborate(self, platform):
        m = Module()
        done = Signal.like(self.sent)
        for index, port in enumerate(self.o):
            m.d.comb += [
                port.payload.eq(self.i.payload),
                port.valid.eq(self.i.valid & ~self.sent[index]),
                done[index].eq(self.sent[index] | port.ready),
            ]
        m.d.comb += self.i.ready.eq(done.all())
        with m.If(self.i.valid):
            m.d.sync += self.sent.eq(Mux(self.i.ready, 0, done))
        return m


class StreamGate(wiring.Component):
    """Stops a stream while ``closed`` is high; an item that has been offered to the sink passes nevertheless."""

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "closed": In(1)})

    def elaborate(self, platform):
        m = Module()
        offered, open_ = Signal(), Signal()
        m.d.sync += offered.eq(self.o.valid & ~self.o.ready)
        m.d.comb += [
            open_.eq(~self.closed | offered),
            self.o.valid.eq(self.i.valid & open_),
            self.o.payload.eq(self.i.payload),
            self.i.ready.eq(self.o.ready & open_),
        ]
        return m


def connect_exclusive(m, ports, payload, valid, ready):
    """Merges streams of which at most one is valid at a time, without arbitration.

    All ports share ``ready``. While none is valid, the payload is the last port's, so that its valid is not part of
    the choice.

    Parameters
    ----------
    m : Module
    ports : sequence of streams, in
    payload, valid : Signal
        Driven here.
    ready : Value
    """
    m.d.comb += [port.ready.eq(ready) for port in ports]
    *others, last = ports
    m.d.comb += [payload.eq(last.payload), valid.eq(last.valid)]
    for number, port in enumerate(others):
        with m.If(port.valid) if number == 0 else m.Elif(port.valid):
            m.d.comb += [payload.eq(port.payload), valid.eq(1)]
