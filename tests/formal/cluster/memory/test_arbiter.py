"""F2: streams of bursts share their beats evenly, and none waits long.

Two streams are watched from a cycle that the solver chooses, for as long as both have a burst waiting. What has passed
of each is its balance less that at the beginning, and the same number of quanta for both: so balances bound how far one
gets ahead of the other. While a stream waits in debt, no quantum is given, and balances bound what passes; then it
takes turns with the others.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Mux, Signal, signed, unsigned
from amaranth.lib import data

from support.formal import Spec
from tilewright.hw.cluster.memory.arbiter import FairArbiter
from tilewright.verify.formal import prove

QUANTUM = 4
SHAPE = data.StructLayout({"len": unsigned(8), "tag": unsigned(2)})


class FairSpec(Spec):
    given, made = "i", "o"

    def __init__(self, n):
        self.n = n
        self.dut = FairArbiter(SHAPE, n, QUANTUM)
        self.track = Signal()

    def specify(self, m, dut):
        passed = []  # beats of each stream in this cycle
        for index, source in enumerate(dut.i):
            m.d.comb += Assume(source.payload.len < QUANTUM)
            m.d.comb += Assert(source.ready == (dut.winner[index] & dut.o.ready))
            with m.If(dut.winner[index]):
                m.d.comb += Assert(source.valid & (dut.o.payload == source.payload))
            passed.append(Mux(source.valid & source.ready, source.payload.len + 1, 0))
        waiting, refilled = Signal(), Signal()
        m.d.sync += refilled.eq(dut.refill)
        m.d.comb += [
            waiting.eq(sum((source.valid for source in self.dut.i), 0) != 0),
            Assert(dut.winner & (dut.winner - 1) == 0),
            Assert(dut.o.valid == dut.winner.any()),
            # A cycle without a burst comes before one with.
            Assert((dut.o.valid | dut.refill) == waiting),
            Assert(~(refilled & dut.refill)),
            # Invariants: the mask is ones from a position on; a burst that waits belongs to the favoured stream.
            Assert(~dut.arbiter.mask & (~dut.arbiter.mask + 1)[: self.n] == 0),
        ]
        with m.If(refilled):
            m.d.comb += [Assert(~balance[-1]) for balance in dut.balance]
        unserved, winner = Signal(), Signal.like(dut.winner)
        m.d.sync += [unserved.eq(dut.o.valid & ~dut.o.ready), winner.eq(dut.winner)]
        with m.If(unserved):
            m.d.comb += Assert(dut.winner == winner)
        self._share(m, passed)
        for one in range(self.n):
            for other in range(self.n):
                if one != other:
                    self._wait(m, one, other, passed[other])

    def _share(self, m, passed):
        dut, both = self.dut, self.dut.i[0].valid & self.dut.i[1].valid
        watching, lead = Signal(), Signal(signed(8))
        began = [Signal(signed(len(balance)), name=f"began{n}") for n, balance in enumerate(dut.balance[:2])]
        with m.If(~both):
            m.d.sync += watching.eq(0)
        with m.Elif(watching):
            m.d.sync += lead.eq(lead + passed[0] - passed[1])
        with m.Elif(self.track):
            m.d.sync += [watching.eq(1), lead.eq(0)]
            m.d.sync += [start.eq(balance) for start, balance in zip(began, self._after(passed), strict=True)]
        spent = [start - balance.as_signed() for start, balance in zip(began, dut.balance, strict=False)]
        with m.If(watching):
            m.d.comb += Assert(lead == spent[0] - spent[1])
            m.d.comb += Assert((lead <= 4 * QUANTUM - 2) & (lead >= 2 - 4 * QUANTUM))

    def _after(self, passed):
        """The balances of the two streams in the next cycle."""
        dut = self.dut
        return [
            Mux(dut.refill, balance & (QUANTUM - 1), balance - beats).as_signed()
            for balance, beats in zip(dut.balance, passed[:2], strict=False)
        ]

    def _wait(self, m, one, other, beats):
        """While stream ``one`` waits, at most ``3 * QUANTUM - 1`` beats of ``other`` pass."""
        dut, n, source = self.dut, self.n, self.dut.i[one]
        passed, once = Signal(8, name=f"passed{one}{other}"), Signal(name=f"once{one}{other}")
        mine, theirs = dut.balance[one], dut.balance[other].as_signed()
        with m.If(~source.valid | source.ready):
            m.d.sync += [passed.eq(0), once.eq(0)]
        with m.Else():
            m.d.sync += [passed.eq(passed + beats), once.eq(once | (~mine[-1] & (beats != 0)))]
        before = Signal(name=f"before{one}{other}")  # ``one`` comes before ``other``
        for position in range(n + 1):
            with m.If(dut.arbiter.mask == (1 << n) - (1 << position)):
                m.d.comb += before.eq((one - position) % n < (other - position) % n)
        with m.If(mine[-1]):
            m.d.comb += [Assert(passed <= QUANTUM - 1 - theirs), Assert(~once)]
        m.d.comb += [
            Assert(~once | before),
            Assert(passed <= Mux(once, 3, 2) * QUANTUM - 1),
            Cover(passed == 2 * QUANTUM - 1),
        ]


@pytest.mark.parametrize("n", [2, 3])
def test_shares_are_even(n):
    prove(FairSpec(n), name=f"cluster-fair-{n}", depth=2, proves="F2")


@pytest.mark.long
def test_every_case_is_reached():
    prove(FairSpec(2), name="cluster-fair-cover", mode="cover", depth=20)
