"""Predicates: what was written is read in the next cycle, at both ports, and the other bits stay."""

import random

import pytest

from tilewright.hw.pe.layouts import PREDICATES
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.hw.pe.state.predicates import PredicateFile
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 20261121


@pytest.mark.parametrize("threads", [4, 24])
def test_writes_and_reads(threads):
    params = PE_PRESETS["unit"].replace(threads=threads)
    dut = elaborated(PredicateFile, params)
    rng = random.Random(SEED)
    rows = [[0] * params.groups for _ in range(LANES)]  # by lane, by group

    async def run(ctx):
        shown = [0] * LANES  # at the sequencer's port
        for cycle in range(400):
            write = {
                "predicate": rng.randrange(PREDICATES),
                "group": rng.randrange(params.groups),
                "lanes": rng.getrandbits(LANES),
                "values": rng.getrandbits(LANES),
            }
            valid, enable = rng.randrange(2), rng.randrange(2)
            predicate, issue_predicate = rng.randrange(PREDICATES), rng.randrange(PREDICATES)
            groups, issue_group = [rng.randrange(params.groups) for _ in range(LANES)], rng.randrange(params.groups)
            ctx.set(dut.writes.payload, write)
            ctx.set(dut.writes.valid, valid)
            ctx.set(dut.reads.enable, enable)
            ctx.set(dut.reads.predicate, predicate)
            ctx.set(dut.issue_reads.group, issue_group)
            ctx.set(dut.issue_reads.predicate, issue_predicate)
            for lane in range(LANES):
                ctx.set(dut.reads.groups[lane], groups[lane])
            assert ctx.get(dut.writes.ready)
            await ctx.tick()
            if enable:
                shown = [rows[lane][groups[lane]] >> predicate & 1 for lane in range(LANES)]
            if enable or cycle:
                assert [ctx.get(value) for value in dut.reads.values] == shown
            wanted = [row[issue_group] >> issue_predicate & 1 for row in rows]
            assert [ctx.get(value) for value in dut.issue_reads.values] == wanted
            for lane in range(LANES):
                if valid and write["lanes"] >> lane & 1:
                    bit = 1 << write["predicate"]
                    kept = rows[lane][write["group"]] & ~bit
                    rows[lane][write["group"]] = kept | (bit if write["values"] >> lane & 1 else 0)

    print(f"seed {SEED}")
    simulate(dut, run)
