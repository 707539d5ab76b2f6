"""F2: arbiters grant one of the requests, never pause, keep a grant; none waits for more than n - 1 others.

F1: a fork gives every item to every output. Gates and shared ports keep the order and the rules of streams.
"""

import pytest
from amaranth.hdl import Assert, Cover, Elaboratable, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import connect

from tilewright.hw.lib.routing import Fork, RoundRobinArbiter, StreamArbiter, StreamGate, StreamShare
from tilewright.verify.formal import StreamRules, prove


class ArbiterSpec(Elaboratable):
    def __init__(self, n):
        self.n = n
        self.dut = RoundRobinArbiter(n)

    @property
    def ports(self):
        return [self.dut.requests, self.dut.advance]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
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
        return m

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


class StreamArbiterSpec(Elaboratable):
    """Plain streams as ports of the proof, as a member of an array cannot be one."""

    def __init__(self, n):
        self.dut = StreamArbiter(4, n)
        self.sources = [stream.Signature(4).create(path=(f"source{index}",)) for index in range(n)]

    @property
    def ports(self):
        return [self.dut.o.ready, *(signal for port in self.sources for signal in (port.valid, port.payload))]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.o_rules = StreamRules(dut.o)
        for index, source in enumerate(self.sources):
            connect(m, source=source, dut=dut.i[index])
            m.submodules[f"i_rules{index}"] = StreamRules(source, assume=True)
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
        return m


@pytest.mark.parametrize("n", [1, 3, 4, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 8))])
def test_round_robin(n):
    spec = ArbiterSpec(n)
    prove(spec, spec.ports, name=f"lib-arbiter-{n}", depth=2, proves="F2")


@pytest.mark.long
def test_the_longest_wait_happens():
    spec = ArbiterSpec(4)
    prove(spec, spec.ports, name="lib-arbiter-cover", mode="cover", depth=10)


@pytest.mark.parametrize("n", [1, 2, pytest.param(4, marks=pytest.mark.long)])
def test_streams(n):
    spec = StreamArbiterSpec(n)
    prove(spec, spec.ports, name=f"lib-stream-arbiter-{n}", depth=2, proves="F2")
    spec = StreamArbiterSpec(n)
    prove(spec, spec.ports, name=f"lib-stream-arbiter-{n}-cover", mode="cover", depth=5)


N = 3


class ForkSpec(Elaboratable):
    """Counts, modulo 16, the items that each output has accepted."""

    def __init__(self):
        self.dut = Fork(8, N)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        done = Signal(4)
        m.d.sync += done.eq(done + (dut.i.valid & dut.i.ready))
        m.d.comb += [Assert(dut.i.valid | (dut.sent == 0)), Assert(~dut.sent.all())]
        for index, port in enumerate(dut.o):
            m.submodules += StreamRules(port)
            accepted = Signal(4, name=f"accepted_{index}")
            m.d.sync += accepted.eq(accepted + (port.valid & port.ready))
            m.d.comb += [
                Assert(accepted == (done + dut.sent[index])[:4]),
                Assert(~port.valid | (port.payload == dut.i.payload)),
            ]
        m.d.comb += Cover((done == 2) & (dut.sent == 0b101))
        return m

    def ports(self):
        return [self.dut.i.valid, self.dut.i.payload, *(port.ready for port in self.dut.o)]


def test_fork():
    spec = ForkSpec()
    prove(spec, spec.ports(), name="fork", depth=2, proves="F1")


@pytest.mark.long
def test_fork_reaches_partly_accepted_items():
    spec = ForkSpec()
    prove(spec, spec.ports(), name="fork-cover", mode="cover", depth=8)


class GateSpec(Elaboratable):
    """Both handshakes happen in the same cycle."""

    def __init__(self):
        self.dut = dut = StreamGate(4)
        self.ports = [dut.i.valid, dut.i.payload, dut.o.ready, dut.closed]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        m.submodules.o_rules = StreamRules(dut.o)
        waited, passed = Signal(), Signal()
        m.d.sync += [waited.eq(dut.o.valid & ~dut.o.ready), passed.eq(passed | (dut.closed & dut.i.ready))]
        m.d.comb += [
            Assert((dut.i.valid & dut.i.ready) == (dut.o.valid & dut.o.ready)),
            Assert(~dut.o.valid | (dut.i.valid & (dut.o.payload == dut.i.payload))),
            Assert(~dut.closed | waited | ~dut.o.valid),
            Assert(dut.closed | (dut.o.valid == dut.i.valid)),
            Cover(passed & dut.closed & dut.i.valid & ~dut.o.valid & dut.o.ready),
        ]
        return m


def test_gate():
    spec = GateSpec()
    prove(spec, spec.ports, name="gate", depth=2)
    prove(spec, spec.ports, name="gate-cover", mode="cover", depth=6)


class StreamShareSpec(Elaboratable):
    """Two users, and a port that answers at any time; one bit of one request of the first user is tracked."""

    def __init__(self):
        self.share = share = StreamShare(2, 2, 2)
        self.track, self.answers = Signal(), Signal()
        self.inputs = [self.track, self.answers, share.merged.ready, share.answers.payload]
        for n in range(2):
            self.inputs += [share.requests[n].valid, share.requests[n].payload, share.results[n].ready]

    def elaborate(self, platform):
        m = Module()
        m.submodules.share = share = self.share
        for n in range(2):
            m.submodules[f"i{n}_rules"] = StreamRules(share.requests[n], assume=True)
        m.submodules.reads_rules = StreamRules(share.merged)

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
        return m


@pytest.mark.parametrize("depth", [9, pytest.param(10, marks=pytest.mark.long)])
def test_answers(depth):
    spec = StreamShareSpec()
    prove(spec, spec.inputs, name="lib-share", mode="bmc", depth=depth)


@pytest.mark.long
def test_both_users_wait():
    spec = StreamShareSpec()
    prove(spec, spec.inputs, name="lib-share-cover", mode="cover", depth=9)
