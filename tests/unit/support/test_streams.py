"""Transactions with streams: what is sent and received, when, and what the rules catch."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from support.streams import counting, pulse, recording, responder, transact
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES


class Wires(wiring.Component):
    """Two streams without latency; while ``broken`` is high, ``valid`` of the first is low in every other cycle."""

    i: In(stream.Signature(8)).array(2)
    o: Out(wiring.Signature({"first": Out(stream.Signature(8)), "second": Out(stream.Signature(8))}))
    broken: In(1)
    phase: Out(1)

    def elaborate(self, platform):
        m = Module()
        wiring.connect(m, wiring.flipped(self.i[0]), wiring.flipped(self.o.first))
        wiring.connect(m, wiring.flipped(self.i[1]), wiring.flipped(self.o.second))
        m.d.sync += self.phase.eq(~self.phase)
        with m.If(self.broken & self.phase):
            m.d.comb += self.o.first.valid.eq(0)
        return m


SEND = {"i.0": range(20), "i.1": range(100, 110)}
RECEIVE = {"o.first": 20, "o.second": 10}


@pytest.mark.parametrize("mode", STALL_MODES)
def test_payloads_and_cycles(mode):
    payloads, cycles = transact(Wires(), SEND, RECEIVE, mode, pauses={"i.1": 0.0, "o.second": 0.0})
    assert payloads == {"o.first": list(range(20)), "o.second": list(range(100, 110))}
    assert cycles["i.0"] == cycles["o.first"]
    assert cycles["i.1"] == cycles["o.second"] == list(range(10))
    assert (cycles["i.0"] == list(range(20))) == (mode == "none")


def test_starts_and_end():
    elapsed, ends = [], []

    async def count(ctx):
        async for _ in ctx.tick():
            elapsed.append(1)

    async def then(ctx):
        ends.append(len(elapsed))

    _, cycles = transact(Wires(), SEND, RECEIVE, starts={"o.second": 15}, background=[count], settle=3, then=then)
    assert cycles["i.1"] == cycles["o.second"] == list(range(15, 25))
    assert ends in ([27], [28])  # the two testbenches run in any order


def test_seeds_differ():
    cycles = [transact(Wires(), {"i.0": range(20)}, {"o.first": 20}, "both", seed=seed)[1] for seed in (0, 0, 1)]
    assert cycles[0] == cycles[1] != cycles[2]


def test_the_rules_are_watched():
    with pytest.raises(AssertionError, match=r"^o.first: valid was taken back before ready$"):
        transact(Wires(), {"i.0": range(9)}, {"o.first": 9}, inputs={"broken": 1}, starts={"o.first": 5})
    with pytest.raises(AssertionError, match=r"^o.first: valid was taken back before ready$"):
        transact(Wires(), {"i.0": [1]}, inputs={"broken": 1}, watch=["o.first"], deadline=5)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_responder(mode):
    """Requests leave at ``o.first``; what comes back enters at ``i.1``."""
    dut = Wires()
    background = [responder(dut.o.first, dut.i[1], lambda request: request + 100, mode)]
    payloads, cycles = transact(dut, {"i.0": range(10)}, {"o.second": 10}, background=background)
    assert payloads["o.second"] == list(range(100, 110))
    assert mode != "none" or cycles["o.second"] == [cycle + 1 for cycle in cycles["i.0"]]


def test_strobes_are_counted_and_recorded():
    dut, counts, log = Wires(), {}, []
    background = [counting(counts, phase=dut.phase, busy=dut.i[0].valid), recording(log, dut.phase, dut.i[0].payload)]
    transact(dut, {"i.0": range(6)}, {"o.first": 6}, background=background)
    assert counts == {"phase": 3, "busy": 6}
    assert log == [(1, 1), (3, 3), (5, 5)]


def test_pulse():
    dut, log = Wires(), []

    async def testbench(ctx):
        await ctx.tick()
        await pulse(ctx, dut.broken)
        await ctx.tick()

    simulate(dut, testbench, background=[recording(log, dut.broken)])
    assert log == [(1,)]
