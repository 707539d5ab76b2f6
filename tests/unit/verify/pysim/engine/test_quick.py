"""The engine of unit tests against Amaranth's own: the same values in every cycle."""

import random
from contextlib import nullcontext

import pytest
from amaranth.hdl import Array, Cat, ClockDomain, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator
from amaranth.sim.pysim import PySimEngine

from tilewright.sim.hdl.elaboration import quick_elaboration
from tilewright.verify.pysim.engine.quick import QuickEngine

CYCLES = 60
PAIR = data.StructLayout({"low": signed(5), "high": unsigned(3)})


def random_value(rng, leaves, depth):
    """An expression of all kinds of values, over ``leaves``."""

    def part():
        return random_value(rng, leaves, depth - 1)

    if depth == 0:
        return rng.choice(leaves) if rng.random() < 0.85 else Const(rng.randrange(-20, 40), rng.choice([7, signed(6)]))
    match rng.randrange(12):
        case 0:
            return rng.choice([lambda a: ~a, lambda a: -a, abs])(part())
        case 1:
            value = part()
            return rng.choice([value.any, value.all, value.xor, value.bool])()
        case 2:
            value = part()
            return rng.choice([value.as_signed, value.as_signed().as_unsigned, (value.as_signed() + 1).as_unsigned])()
        case 3:
            a, b = part(), part()
            return rng.choice([a + b, a - b, a[:9] * b[:9], a & b, a | b, a ^ b])
        case 4:
            a, b = part(), part()
            return rng.choice([a == b, a != b, a < b, a <= b, a > b, a >= b])
        case 5:
            a, b = part(), part()[:3]
            return rng.choice([a << b, a >> b, a // b, a % b])
        case 6:
            value = part()
            start = rng.randrange(len(value))
            return value[start : rng.randrange(start, len(value)) + 1]
        case 7:
            return part().bit_select(part()[:2], 3)
        case 8:
            return Cat(Mux(part(), part().as_signed(), part()), part(), part()[:0])
        case 9:
            return Mux(part(), part(), part())
        case 10:
            return Array([part(), part(), part()])[part()[:2]]
        case _:
            return part()[:40]


def random_design(rng):
    """Two modules with inputs, registers that feed their expressions, and a memory; what may be looked at."""
    m = Module()
    m.submodules.inner = inner = Module()
    inputs = [Signal(1), Signal(8), Signal(signed(6)), Signal(PAIR)]
    registers = [Signal(9), Signal(signed(7), init=-5), Signal(70, reset_less=True)]
    m.submodules.memory = memory = Memory(shape=unsigned(9), depth=6, init=[7, 5])
    write, read, look = memory.write_port(), memory.read_port(), memory.read_port(domain="comb")
    shared = Signal(signed(9))
    m.d.comb += [shared[:4].eq(registers[0]), look.addr.eq(inputs[1])]
    inner.d.comb += shared[6:].eq(inputs[1])
    leaves = [*inputs[:3], inputs[3].low, inputs[3].high, *registers, read.data, look.data, shared]
    seen = [*leaves, inputs[3]]
    for name in ["comb"] * 9 + ["sync"] * 3:
        module = rng.choice([m, inner])
        domain = module.d[name]
        target = registers.pop() if name == "sync" else Signal(rng.choice([1, 8, 30, signed(4), signed(9), signed(33)]))
        beside = Signal(5, reset_less=True)
        value = random_value(rng, leaves, 3)
        domain += [
            target.eq(rng.choice([value, value.as_unsigned()[: len(target)]])),
            beside.eq(random_value(rng, leaves, 1)),
        ]
        with module.Switch(Cat(random_value(rng, leaves, 1), Const(0, 4))[:4]):
            with module.Case("1--0", "0011"):
                domain += target[: rng.randrange(1, len(target) + 1)].eq(random_value(rng, leaves, 2))
            with module.Case(5, 9):
                domain += target.bit_select(random_value(rng, leaves, 1)[:3], 1).eq(random_value(rng, leaves, 1))
            with module.Case("-0--"):
                pass
            with module.Default():
                domain += Cat(beside, target)[rng.randrange(3) : rng.choice([4, 6])].eq(random_value(rng, leaves, 2))
        if name == "comb":
            leaves += [target, beside]
            seen += [target, beside]
    m.d.comb += [
        write.addr.eq(random_value(rng, leaves, 1)),
        write.data.eq(random_value(rng, leaves, 1)),
        write.en.eq(random_value(rng, leaves, 1)),
        read.addr.eq(random_value(rng, leaves, 1)),
    ]
    return m, inputs, [*seen, *(random_value(rng, leaves, 2) for _ in range(3))]


def history(engine, seed, watched=False, waves=None):
    """What testbenches sample and look at in each cycle: the second one sees what the first one has set."""
    rng = random.Random(seed)
    design, inputs, seen = random_design(rng)
    found = []

    def random_input(value):
        return value.shape().from_bits(rng.getrandbits(8)) if value is inputs[3] else rng.getrandbits(8)

    async def testbench(ctx):
        ticks = aiter(ctx.tick().sample(*seen))
        for _ in range(CYCLES):
            for value in inputs:
                ctx.set(value, random_input(value))
                ctx.set(value, random_input(value))
            ctx.set(Cat(inputs[1][2:5], inputs[2]), rng.getrandbits(9))
            ctx.set(inputs[3].low, rng.randrange(-16, 16))
            if rng.random() < 0.5:
                found.append([ctx.get(value) for value in seen])
            found.append(await anext(ticks))
        # What was set before is no change.
        ctx.set(inputs[0], 1 - ctx.get(inputs[0]))
        found.append(await ctx.changed(inputs[0]).delay(2e-6))

    async def other(ctx):
        while True:
            found.append([ctx.get(value) for value in seen])
            if rng.random() < 0.5:
                ctx.set(inputs[1], rng.getrandbits(8))
            await ctx.tick()

    async def watch(ctx):
        async for values in ctx.changed(*inputs):
            found.append(values)

    with quick_elaboration():
        simulator = Simulator(design, engine=engine)
        simulator.add_clock(1e-6)
        simulator.add_testbench(testbench)
        simulator.add_testbench(other, background=True)
        if watched:
            simulator.add_process(watch)
        with nullcontext() if waves is None else simulator.write_vcd(waves):
            simulator.run()
        simulator.reset()
        rng.seed(seed)
        simulator.run()
    return str(found)


def seeds(short, long):
    return [*range(short), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(short, long))]


@pytest.mark.parametrize("seed", seeds(12, 30))
def test_random_designs_do_the_same(seed):
    print(f"seed {seed}")
    assert history(QuickEngine, seed) == history(PySimEngine, seed)


@pytest.mark.parametrize("seed", seeds(4, 10))
def test_what_waits_for_changes_meets_the_same(seed):
    print(f"seed {seed}")
    assert history(QuickEngine, seed, watched=True) == history(PySimEngine, seed, watched=True)


@pytest.mark.parametrize("engine", [QuickEngine, PySimEngine])
def test_a_clock_that_a_testbench_drives_loses_no_edge(engine):
    m = Module()
    m.domains.hand = hand = ClockDomain(reset_less=True)
    count = Signal(4)
    m.d.hand += count.eq(count + 1)

    async def testbench(ctx):
        for edges in range(4):
            for clock, high in ((hand.clk, 1), (hand.clk.as_signed(), -1)):
                ctx.set(clock, high)
                ctx.set(clock, 0)
            assert ctx.get(count) == 2 * edges + 2

    simulator = Simulator(m, engine=engine)
    simulator.add_testbench(testbench)
    simulator.run()


def waveforms(path):
    """Names of variables, and at each time those that have another value than before."""
    head, _, body = path.read_text().partition("$enddefinitions")
    changes, before, now = [], {}, {}
    for line in body.splitlines():
        if line.startswith("#"):
            changes.append({name: value for name, value in now.items() if before.get(name) != value})
            before, now = before | now, {}
            changes.append(line)
        elif line.startswith("b"):
            value, name = line.split()
            now[name] = value
        elif line[:1] in ("0", "1"):
            now[line[1:]] = line[0]
    return [line for line in head.splitlines() if line.startswith("$var")], [change for change in changes if change]


def test_waveforms_are_the_same(tmp_path):
    for engine in (QuickEngine, PySimEngine):
        history(engine, 1, waves=str(tmp_path / engine.__name__))
    variables, changes = waveforms(tmp_path / "QuickEngine")
    assert len(variables) > 30 and len(changes) > 2 * CYCLES
    assert (variables, changes) == waveforms(tmp_path / "PySimEngine")
