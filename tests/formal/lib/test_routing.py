"""F2: arbiters grant one of the requests, never pause, keep a grant; none waits for more than n - 1 others.

F1: a fork gives every item to every output. Gates and shared ports keep the order and the rules of streams.
"""

import pytest
from amaranth.hdl import Assert, Cover, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.lib.routing import Fork, RoundRobinArbiter, StreamArbiter, StreamGate, StreamShare
from tilewright.verify.formal import prove


class ArbiterSpec(Spec):
    def __init__(self, n):
        self.n = n
        self.dut = RoundRobinArbiter(n)

    def specify(self, m, dut):
        m.d.comb += [
            Assert(dut.grant & (dut.grant - 1) == 0),
            Assert(dut.grant & ~dut.requests == 0),
            Assert(dut.grant.any() == dut.requests.any()),
        ]
        unserved = Signal(self.n)
        m.d.sync += unserved.eq(dut.grant & ~dut.advance.replicate(self.n))
        with m.If((unserved & dut.requests).any()):
            m.d.comb += Assert(dut.grant == unserved)

        # Invariant: the mask is ones from the favoured position on.
        m.d.comb += Assert(~dut.mask & (~dut.mask + 1)[: self.n] == 0)
        for j in range(self.n):
            self._bounded_wait(m, j)

    def _bounded_wait(self, m, j):
        """Requester j is passed over at most n - 1 times: each time it comes nearer to the favoured position."""
        dut, n = self.dut, self.n
        passed = Signal(range(n + 2), name=f"passed{j}")
        distance = Signal(range(n), name=f"distance{j}")
        with m.If(~dut.requests[j] | (dut.grant[j] & dut.advance)):
            m.d.sync += passed.eq(0)
        with m.Elif(dut.advance):
            m.d.sync += passed.eq(passed + 1)
        for position in range(n + 1):
            with m.If(dut.mask == (1 << n) - (1 << position)):
                m.d.comb += distance.eq((j - position) % n)
        m.d.comb += [
            Assert(passed <= n - 1),
            Assert((passed == 0) | (passed + distance <= n - 1)),
            Cover(passed == n - 1),
        ]


class StreamArbiterSpec(Spec):
    given, made = "i", "o"

    def specify(self, m, dut):
        for index, source in enumerate(dut.i):
            with m.If(dut.winner[index]):
                m.d.comb += Assert(dut.o.valid & source.valid & (dut.o.payload == source.payload))
            m.d.comb += Assert(source.ready == (dut.winner[index] & dut.o.ready))
        m.d.comb += [
            Assert(dut.winner & (dut.winner - 1) == 0),
            Assert(dut.o.valid == dut.winner.any()),
            Cover(dut.winner[-1] & dut.o.ready),
        ]
        # Invariant: an item that waits belongs to the favoured stream.
        waiting = Signal()
        winner = Signal.like(dut.winner)
        m.d.sync += [waiting.eq(dut.o.valid & ~dut.o.ready), winner.eq(dut.winner)]
        with m.If(waiting):
            m.d.comb += Assert(dut.winner == winner)


@pytest.mark.parametrize("n", [1, 3, 4, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 8))])
def test_round_robin(n):
    prove(ArbiterSpec(n), name=f"lib-arbiter-{n}", depth=2, proves="F2")


@pytest.mark.long
def test_the_longest_wait_happens():
    prove(ArbiterSpec(4), name="lib-arbiter-cover", mode="cover", depth=10)


@pytest.mark.parametrize("n", [1, 2, pytest.param(4, marks=pytest.mark.long)])
def test_streams(n):
    prove(StreamArbiterSpec(StreamArbiter(4, n)), name=f"lib-stream-arbiter-{n}", depth=2, proves="F2")
    prove(StreamArbiterSpec(StreamArbiter(4, n)), name=f"lib-stream-arbiter-{n}-cover", mode="cover", depth=5)


N = 3


class ForkSpec(Spec):
    """Counts, modulo 16, the items that each output has accepted."""

    given, made = "i", "o"

    def specify(self, m, dut):
        done = Signal(4)
        m.d.sync += done.eq(done + (dut.i.valid & dut.i.ready))
        m.d.comb += [Assert(dut.i.valid | (dut.sent == 0)), Assert(~dut.sent.all())]
        for index, port in enumerate(dut.o):
            accepted = Signal(4, name=f"accepted_{index}")
            m.d.sync += accepted.eq(accepted + (port.valid & port.ready))
            m.d.comb += [
                Assert(accepted == (done + dut.sent[index])[:4]),
                Assert(~port.valid | (port.payload == dut.i.payload)),
            ]
        m.d.comb += Cover((done == 2) & (dut.sent == 0b101))


@proved_and_covered(2, 8)
def test_fork(mode, depth):
    prove(ForkSpec(Fork(8, N)), name=f"fork-{mode}", mode=mode, depth=depth, proves="F1")


class GateSpec(Spec):
    """Both handshakes happen in the same cycle."""

    given, made = "i", "o"

    def specify(self, m, dut):
        waited, passed = Signal(), Signal()
        m.d.sync += [waited.eq(dut.o.valid & ~dut.o.ready), passed.eq(passed | (dut.closed & dut.i.ready))]
        m.d.comb += [
            Assert((dut.i.valid & dut.i.ready) == (dut.o.valid & dut.o.ready)),
            Assert(~dut.o.valid | (dut.i.valid & (dut.o.payload == dut.i.payload))),
            Assert(~dut.closed | waited | ~dut.o.valid),
            Assert(dut.closed | (dut.o.valid == dut.i.valid)),
            Cover(passed & dut.closed & dut.i.valid & ~dut.o.valid & dut.o.ready),
        ]


def test_gate():
    prove(GateSpec(StreamGate(4)), name="gate", depth=2)
    prove(GateSpec(StreamGate(4)), name="gate-cover", mode="cover", depth=6)


class StreamShareSpec(Spec):
    """Two users, and a port that answers at any time; one bit of one request of the first user is tracked."""

    given, made = "requests", "merged"

    def __init__(self):
        self.dut = StreamShare(2, 2, 2)
        self.track, self.answers = Signal(), Signal()

    def specify(self, m, share):

        # Requests in the port.
        asked, answered, waits, count = Signal(), Signal(), Signal(), Signal(5)
        m.d.comb += [
            share.answers.valid.eq((count != 0) & (self.answers | waits)),
            asked.eq(share.merged.valid & share.merged.ready),
            answered.eq(share.answers.valid & share.answers.ready),
        ]
        m.d.sync += [count.eq(count + asked - answered), waits.eq(share.answers.valid & ~share.answers.ready)]

        # Requests of each user without an answer; ``ahead``: requests before the tracked one.
        accepted, returned = Signal(2), Signal(2)
        unanswered = [Signal(5, name=f"unanswered{n}") for n in range(2)]
        for n in range(2):
            m.d.comb += accepted[n].eq(share.requests[n].valid & share.requests[n].ready)
            m.d.comb += returned[n].eq(share.results[n].valid & share.results[n].ready)
            m.d.sync += unanswered[n].eq(unanswered[n] + accepted[n] - returned[n])
            m.d.comb += Assert(~share.results[n].valid | (unanswered[n] != 0))
        m.d.comb += Assert(~accepted.all() & ~returned.all())
        m.d.comb += Assert(answered == returned.any())

        tracking, ahead, bit = Signal(), Signal(5), Signal()
        total = unanswered[0] + unanswered[1]
        with m.If(tracking):
            with m.If(returned.any()):
                m.d.comb += Assert((ahead != 0) | returned[0])
                m.d.sync += [tracking.eq(ahead != 0), ahead.eq(ahead - 1)]
        with m.Elif(accepted[0] & self.track):
            m.d.sync += [tracking.eq(1), ahead.eq(total - returned.any()), bit.eq(share.requests[0].payload[0])]
        # It is at the port when all requests ahead of it have been sent.
        with m.If(tracking & asked & (ahead == count)):
            m.d.comb += Assert(share.merged.payload[0] == bit)

        # While the port is idle, a waiting request is sent.
        with m.If((total != 0) & (count == 0)):
            m.d.comb += Assert(share.merged.valid)
        m.d.comb += Cover(tracking & (ahead == 0) & returned[0] & (unanswered[1] == 2))
        m.d.comb += Cover(count == 5)


@pytest.mark.parametrize("depth", [9, pytest.param(10, marks=pytest.mark.long)])
def test_answers(depth):
    prove(StreamShareSpec(), name="lib-share", mode="bmc", depth=depth)


@pytest.mark.long
def test_both_users_wait():
    prove(StreamShareSpec(), name="lib-share-cover", mode="cover", depth=9)
