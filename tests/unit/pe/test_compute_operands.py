"""Operands of the multipliers: two sets of factors, as early as possible; the unit of each thread; the multipliers."""

import random

import numpy as np
import pytest
from amaranth.hdl import Module, Signal

from support.pe_operands import dot_rows, join_elements
from support.streams import transact
from tilewright.golden.dot_product import dot
from tilewright.hw.pe.broadcast import STEP_UNITS, place_of_unit
from tilewright.hw.pe.compute import FactorFetcher, Spread, mac_array, writers
from tilewright.hw.pe.layouts import SHARINGS, sharing_code
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.pe import MM_FAMILIES, MmType
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import run_pipeline

SEED = 4
UNIT = PE_PRESETS["unit"]


def word(register, thread):
    """What a register holds."""
    return register << 8 | thread


@pytest.mark.parametrize("idle", [0.0, 0.4])
@pytest.mark.parametrize("factor_regs", [1, 2])
def test_factors_of_every_mm(factor_regs, idle):
    """Each is in use from three cycles after its claim to three cycles after the next one."""
    params = UNIT.replace(factor_regs=factor_regs)
    dut = elaborated(FactorFetcher, params)
    rng = random.Random(SEED)
    firsts = [rng.randrange(params.regs - 1) for _ in range(60)]
    claims = []  # cycles

    async def registers(ctx):
        async for *_, valid, register in ctx.tick().sample(dut.reads.valid, dut.reads.payload):
            row = [word(register, thread) if valid else rng.getrandbits(32) for thread in range(params.threads)]
            ctx.set(dut.row, row)

    async def steps(ctx):
        """Claims, and looks at the factors in every cycle; a scoreboard that is ready every other cycle at most."""
        uses, cycle, ready = [0, 0], 0, 0
        while len(claims) < len(firsts) or cycle < claims[-1] + 5:
            taken = ctx.get(dut.taken)
            claim = ctx.get(dut.available) and rng.random() >= idle
            ctx.set(dut.claim, claim)
            ctx.set(dut.use, uses.pop(0))
            uses.append(claim)
            if claim:
                claims.append(cycle)
            current = sum(cycle >= claim + 3 for claim in claims)
            if current:
                first = firsts[current - 1]
                expected = [
                    sum(word(first + index, thread) << 32 * index for index in range(factor_regs))
                    for thread in range(params.threads)
                ]
                assert [*ctx.get(dut.o)] == expected
            await ctx.tick()
            ready = 0 if taken else ready or rng.random() >= idle
            ctx.set(dut.ready, ready)
            cycle += 1
        if not idle:
            assert claims == [*range(claims[0], claims[0] + 2 * len(firsts), 2)]

    transact(dut, {"registers": firsts}, seed=SEED, pauses={"registers": idle}, testbenches=[steps],
             background=[registers])  # fmt: skip


SPREAD_SEED = 9


@pytest.mark.parametrize("threads", [4, 21, 80])
def test_every_thread_takes_its_unit(threads):
    """A step a cycle, each with another sharing."""
    dut = elaborated(Spread, UNIT.replace(threads=threads))
    rng = random.Random(SPREAD_SEED)

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


MAC_SEED = 23


@pytest.mark.parametrize(
    ("threads", "factor_regs", "types"),
    [(4, 2, MM_FAMILIES), (7, 1, MM_FAMILIES), (7, 2, ("i8", "i16")), (5, 1, ("i8",))],
)
def test_merge(threads, factor_regs, types):
    params = PE_PRESETS["unit"].replace(threads=threads, factor_regs=factor_regs, types=types)
    kinds = [kind for kind in MmType if kind.family in types]
    rng = np.random.default_rng(MAC_SEED)
    rows, expected = [], []
    for number in range(100):
        kind, kb = kinds[number % len(kinds)], int(rng.integers(1, 5))
        groups = threads // kb
        accumulators, a, b = dot_rows(rng, kind, groups, kb * params.unit_bytes // kind.bytes)
        # Threads left over, and those that only multiply, hold anything in their accumulators.
        words = rng.integers(0, 1 << 32, threads)
        words[: groups * kb : kb] = accumulators
        row = {"type": kind, "select": kb - 1, "accumulators": words.tolist()}
        if not params.floats:
            second = rng.integers(0, 2, threads)
            row |= {"accumulators": (words * (1 - second)).tolist(), "others": (words * second).tolist()}
        for name, elements in (("a", a), ("b", b)):
            units = rng.integers(0, 256, (threads, params.unit_bytes), np.uint8)
            units[: groups * kb] = join_elements(elements).reshape(-1, params.unit_bytes)
            row[name] = [int.from_bytes(unit.tobytes(), "little") for unit in units]
        rows.append(row)
        expected.append((kb, dot(accumulators, a, b, kind).tolist()))
    array = mac_array(params)
    behind = dict.fromkeys(("accumulators", "others"), array.ACCUMULATORS_AFTER)
    for result, (kb, sums) in zip(run_pipeline(array, rows, behind), expected, strict=True):
        assert list(result["o"])[::kb][: len(sums)] == sums
