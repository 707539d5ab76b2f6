"""Round-robin arbitration, of requests and of streams."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RoundRobinArbiter", "StreamArbiter"]


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
