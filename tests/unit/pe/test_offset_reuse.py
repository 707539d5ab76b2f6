"""Offsets are read again exactly if they are in no set, or were written since."""

import random

import pytest

from tilewright.hw.pe.layouts import BASES_SETS
from tilewright.hw.pe.offset_reuse import OffsetReuse
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pe_accesses import OffsetSets
from tilewright.sim.pysim import simulate


def test_against_a_list_of_registers():
    dut = OffsetReuse(PE_PRESETS["unit"])
    rng = random.Random(7)
    seen = {(number, rebuild): 0 for number in range(BASES_SETS) for rebuild in (False, True)}

    async def testbench(ctx):
        sets, looked = OffsetSets(), None  # what a job was told that is still to be issued
        for _ in range(5000):
            if looked is None:
                segment, first, by_rows = rng.randrange(2), rng.choice([4, 4, 5, 20]), rng.random() < 0.2
            last = first + segment  # the rank belongs to the segment
            key = (segment, first, by_rows)
            written_first = rng.randrange(24)
            written_last = written_first + rng.randrange(3)
            strobes = {"issued": rng.random() < 0.5, "forget": rng.random() < 0.02}
            strobes["written"] = rng.random() < 0.3 and (looked is None or strobes["issued"])
            inputs = {"segment": segment, "by_rows": by_rows, "first": first, "last": last, **strobes}
            inputs |= {"written_first": written_first, "written_last": written_last}
            for name, value in inputs.items():
                ctx.set(getattr(dut, name), value)
            found = sets.find(key)
            assert (ctx.get(dut.bases_set), ctx.get(dut.rebuild)) == found
            looked = looked or found
            ctx.set(dut.issued_set, looked[0])
            if strobes["forget"]:
                sets.forget()
            if strobes["issued"]:
                seen[looked] += 1
                sets.use(looked[0], key, range(first, last + 1))
            if strobes["written"]:
                sets.write(range(written_first, written_last + 1))
            if strobes["issued"] or rng.random() < 0.5:
                looked = None
            await ctx.tick()

    simulate(dut, testbench)
    assert min(seen.values()) > 50


@pytest.mark.parametrize("blocks", range(1, BASES_SETS + 2))
def test_as_many_take_turns_as_there_are_sets(blocks):
    dut = OffsetReuse(PE_PRESETS["unit"])
    fits = blocks <= BASES_SETS

    async def testbench(ctx):
        ctx.set(dut.issued, 1)
        for number in range(6 * blocks):
            ctx.set(dut.first, 2 * (number % blocks))
            ctx.set(dut.last, 2 * (number % blocks) + 1)
            ctx.set(dut.issued_set, ctx.get(dut.bases_set))
            assert ctx.get(dut.bases_set) == number % (blocks if fits else BASES_SETS)
            assert ctx.get(dut.rebuild) == (number < blocks or not fits)
            await ctx.tick()

    simulate(dut, testbench)


def test_a_set_that_was_overwritten_is_replaced_before_a_good_one():
    dut = OffsetReuse(PE_PRESETS["unit"])
    rewritten = 2

    async def testbench(ctx):
        for turn in range(5):
            for block in range(BASES_SETS):
                for name in ("first", "last"):
                    ctx.set(getattr(dut, name), block)
                ctx.set(dut.issued, 1)
                ctx.set(dut.issued_set, ctx.get(dut.bases_set))
                assert ctx.get(dut.bases_set) == block
                assert ctx.get(dut.rebuild) == (turn == 0 or block == rewritten)
                await ctx.tick()
            ctx.set(dut.issued, 0)
            for name in ("written_first", "written_last"):
                ctx.set(getattr(dut, name), rewritten)
            ctx.set(dut.written, 1)
            await ctx.tick()
            ctx.set(dut.written, 0)

    simulate(dut, testbench)
