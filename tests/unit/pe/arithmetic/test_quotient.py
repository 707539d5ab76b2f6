"""Short quotients: corners and random operands in Verilator, and threads that share a divider."""

import numpy as np
import pytest

from support.pe_division import integer_operands
from support.pe_lanes import make_lanes_design, run_lanes
from tilewright.hw.pe.arithmetic.quotient import QuotientRow
from tilewright.sim.hdl.simulation import Simulation
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import set_together

SEED = 59
DEPTH = 1 << 16
COUNT = 100_000
MANY = 1_000_000


def quotients(a, b, c):
    """QDIV, from integers of 64 bits."""
    a, b, c = (np.asarray(words, np.uint64) for words in (a, b, c))
    whole = (a * (c % np.uint64(1024)) + b // np.uint64(2)) // np.maximum(b, np.uint64(1))
    return np.where(b == 0, 1023, np.minimum(whole, 1023)).astype(np.uint32)


def some_operands(rng, count):
    """Pairs of corners, and random ones; in half of them ``b`` is near ``a``, and the quotient small."""
    a, b = integer_operands(rng, count)
    near = a.astype(np.uint64) * rng.integers(1, 1 << 12, len(a)).astype(np.uint64) >> np.uint64(10)
    b = np.where(rng.integers(0, 2, len(a)) == 1, np.minimum(near, 0xFFFFFFFF).astype(np.uint32), b)
    c = np.where(rng.integers(0, 4, len(a)) == 0, rng.integers(0, 1 << 32, len(a)), rng.integers(0, 1024, len(a)))
    return a, b, np.where(rng.integers(0, 8, len(a)) == 0, 1023, c).astype(np.uint32)


def check(count):
    a, b, c = some_operands(np.random.default_rng(SEED), count)
    zero, expected = np.zeros(len(a), np.uint32), quotients(a, b, c)
    row = QuotientRow(1, 1)
    with Simulation(make_lanes_design(row, row.latency, DEPTH)) as simulation:
        for begin in range(0, len(a), DEPTH):
            rows = slice(begin, begin + DEPTH)
            came, _ = run_lanes(simulation, zero[rows], a[rows], b[rows], c[rows], zero[rows])
            wrong = np.flatnonzero(came != expected[rows])
            assert not len(wrong), [hex(each[rows][wrong[0]]) for each in (a, b, c, expected)] + [hex(came[wrong[0]])]


def test_quotients():
    check(COUNT)


@pytest.mark.long
def test_many():
    check(MANY)


@pytest.mark.parametrize("sharing", [1, 2, 4])
def test_threads_that_share(sharing):
    """Rows at the full rate and with pauses; of five threads, the last group is not full."""
    threads, rng = 5, np.random.default_rng(SEED)
    dut = QuotientRow(threads, sharing)
    rows = [[words[-threads:] for words in some_operands(rng, threads)] for _ in range(40)]
    starts = np.cumsum(sharing + rng.integers(0, 3, len(rows)) * rng.integers(0, 2, len(rows))).tolist()
    arrivals, came = {start + dut.latency for start in starts}, []

    async def testbench(ctx):
        waiting = dict(zip(starts, rows, strict=True))
        for cycle in range(starts[-1] + dut.latency + 1):
            operands = waiting.get(cycle, rng.integers(0, 1 << 32, (3, threads)))
            ports = zip((dut.a, dut.b, dut.c), operands, strict=True)
            set_together(ctx, (dut.start, int(cycle in waiting)), *((port, words.tolist()) for port, words in ports))
            if cycle in arrivals:
                came.append(list(ctx.get(dut.o)))
            await ctx.tick()

    simulate(dut, testbench)
    assert came == [quotients(*row).tolist() for row in rows]


def test_wrong_sharing():
    with pytest.raises(ValueError, match=r"^1, 2 or 4 threads share a divider, not 3$"):
        QuotientRow(4, 3)
