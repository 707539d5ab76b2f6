"""Counters that take turns: every number that is told is what has been counted until then."""

import random

import pytest

from tilewright.hw.bus.counters import Counters, widths_of
from tilewright.sim.pysim.simulate import simulate

SEED = 20261128
WIDTHS = {"cycles": 1, "rows": 4, "bytes": 13}


def test_widths():
    dut = Counters(WIDTHS)
    assert widths_of({"one": ~dut.clear, "two": dut.value}) == {"one": 1, "two": 32}


def test_one_counter():
    with pytest.raises(ValueError, match=r"^there must be two counters at least, not 1$"):
        Counters({"cycles": 1})


@pytest.mark.parametrize("widths", [WIDTHS, dict.fromkeys("abcdefghijklmnop", 1)], ids=["three", "sixteen"])
def test_counts(widths):
    """Mostly all that fits; a clear now and then. An answer is there within a round."""
    dut, names, rng = Counters(widths), list(widths), random.Random(SEED)
    counts, answers = dict.fromkeys(names, 0), 0

    async def script(ctx):
        nonlocal answers
        last, before = dict.fromkeys(names, 0), dict(counts)
        waited = asked = 0
        for _ in range(3000):
            more = {name: rng.choice((0, (1 << width) - 1, (1 << width) - 1)) for name, width in widths.items()}
            clear = rng.random() < 0.01
            if not asked and rng.random() < 0.3:
                asked, waited = 1, 0
                ctx.set(dut.which, rng.randrange(len(names)))
            ctx.set(dut.asked, asked)
            ctx.set(dut.more, more)
            ctx.set(dut.clear, clear)
            if asked and ctx.get(dut.told):
                assert ctx.get(dut.value) == before[names[ctx.get(dut.which)]]
                answers, asked = answers + 1, 0
                ctx.set(dut.asked, 0)
            waited += 1
            assert waited <= len(names) or not asked
            await ctx.tick()
            # What is added in a cycle counts a cycle later, unless all is cleared then.
            before.update(counts)
            counts.update({name: 0 if clear else counts[name] + last[name] for name in names})
            last = more

    simulate(dut, script)
    assert answers > 200


def test_wraps():
    """Modulo 2^32; what is added before the reset's numbers have had a turn is not lost."""
    dut = Counters({"most": 32, "none": 1})

    async def script(ctx):
        ctx.set(dut.more, {"most": 0xFFFF_FFFF, "none": 0})
        await ctx.tick().repeat(5)
        ctx.set(dut.more, {"most": 0, "none": 0})
        await ctx.tick().repeat(2)
        ctx.set(dut.asked, 1)
        (value,) = await ctx.tick().sample(dut.value).until(dut.told)
        assert value == 2**32 - 5

    simulate(dut, script)
