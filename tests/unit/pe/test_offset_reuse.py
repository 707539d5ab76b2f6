"""Offsets are read again exactly if something else was read last, or they were written since."""

import random

from tilewright.hw.pe.offset_reuse import OffsetReuse
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pysim import simulate


def test_against_a_list_of_registers():
    dut = OffsetReuse(PE_PRESETS["unit"])
    rng = random.Random(7)
    seen = {False: 0, True: 0}

    async def testbench(ctx):
        kept = None  # (segment, registers) that were read last and are still as they were
        for _ in range(3000):
            segment, first = rng.randrange(2), rng.choice([4, 4, 5])
            last = first + segment  # the rank belongs to the segment
            written_first = rng.randrange(12)
            written_last = written_first + rng.randrange(3)
            strobes = {"issued": rng.random() < 0.4, "written": rng.random() < 0.3, "forget": rng.random() < 0.03}
            inputs = {"segment": segment, "first": first, "last": last, **strobes}
            inputs |= {"written_first": written_first, "written_last": written_last}
            for name, value in inputs.items():
                ctx.set(getattr(dut, name), value)
            job = (segment, set(range(first, last + 1)))
            rebuild = job != kept
            assert ctx.get(dut.rebuild) == rebuild
            if strobes["issued"]:
                seen[rebuild] += 1
                kept = job
            elif strobes["forget"]:
                kept = None
            if strobes["written"] and kept and kept[1] & set(range(written_first, written_last + 1)):
                kept = None
            await ctx.tick()

    simulate(dut, testbench)
    assert min(seen.values()) > 100
