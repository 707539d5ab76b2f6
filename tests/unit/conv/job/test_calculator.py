"""Sums of products against Python: terms, counts, conditions, overflows, cycles."""

import random

import pytest

from support.streams import pulse
from tilewright.hw.conv.job.calculator import NOT_SUM, SUM, Calculator, Step
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 31
WIDTH = 12
STEPS = (
    Step("a", "m", more=True, fresh=True, keep="product"),
    Step("b", keep="compared"),
    Step(SUM, "n"),
    Step("b", "n", more=True, when="x", keep="more"),
    Step(SUM, "m", fresh=True, when="y"),
    Step("a", more=True, keep="end"),
    Step(NOT_SUM, more=True, fresh=True, keep="turned"),
)


def run_model(terms, times, when):
    """What is found in each step that is taken, as (name, term, count, sum before, sum after, over after), and cycles.

    A skipped step takes one, and so does the end.
    """
    total, over, found, cycles = 0, False, [], 2
    for step in STEPS:
        cycles += 1
        if step.when and not when[step.when]:
            continue
        lost = over and step.term == SUM
        term = {SUM: total, NOT_SUM: ~total % (1 << WIDTH)}.get(step.term, terms.get(step.term))
        count = times[step.times] if step.times else 0
        if step.fresh:
            total, over = 0, False
        before, added = total, term * (count + step.more)
        over = over or (lost and count + step.more > 0) or total + added >= 1 << WIDTH
        total = (total + added) % (1 << WIDTH)
        cycles += max(step.more, count.bit_length())
        if step.keep:
            found.append((step.keep, term, count, before, total, over))
    return found, cycles


async def start(ctx, dut, terms, times, when):
    for port, values in ((dut.terms, terms), (dut.times, times), (dut.when, when)):
        ctx.set(port, values)
    await pulse(ctx, dut.start)


async def collect(ctx, dut):
    """What is found until it is idle, and the cycles since ``start``."""
    names = {number: name for name, number in dut.keeps.items()}
    found, cycles, begun = [], 1, None
    while ctx.get(dut.busy):
        name = names.get(ctx.get(dut.keep))
        if ctx.get(dut.begun):
            begun = ctx.get(dut.term), ctx.get(dut.count), ctx.get(dut.sum)
        if ctx.get(dut.ended) and name:
            found.append((name, *begun, ctx.get(dut.sum), bool(ctx.get(dut.over))))
        await ctx.tick()
        cycles += 1
    return found, cycles


def some_work(rng):
    bits = rng.choice([2, 6, WIDTH])
    terms = {name: rng.getrandbits(bits) for name in "ab"}
    times = {name: rng.getrandbits(rng.choice([0, 1, 3, 6, 16])) for name in "mn"}
    return terms, times, {name: rng.getrandbits(1) for name in "xy"}


def test_sums():
    """Many, one after the other, with the cycles of each."""
    dut, rng = elaborated(Calculator, WIDTH, STEPS), random.Random(SEED)
    overs = set()

    async def bench(ctx):
        for _ in range(150):
            work = some_work(rng)
            await start(ctx, dut, *work)
            found, cycles = await collect(ctx, dut)
            assert (found, cycles) == run_model(*work), work
            assert cycles <= dut.most_cycles
            overs.update(over for *_, over in found)

    simulate(dut, bench)
    assert overs == {False, True}


def test_most_cycles():
    dut = elaborated(Calculator, WIDTH, STEPS)

    async def bench(ctx):
        await start(ctx, dut, {"a": 1, "b": 1}, {"m": 0xFFFF, "n": 0xFFFF}, {"x": 1, "y": 1})
        assert (await collect(ctx, dut))[1] == dut.most_cycles

    simulate(dut, bench)


@pytest.mark.parametrize("width", [0, -1, 2.5, "8"])
def test_wrong_width(width):
    with pytest.raises((TypeError, ValueError), match="width must be"):
        Calculator(width, STEPS)
