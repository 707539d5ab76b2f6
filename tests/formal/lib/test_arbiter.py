"""F2: arbiters grant one of the requests, never pause, keep a grant; none waits for more than n - 1 others."""

import pytest
from amaranth.hdl import Assert, Cover, Elaboratable, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import connect

from tilewright.hw.lib.arbiter import RoundRobinArbiter, StreamArbiter
from tilewright.sim.formal import StreamRules, prove


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
