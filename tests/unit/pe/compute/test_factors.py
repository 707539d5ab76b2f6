"""Factor fetcher: sets of factors come and go by turns, as early as the scoreboard and the claims let them."""

import random

import pytest

from tilewright.hw.pe.compute.factors import FactorFetcher
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import send

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

    async def source(ctx):
        await send(ctx, dut.registers, firsts, idle=idle, seed=SEED)

    async def registers(ctx):
        async for *_, valid, register in ctx.tick().sample(dut.reads.valid, dut.reads.p):
            row = [word(register, thread) if valid else rng.getrandbits(32) for thread in range(params.threads)]
            ctx.set(dut.row, row)

    async def steps(ctx):
        """Claims, and looks at the factors in every cycle; a scoreboard that is ready every other cycle at most."""
        uses, cycle, ready = [0, 0], 0, 0
        while len(claims) < len(firsts) or cycle < claims[-1] + 5:
            taken = ctx.get(dut.taken)
            claim = ctx.get(dut.held) and rng.random() >= idle
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

    simulate(dut, source, steps, background=[registers])
