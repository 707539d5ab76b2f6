"""The rules of a job, when arithmetic finds something and when not: the first one, and when it comes."""

import random

import pytest

from tilewright.golden.conv.checks import check_job
from tilewright.golden.spec.conv.errors import ConvError
from tilewright.golden.spec.conv.job import JOB
from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.golden.spec.pe.instruction import MM_FAMILIES
from tilewright.hw.conv.job.rules import JobRules
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.random.conv_jobs import garbage_jobs, random_jobs

SEED = 37
BYTES = 4096
PARAMS = ConvUnitParams(CONV_PRESETS["default"], SmemParams(BYTES))
#: What arithmetic finds, in the order of rules; the number of its rule.
FOUND = {("pitch",): 23}
FOUND |= {("outside", name): 24 + n for n, name in enumerate(("barrier", "x", "k", "table", "y", "addend"))}
FOUND |= {("overlap", name): 30 + n for n, name in enumerate(("x", "k", "table", "addend"))}
CODES = {"pitch": ConvError.PITCH, "outside": ConvError.RANGE, "overlap": ConvError.OVERLAP}


async def look(ctx, dut, word, found):
    """Code, field and the cycles until they came."""
    ctx.set(dut.job.as_value(), word)
    ctx.set(dut.found, found)
    ctx.set(dut.start, 1)
    await ctx.tick()
    ctx.set(dut.start, 0)
    ctx.set(dut.looking, 1)
    cycles = 0
    while not ctx.get(dut.done):
        await ctx.tick()
        cycles += 1
    ctx.set(dut.looking, 0)
    return ctx.get(dut.code), ctx.get(dut.field), cycles


def test_found():
    """Each finding alone, and with all that come behind it."""
    dut = elaborated(JobRules, PARAMS)
    good = [job.word for job in random_jobs(SEED, PARAMS.conv, 5, smem_bytes=BYTES)]

    async def bench(ctx):
        for word in good:
            assert await look(ctx, dut, word, {}) == (0, 0, dut.RULES)
        for first, number in FOUND.items():
            for names in ([first], [name for name, behind in FOUND.items() if behind >= number]):
                found = {"outside": {}, "overlap": {}}
                for name in names:
                    (found[name[0]] if name[1:] else found)[name[-1]] = 1
                field = JOB.index(first[-1] if first[1:] else "y_pitch")
                assert await look(ctx, dut, good[0], found) == (CODES[first[0]], field, number)

    simulate(dut, bench)


@pytest.mark.parametrize("types", [("i8", "i16"), MM_FAMILIES, ("f16",)], ids=",".join)
def test_fields(types):
    """Garbage: the rules that need no sums."""
    params = PARAMS.replace(conv=PARAMS.conv.replace(types=types))
    dut, rng = elaborated(JobRules, params), random.Random(SEED)

    async def bench(ctx):
        for word in garbage_jobs(SEED, params.conv, 200, smem_bytes=BYTES):
            fields = JOB.unpack(word)
            refused = check_job(word, params.conv, BYTES)
            code = refused.code if refused else ConvError.NONE
            found = {"apart": fields["x_pitch"][0] != fields["channels"] * (1 + (fields["type"] >= 4))}
            result = await look(ctx, dut, word, found | {"pitch": rng.getrandbits(1)})
            if ConvError.NONE < code < ConvError.PITCH:
                assert result[:2] == (code, JOB.index(refused.field)), fields
            else:
                assert result[0] in (ConvError.PITCH, ConvError.NONE), fields

    simulate(dut, bench, deadline=15_000)


@pytest.mark.parametrize("after", [1, 3, 20])
def test_looking_holds(after):
    """Without ``looking`` it stays where it is."""
    dut = elaborated(JobRules, PARAMS)
    (good,) = random_jobs(SEED, PARAMS.conv, 1, smem_bytes=BYTES)

    async def bench(ctx):
        ctx.set(dut.job.as_value(), good.word)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        ctx.set(dut.looking, 1)
        await ctx.tick().repeat(dut.RULES - after)
        ctx.set(dut.looking, 0)
        await ctx.tick().repeat(5)
        ctx.set(dut.looking, 1)
        await ctx.tick().repeat(after)
        assert ctx.get(dut.done) and not ctx.get(dut.code)

    simulate(dut, bench)
