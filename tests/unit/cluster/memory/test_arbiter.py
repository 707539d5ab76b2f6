"""Bursts of different lengths: every stream gets as many beats as any other, and none waits long."""

import random

import pytest
from amaranth.hdl import unsigned
from amaranth.lib import data

from support.streams import transact
from tilewright.hw.cluster.memory.arbiter import FairArbiter
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import sender

SHAPE = data.StructLayout({"len": unsigned(8), "source": unsigned(4), "number": unsigned(12)})
QUANTUM = 8


def arbiter(n):
    return elaborated(FairArbiter, SHAPE, n, QUANTUM)


def bursts(source, count, lengths, seed=0):
    rng = random.Random(seed)
    return [{"len": rng.choice(lengths) - 1, "source": source, "number": n} for n in range(count)]


def run(dut, sources, count):
    senders = [sender(port, items) for port, items in zip(dut.i, sources, strict=True)]
    came, cycles = transact(dut, receive={"o": count}, background=senders)
    return came["o"], cycles["o"]


@pytest.mark.parametrize("lengths", [(1, QUANTUM), (3, 5), (QUANTUM, 7)])
def test_beats_are_shared_evenly(lengths):
    """In no stretch of time do two streams that wait all along differ by more than is promised."""
    passed, cycles = run(arbiter(2), [bursts(n, 300, [length]) for n, length in enumerate(lengths)], 250)
    lead = [0]
    for burst in passed:
        lead.append(lead[-1] + (burst.len + 1) * (1 if burst.source else -1))
    assert max(lead) - min(lead) <= 4 * QUANTUM - 2
    # A pause for each quantum of either stream.
    beats = sum(burst.len + 1 for burst in passed)
    assert cycles[-1] - cycles[0] <= 250 + beats / (2 * QUANTUM) + 1


def test_a_stream_alone_passes_at_full_rate():
    passed, cycles = run(arbiter(3), [[], bursts(1, 64, [1]), []], 64)
    assert len(passed) == 64
    assert cycles[-1] - cycles[0] == 63 + 64 // QUANTUM


def test_latency():
    dut = arbiter(2)

    async def testbench(ctx):
        ctx.set(dut.i[1].valid, 1)
        ctx.set(dut.i[1].payload.source, 5)
        ctx.set(dut.o.ready, 1)
        assert (ctx.get(dut.o.valid), ctx.get(dut.o.payload.source), ctx.get(dut.winner)) == (1, 5, 2)
        assert ctx.get(dut.i[1].ready)
        assert not ctx.get(dut.i[0].ready)

    simulate(dut, testbench)


@pytest.mark.parametrize("quantum", [0, 3, 512, "8"])
def test_refuses(quantum):
    with pytest.raises(ValueError, match=f"quantum must be a power of two from 1 to 256, not {quantum!r}"):
        FairArbiter(SHAPE, 2, quantum)
