"""Spread: the unit of every thread, and the threads that write, for every sharing; latency and rate."""

import random

import pytest
from amaranth import Module, Signal

from tilewright.hw.pe.compute.layouts import STEP_UNITS, place_of_unit
from tilewright.hw.pe.compute.spread import Spread, writers
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.sharing import SHARINGS, sharing_code
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 9
UNIT = PE_PRESETS["unit"]


@pytest.mark.parametrize("threads", [4, 21, 80])
def test_every_thread_takes_its_unit(threads):
    """A step a cycle, each with another sharing."""
    dut = elaborated(Spread, UNIT.replace(threads=threads))
    rng = random.Random(SEED)

    async def testbench(ctx):
        due = []
        for ka, kb in [*SHARINGS, *rng.sample(SHARINGS * 2, 32), *[(1, 1)] * dut.LATENCY]:
            units = [rng.getrandbits(UNIT.unit_bits) for _ in range(STEP_UNITS)]
            ctx.set(dut.ka, ka - 1)
            ctx.set(dut.kb, kb - 1)
            ctx.set(dut.units, units)
            due.append([units[place_of_unit(ka, kb, thread % (ka * kb))] for thread in range(threads)])
            if len(due) > dut.LATENCY:
                assert [*ctx.get(dut.o)] == due.pop(0)
            await ctx.tick()

    simulate(dut, testbench)


@pytest.mark.parametrize("threads", [4, 21, 80])
def test_writers(threads):
    """Members qb = 0 of whole groups, whose column is on."""
    m = Module()
    ka, kb, on, writes = Signal(2), Signal(2), Signal(4), Signal(threads)
    m.d.comb += writes.eq(writers(sharing_code(ka, kb), on, threads))

    async def testbench(ctx):
        for a, b in SHARINGS:
            ctx.set(ka, a - 1)
            ctx.set(kb, b - 1)
            for columns in range(1 << a):
                ctx.set(on, columns)
                whole = threads // (a * b) * (a * b)
                expected = [
                    thread < whole and thread % b == 0 and columns >> thread % (a * b) // b & 1
                    for thread in range(threads)
                ]
                assert ctx.get(writes) == sum(bool(one) << thread for thread, one in enumerate(expected))

    simulate(m, testbench)
