"""An arbiter that shares a port evenly by the length of bursts."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.routing import RoundRobinArbiter

__all__ = ["FairArbiter"]


class FairArbiter(wiring.Component):
    """Merges ``n`` streams of bursts, so that each gets its share of beats.

    Each stream has a balance. A burst passes while that is not negative, and is charged its beats. When those that wait
    are all in debt, ``quantum`` is given to every stream that is, in a cycle in which nothing passes. Streams that may
    pass take turns.

    Between two streams that have something waiting all the time, the beats that pass differ by ``4 * quantum - 2`` at
    most. While one waits, at most ``3 * quantum - 1`` beats of each other pass.

    Combinational from inputs to output, one burst a cycle. A burst that waits at the output stays.

    Parameters
    ----------
    shape : data.StructLayout
        Of the payload. Its member ``len`` is the number of beats, less one.
    n : int
        Number of streams to merge.
    quantum : int
        Beats of a burst at most, a power of two.
    """

    def __init__(self, shape, n, quantum):
        if not isinstance(quantum, int) or not 1 <= quantum <= 256 or quantum & (quantum - 1):
            raise ValueError(f"quantum must be a power of two from 1 to 256, not {quantum!r}")
        self._n = n
        self._quantum_log2 = exact_log2(quantum)
        self.arbiter = RoundRobinArbiter(n)
        #: From -quantum to quantum - 1, in two's complement: to give a quantum is to clear the sign.
        self.balance = [Signal(self._quantum_log2 + 1, name=f"balance{index}") for index in range(n)]
        self.refill = Signal()
        super().__init__(
            # One-hot: the stream whose burst is at the output; zero while there is none.
            {"i": In(stream.Signature(shape)).array(n), "o": Out(stream.Signature(shape)), "winner": Out(n)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        payload, waiting = 0, 0
        for index, (port, balance) in enumerate(zip(self.i, self.balance, strict=True)):
            granted = arbiter.grant[index]
            m.d.comb += [arbiter.requests[index].eq(port.valid & ~balance[-1]), port.ready.eq(granted & self.o.ready)]
            waiting |= port.valid
            payload |= Mux(granted, Value.cast(port.payload), 0)
            with m.If(self.refill):
                m.d.sync += balance[-1].eq(0)
            with m.Elif(granted & self.o.ready):
                m.d.sync += balance.eq(balance - port.payload.len[: self._quantum_log2] - 1)
        m.d.comb += [
            self.refill.eq(waiting & ~self.o.valid),
            arbiter.advance.eq(self.o.ready),
            self.winner.eq(arbiter.grant),
            self.o.valid.eq(arbiter.requests.any()),
            Value.cast(self.o.payload).eq(payload),
        ]
        return m
