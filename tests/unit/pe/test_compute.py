"""Compute path, register file and scoreboard: random mm between loads against a loop over columns; rates, stalls."""

import random
from itertools import pairwise

import numpy as np
import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from support.selection import cases
from tilewright.golden.dot_product import dot
from tilewright.hw.lib.logic import delay
from tilewright.hw.pe.compute import ComputePath, mac_array
from tilewright.hw.pe.issue.scoreboard import Scoreboard
from tilewright.hw.pe.layouts import SHARINGS, SPLIT_COLUMNS, columns_per_item
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.hw.pe.registers import RegisterFile
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send

SEED = 13
UNIT = PE_PRESETS["unit"].replace(regs=64, mm_in_flight=4)
MASK = 0xFFFFFFFF


class SmallArray(wiring.Component):
    """Multiplies the low words of a and b, whatever the type: enough to tell every unit from every other."""

    LATENCY = 3
    ACCUMULATORS_AFTER = 0

    def __init__(self, params):
        unit = data.ArrayLayout(params.unit_bits, params.threads)
        word = data.ArrayLayout(32, params.threads)
        super().__init__(
            {"type": In(4), "select": In(2), "a": In(unit), "b": In(unit), "accumulators": In(word), "o": Out(word)}
        )

    def elaborate(self, platform):
        m = Module()
        threads = len(self.o.as_value()) // 32
        after = self.ACCUMULATORS_AFTER
        delayed = [Signal.like(self.o, name=f"delay{n}") for n in range(self.LATENCY - after)]
        products = [
            delay(m, (self.a[thread][:32] * self.b[thread][:32])[:32], after, name=f"product{thread}")
            for thread in range(threads)
        ]
        select = delay(m, self.select, after, name="selected")
        for thread in range(threads):
            with m.Switch(select):
                for kb in range(4):
                    with m.Case(kb):
                        m.d.sync += delayed[0][thread].eq(
                            self.accumulators[thread] + sum(products[thread : thread + kb + 1])
                        )
        m.d.sync += [later.eq(earlier) for earlier, later in pairwise(delayed)]
        m.d.comb += self.o.eq(delayed[-1])
        return m


class LateArray(SmallArray):
    """The same, whose accumulators come a cycle later."""

    ACCUMULATORS_AFTER = 1


def small_dot(accumulator, a, b, _):
    """What SmallArray does: a and b are lists of units."""
    return (accumulator + sum((item & MASK) * (other & MASK) for item, other in zip(a, b, strict=True))) & MASK


def golden_dot(accumulator, a, b, mm_type):
    """The same by the golden model."""
    width = 8 * MmType(mm_type).bytes

    def elements(units):
        return np.array([[unit >> bit & (1 << width) - 1 for unit in units for bit in range(0, UNIT.unit_bits, width)]])

    return int(dot(np.array([accumulator], np.uint32), elements(a), elements(b), MmType(mm_type))[0])


class Rig(Elaboratable):
    """The compute path between its neighbours."""

    def __init__(self, params, array):
        self.params = params
        self.compute = ComputePath(params, array(params))
        self.registers = RegisterFile(params)
        self.scoreboard = Scoreboard(params)

    def elaborate(self, platform):
        m = Module()
        m.submodules.compute = compute = self.compute
        m.submodules.registers = registers = self.registers
        m.submodules.scoreboard = scoreboard = self.scoreboard
        wiring.connect(m, compute=compute.registers, registers=registers.compute)
        wiring.connect(m, compute=compute.order, scoreboard=scoreboard.compute)
        return m

    def word(self, ctx, register, thread):
        return ctx.get(self.registers.banks[register % 2].data[register // 2]) >> 32 * thread & MASK

    def fill(self, ctx, table):
        """``table[register][thread]`` into the file."""
        for register, row in enumerate(table):
            packed = sum(word << 32 * thread for thread, word in enumerate(row))
            ctx.set(self.registers.banks[register % 2].data[register // 2], packed)


def random_mm(rng, params, ka, kb, *, rc, ra, mm_type=0, columns=None, density=0.8):
    """An mm: its fields, whether each column is on, and its units."""
    columns = params.threads if columns is None else columns
    return {
        "ka": ka,
        "kb": kb,
        "rc": rc,
        "ra": ra,
        "type": mm_type,
        "on": [rng.random() < density for _ in range(columns)],
        "units": [[rng.getrandbits(params.unit_bits) for _ in range(kb)] for _ in range(columns)],
    }


def items_of(mm):
    """The items that memory makes of it: those with nothing on are left out, other than the last."""
    ka, kb = mm["ka"], mm["kb"]
    items, first, columns = [], 0, len(mm["on"])
    while first < columns:
        count = columns_per_item(ka, kb) if first % ka == 0 else ka - SPLIT_COLUMNS
        here = range(first, min(columns, first + count))
        units = [unit for column in here for unit in mm["units"][column]]
        item = {
            "units": units + [0] * (LANES - len(units)),
            "on": sum(mm["on"][column] << column - first for column in here),
            "register": mm["rc"] + first // ka,
            "first_member": first % ka,
            "last": here[-1] == columns - 1,
        }
        if item["on"] or item["last"]:
            items.append(item)
        first += count
    return items


def multiply(table, mm, threads, dot_of):
    """The loop of docs/pe.md."""
    ka, kb, ra = mm["ka"], mm["kb"], mm["ra"]
    a = [[sum(table[ra + f][i] << 32 * f for f in range(UNIT.factor_regs))] for i in range(threads)]
    for column, on in enumerate(mm["on"]):
        for group in range(threads // (ka * kb) if on else 0):
            i = group * ka * kb + column % ka * kb
            row = table[mm["rc"] + column // ka]
            row[i] = dot_of(row[i], [a[i + q][0] for q in range(kb)], mm["units"][column], mm["type"])


def run(params, array, program, table, *, idle=0.0):
    """Runs mm and loads (dictionaries with ``register`` and ``rows``); returns the file and counted strobes."""
    rig = elaborated(Rig, params, array)
    compute, scoreboard, registers = rig.compute, rig.scoreboard, rig.registers
    access, rng = scoreboard.access, random.Random(SEED)
    loading = []  # loads under way
    counts = dict.fromkeys(("step", "stall_columns", "stall_factors", "stall_product"), 0)
    cycles = []  # of the steps
    result = []

    async def issue(ctx):
        rig.fill(ctx, table)
        for item in program:
            while rng.random() < idle:
                await ctx.tick()
            if "rows" in item:
                written = {"first": item["register"], "last": item["register"] + len(item["rows"]) - 1}
                ctx.set(access.valid, 1)
                ctx.set(access.writes, 1)
                ctx.set(access.registers, written)
                while not (ctx.get(access.clear) and ctx.get(scoreboard.load_registers.ready)):
                    await ctx.tick()
                await send(ctx, scoreboard.load_registers, [written])
                loading.append(item)  # a load is done when it is under way, and not before
                continue
            while not ctx.get(scoreboard.mm_registers.ready):
                await ctx.tick()
            accumulators = {"first": item["rc"], "last": item["rc"] + -(-len(item["on"]) // item["ka"]) - 1}
            factors = {"first": item["ra"], "last": item["ra"] + params.factor_regs - 1}
            ctx.set(scoreboard.mm_registers.payload, {"accumulators": accumulators, "factors": factors})
            ctx.set(scoreboard.mm_registers.valid, 1)
            multiply = {"type": item["type"], "ka": item["ka"] - 1, "kb": item["kb"] - 1, "ra": item["ra"]}
            ctx.set(compute.multiplies.payload, multiply)
            ctx.set(compute.multiplies.valid, 1)
            assert ctx.get(compute.multiplies.ready), "as many fit as the scoreboard lets in"
            await ctx.tick()
            ctx.set(scoreboard.mm_registers.valid, 0)
            ctx.set(compute.multiplies.valid, 0)
        while not ctx.get(scoreboard.empty) or loading:
            await ctx.tick()
        result.extend([rig.word(ctx, r, i) for i in range(params.threads)] for r in range(params.regs))

    async def columns(ctx):
        items = [item for mm in program if "rows" not in mm for item in items_of(mm)]
        await send(ctx, compute.columns, items, idle=idle, seed=SEED)

    async def land(ctx):
        while True:
            if not loading or rng.random() < 0.3:
                await ctx.tick()
                continue
            load = loading[0]
            writes = [
                {"register": load["register"] + n, "group": group, "lanes": (1 << lanes) - 1, "data": words}
                for n, row in enumerate(load["rows"])
                for group in range(params.groups)
                for lanes in [min(LANES, params.threads - LANES * group)]
                for words in [(row[LANES * group :] + [0] * LANES)[:LANES]]
            ]
            for write in writes:
                ctx.set(registers.loads.payload, write)
                ctx.set(registers.loads.valid, 1)
                while not ctx.get(registers.loads.ready):
                    await ctx.tick()
                ctx.set(scoreboard.load_done, write is writes[-1])
                await ctx.tick()
            ctx.set(registers.loads.valid, 0)
            ctx.set(scoreboard.load_done, 0)
            loading.pop(0)

    async def count(ctx):
        names = list(counts)
        cycle = 0
        async for *_, strobes in ctx.tick().sample(Cat(getattr(compute, name) for name in names)):
            for bit, name in enumerate(names):
                counts[name] += strobes >> bit & 1
            if strobes & 1:
                cycles.append(cycle)
            cycle += 1

    simulate(rig, issue, columns, background=[land, count], deadline=50_000)
    return result, counts | {"cycles": cycles}


def random_table(rng, params):
    return [[rng.getrandbits(32) for _ in range(params.threads)] for _ in range(params.regs)]


def expected(program, table, threads, dot_of):
    table = [row[:] for row in table]
    for item in program:
        if "rows" in item:
            for n, row in enumerate(item["rows"]):
                table[item["register"] + n] = row[:]
        else:
            multiply(table, item, threads, dot_of)
    return table


def random_program(rng, params, sharings, types=(0,)):
    """Many mm that share accumulators, between loads."""
    program = []
    for ka, kb in sharings:
        if rng.random() < 0.4:
            rows = [[rng.getrandbits(32) for _ in range(params.threads)] for _ in range(rng.randrange(1, 4))]
            program.append({"register": rng.randrange(60), "rows": rows})
        rc, ra = rng.choice([8, 30, rng.randrange(44)]), rng.randrange(62)
        density = rng.choice([0, 0.4, 1])
        program.append(random_mm(rng, params, ka, kb, rc=rc, ra=ra, mm_type=rng.choice(types), density=density))
    return program


@cases("array, threads, idle, factor_regs",
       [(SmallArray, 4, 0, 2), (SmallArray, 4, 0.5, 1), (SmallArray, 20, 0.5, 2), (LateArray, 4, 0, 2)],
       [(SmallArray, 12, 0, 2), (SmallArray, 12, 0.5, 2), (SmallArray, 20, 0, 2), (LateArray, 12, 0.5, 2)])  # fmt: skip
def test_random_programs(array, threads, idle, factor_regs):
    """Every sharing, clashes of every kind: accumulators that are factors, loads of both."""
    params = UNIT.replace(threads=threads, factor_regs=factor_regs)
    rng = random.Random(threads)
    program = random_program(rng, params, rng.sample(SHARINGS * 2, 32))
    table = random_table(rng, params)
    result, counts = run(params, array, program, table, idle=idle)
    assert result == expected(program, table, threads, small_dot)
    assert min(counts[name] for name in ("step", "stall_columns", "stall_factors", "stall_product")) > 0, counts


@pytest.mark.parametrize("types", [UNIT.types, ("i8", "i16")], ids=["all types", "integers"])
def test_the_array_of_the_engine(types):
    """All types, by the golden model's numbers."""
    params = UNIT.replace(threads=6, types=types)
    rng, kinds = random.Random(SEED), [kind for kind in MmType if kind.family in types]
    program = random_program(rng, params, [(1, 1), (2, 1), (1, 2), (2, 3), (1, 4), (1, 3)] * 2, types=kinds)
    table = random_table(rng, params)
    result, _ = run(params, mac_array, program, table)
    assert result == expected(program, table, params.threads, golden_dot)


@pytest.mark.parametrize(
    ("ka", "kb", "columns", "apart"),
    [
        *((ka, kb, 16, 1) for ka, kb in [(1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (2, 2), (4, 2)]),
        (1, 1, 2, 1),  # two steps hide the reading of the next factors,
        (2, 1, 2, 2),  # one step does not
    ],
)
def test_one_step_a_cycle(ka, kb, columns, apart):
    """From the first step to the last, over many mm with alternating accumulators."""
    params = UNIT.replace(threads=16, mm_in_flight=8)
    rng = random.Random(SEED)
    program = [random_mm(rng, params, ka, kb, rc=16 * (n % 3), ra=60, columns=columns, density=1) for n in range(12)]
    _, counts = run(params, SmallArray, program, random_table(rng, params))
    steps = 12 * columns // ka
    assert [cycle - counts["cycles"][0] for cycle in counts["cycles"]] == [*range(0, apart * steps, apart)]


@pytest.mark.parametrize("array", [SmallArray, LateArray])
def test_steps_of_one_accumulator_are_as_far_apart_as_the_array_is_long(array):
    rng = random.Random(SEED)
    program = [random_mm(rng, UNIT, 1, 1, rc=5, ra=60, columns=1, density=1) for _ in range(10)]
    _, counts = run(UNIT, array, program, random_table(rng, UNIT))
    apart = array.LATENCY + 2 - array.ACCUMULATORS_AFTER
    assert [cycle - counts["cycles"][0] for cycle in counts["cycles"]] == [*range(0, 10 * apart, apart)]


def test_a_load_takes_one_step_from_results_of_its_bank():
    """Every accumulator, and the loaded register, is in the even bank."""
    rng = random.Random(SEED)
    program = [random_mm(rng, UNIT, 1, 1, rc=16 * (n % 3), ra=60, columns=16, density=1) for n in range(12)]
    for mm in program:
        mm["on"] = [True, False] * 8
    program.insert(9, {"register": 48, "rows": [[1, 2, 3, 4]]})
    table = random_table(rng, UNIT)
    result, counts = run(UNIT, SmallArray, program, table)
    assert result == expected(program, table, UNIT.threads, small_dot)
    cycles = counts["cycles"]
    assert sorted(b - a for a, b in pairwise(cycles)) == [1] * (12 * 8 - 2) + [2]
