"""Random batches of every command: hardware against the golden model, in both memories, and how each command ends.

``sim/random/mixed.py`` draws mixes that mostly run, ``sim/random/garbage.py`` commands that mostly must be refused;
``sim/compare/mixed_run.py`` compares. A failure prints the smallest part that still fails as a replay case, which can
be kept in a file under ``tests/vectors/``.
"""

import shutil

import pytest

from tilewright.golden.spec import Opcode
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.cli import main
from tilewright.sim.compare.mixed_run import MixedRun
from tilewright.sim.coverage.mixed import mixed_coverage, sample_batch
from tilewright.sim.random.garbage import garbage_mixes
from tilewright.sim.random.mixed import random_mixes
from tilewright.sim.results import record
from tilewright.sim.session.tmau import TmauSession

SEED = 5
MEMORY_BYTES = 1 << 18

#: Commands of each run: in mixes, and garbage.
PLAN = {
    ("unit", "verilator"): (3400, 2304),
    ("ecp5", "verilator"): (800, 384),
    ("default", "verilator"): (1000, 256),
    ("lean", "verilator"): (300, 0),
    ("full", "verilator"): (150, 128),
    ("unit", "icarus"): (50, 64),
}

#: Presets whose models nothing else needs.
LONG = [pytest.param(preset, marks=pytest.mark.long) for preset in ("ecp5", "default", "lean", "full")]


def planned(preset, simulator):
    """The batches of a run."""
    mixes, garbage = PLAN[preset, simulator]
    yield from random_mixes(SEED, TMAU_PRESETS[preset], mixes)
    yield from garbage_mixes(SEED, TMAU_PRESETS[preset], garbage)


def compare(preset, simulator):
    print(f"{preset} on {simulator}: seed {SEED}, commands in mixes and garbage: {PLAN[preset, simulator]}")
    with TmauSession(preset, simulator=simulator, memory_bytes=MEMORY_BYTES) as session:
        run, coverage = MixedRun(session), mixed_coverage()
        for batch in planned(preset, simulator):
            if run.run(batch):
                record(f"mixed-{preset}-{simulator}", cases=run.commands, mismatches=1, seed=SEED)
                pytest.fail(run.report(batch), pytrace=False)
            sample_batch(coverage, run.golden, session.params.addr_width)
    if (preset, simulator) == ("unit", "verilator"):
        print(coverage.table())
        record("coverage-mixed", bins=coverage.bins, empty=coverage.empty, commands=run.commands)
        assert run.commands >= 5000
        assert not coverage.empty
    assert run.commands >= sum(PLAN[preset, simulator])
    record(f"mixed-{preset}-{simulator}", cases=run.commands, mismatches=0, seed=SEED)
    record(f"preset-{preset}-{simulator}", preset=preset, simulated=True)


@pytest.mark.parametrize("preset", ["unit", *LONG])
def test_mixed_commands_on_verilator(preset):
    """Those of preset unit, which always run, hit every bin; a bin that cannot be hit is excluded there."""
    compare(preset, "verilator")


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog is not installed")
@pytest.mark.parametrize("preset", [preset for preset, simulator in PLAN if simulator == "icarus"])
def test_mixed_commands_on_icarus(preset):
    compare(preset, "icarus")


def test_a_wrong_byte_is_found_and_becomes_a_case(tmp_path):
    """The comparison can fail, and what it prints can be read and kept."""

    class Wrong(MixedRun):
        """Sees one store more than there is."""

        def run(self, batch):
            stores = [order for order in batch.orders if order.fields["opcode"] == Opcode.STORE]
            return [*super().run(batch), *(["one store too many"] if stores else [])]

    with TmauSession("unit", memory_bytes=MEMORY_BYTES) as session:
        run = Wrong(session)
        batch = next(batch for batch in random_mixes(SEED, session.params, 300) if run.run(batch))
        smallest = run.reduce(batch)
        opcodes = [order.fields["opcode"] for order in smallest.orders]
        assert [opcode for opcode in opcodes if opcode != Opcode.WAIT_ALL] == [Opcode.STORE]
        path = tmp_path / "case.json"
        path.write_text(run.report(batch).splitlines()[-1])
        assert main(["replay", str(path), "--on", "golden"]) == 0
