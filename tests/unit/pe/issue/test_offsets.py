"""Offsets are read again only if they are in no set, or were written."""

import random

from support.pe_accesses import OffsetSets
from tilewright.hw.pe.issue.offsets import OffsetReuse
from tilewright.hw.pe.layouts import BASES_SETS
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate

PARAMS = PE_PRESETS["unit"]


async def step(ctx, dut, **inputs):
    """A cycle with these inputs; strobes that are not among them are low."""
    for name, value in {"look": 0, "issued": 0, "written": 0, "forget": 0, **inputs}.items():
        ctx.set(getattr(dut, name), value)
    await ctx.tick()


def chosen_set(ctx, dut):
    return ctx.get(dut.bases_set), ctx.get(dut.rebuild)


def test_against_a_list_of_registers():
    dut = elaborated(OffsetReuse, PARAMS)
    rng = random.Random(7)
    counts = {(number, rebuild): 0 for number in range(BASES_SETS) for rebuild in (False, True)}

    async def testbench(ctx):
        sets = OffsetSets()
        for _ in range(2000):
            segment, first, by_rows = rng.randrange(2), rng.choice([4, 4, 5, 20]), rng.random() < 0.2
            last = first + segment  # the rank belongs to the segment
            job = {"segment": segment, "by_rows": by_rows, "first": first, "last": last}
            key, registers = (segment, first, by_rows), range(first, last + 1)
            wanted = sets.find(key)
            await step(ctx, dut, offsets=job, look=1)
            assert chosen_set(ctx, dut) == wanted
            while rng.random() < 0.3:  # other segments may be written before it is issued
                forget = rng.random() < 0.1
                await step(ctx, dut, forget=forget)
                assert chosen_set(ctx, dut) == wanted
                if forget:
                    sets.forget()
            written_first = rng.randrange(24)
            written = {"written_first": written_first, "written_last": written_first + rng.randrange(3)}
            strobes = {"issued": rng.random() < 0.8, "written": rng.random() < 0.5, "forget": rng.random() < 0.03}
            if strobes["forget"]:
                sets.forget()
            if strobes["issued"]:
                counts[wanted] += 1
                sets.use(wanted, key, registers)
            if strobes["written"]:
                sets.write(range(written_first, written["written_last"] + 1))
            await step(ctx, dut, **strobes, **written)

    simulate(dut, testbench)
    assert min(counts.values()) > 50
