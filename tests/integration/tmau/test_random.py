"""Random batches of commands: hardware against the golden model, with everything that can be seen from outside.

``sim/random/batches.py`` draws the batches, ``sim/compare/batch_run.py`` compares. A failure prints the smallest batch
that still fails as a replay case, which can be kept in a file under ``tests/vectors/``.
"""

import shutil
from dataclasses import replace

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.cli import main
from tilewright.sim.compare.batch_run import RandomRun, expected_words
from tilewright.sim.coverage.load_features import features
from tilewright.sim.coverage.loads import load_coverage
from tilewright.sim.random.batches import random_batches
from tilewright.sim.results import record
from tilewright.sim.session.tmau import TmauSession

SEED = 10

#: Different descriptors of each run.
PLAN = {
    ("unit", "verilator"): 1300,
    ("ecp5", "verilator"): 700,
    ("default", "verilator"): 1100,
    ("full", "verilator"): 120,
    ("unit", "icarus"): 10,
}

#: Presets whose models nothing else needs.
LONG = [pytest.param(preset, marks=pytest.mark.long) for preset in ("ecp5", "default", "full")]


def compare(preset, simulator):
    descriptors = PLAN[preset, simulator]
    print(f"{preset} on {simulator}: seed {SEED}, {descriptors} descriptors")
    with TmauSession(preset, simulator=simulator) as session:
        run = RandomRun(session)
        for batch in random_batches(SEED, session.params, descriptors):
            if run.run(batch):
                record(f"random-{preset}-{simulator}", cases=descriptors, mismatches=1, seed=SEED)
                pytest.fail(run.report(batch), pytrace=False)
    record(f"random-{preset}-{simulator}", cases=descriptors, mismatches=0, seed=SEED, commands=run.loads)
    record(f"preset-{preset}-{simulator}", preset=preset, simulated=True)
    # Commands met their descriptors in all ways: some found them, some were the first, some found them evicted.
    assert run.hits
    assert run.misses > session.params.cache_entries


@pytest.mark.parametrize("preset", ["unit", *LONG])
def test_random_commands_on_verilator(preset):
    compare(preset, "verilator")


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog is not installed")
@pytest.mark.parametrize("preset", [preset for preset, simulator in PLAN if simulator == "icarus"])
def test_random_commands_on_icarus(preset):
    compare(preset, "icarus")


#: Bins that hardly any box hits which fits the 4 KiB of preset unit's shared memory.
LARGE = {
    *(
        f"{place}page edges crosses more"
        for place in ("", *(f"base in page {at} × " for at in (0, 16, "middle", 4080)))
    ),
    "base in page 16 × page edges ends on one",
    *(f"swizzle none × row bytes 256 × line in 1 KiB {line}" for line in (4, 6, 7)),
    *(f"element bytes {size} × box of dimension 4 {count}" for size, count in ((2, 256), (4, 16), (8, 256))),
}


@pytest.mark.parametrize(
    ("presets", "empty"), [(["unit"], LARGE), pytest.param(["unit", "default"], set(), marks=pytest.mark.long)]
)
def test_coverage(presets, empty):
    """The batches that run hit every bin; a bin that cannot be hit is excluded there."""
    coverage = load_coverage()
    for preset in presets:
        params = TMAU_PRESETS[preset]
        for batch in random_batches(SEED, params, PLAN[preset, "verilator"]):
            for load in batch.loads:
                if load.is_legal(params.smem.size_bytes):
                    tmap, coords = batch.moved(load.tmap), load.coords[: load.tmap.rank]
                    signal = load.barrier is not None
                    coverage.sample(features(tmap, coords, load.smem, signal, params.addr_width))
    print(coverage.table())
    record("coverage-random", bins=coverage.bins, empty=coverage.empty)
    assert set(coverage.empty) == empty


def test_a_wrong_byte_is_found_and_becomes_a_case(tmp_path):
    """The comparison can fail, and what it prints can be read and kept."""
    with TmauSession("unit") as session:
        run = RandomRun(session)
        batch = replace(next(random_batches(SEED, session.params, 1)), base=0)
        smem_bytes = session.params.smem.size_bytes
        culprit = next(
            load
            for load in reversed(batch.loads)
            if load.is_legal(smem_bytes) and len(expected_words(load.tmap, load.coords, session.params.bus_bytes)) > 2
        )
        word = int(expected_words(culprit.tmap, culprit.coords, session.params.bus_bytes)[1])
        session.global_memory.write(word, session.global_memory.read(word, session.params.bus_bytes) ^ 0x5A)
        assert any("shared memory differs" in difference for difference in run.run(batch))
        assert culprit in run.reduce(batch).loads
        path = tmp_path / "case.json"
        path.write_text(run.report(batch).splitlines()[-1])
        assert main(["replay", str(path), "--on", "golden"]) == 0
