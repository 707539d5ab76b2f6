"""Random garbage: descriptors and commands that are mostly wrong, in windows that nothing may leave.

Both memories are compared as a whole after each batch, so a byte outside the windows cannot have changed. A command
that hangs ends the session with an error.

Specification: docs/tmau.md, "Windows".
"""

import shutil

import pytest

from support.selection import cases
from tilewright.hw.core.params import CoreParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.results import record
from tilewright.sim.session import Session
from tilewright.spec import Error, Opcode, Space
from tilewright.spec.tmau_registers import FEATURES
from tilewright.tools.cli.main import main
from tilewright.verify.compare.mixed_run import MixedRun
from tilewright.verify.coverage.mixed import mixed_coverage, sample_batch
from tilewright.verify.random.mixed import garbage_mixes, random_mixes

SEED = 1


@cases("preset, count", [("unit", 4000)], [("unit", 16_000), ("default", 4000)])
def test_garbage(preset, count):
    with Session(preset, ["tmau"], patience=300_000) as session:
        run = MixedRun(session)
        for batch in garbage_mixes(SEED, session.params.tmau, count):
            assert run.run(batch) == [], batch.name
    counts = {code.name.lower(): count for code, count in run.endings.most_common()}
    print(f"{preset}: seed {SEED}, {run.commands} commands: {counts}")
    assert run.commands >= count
    # Half or more are refused, for nearly every reason there is, and many of the others move something.
    accepted = run.endings[Error.NONE]
    assert run.commands // 10 < accepted < run.commands // 2
    assert len(run.endings) > 24
    record(f"isolation-{preset}", cases=run.commands, mismatches=0, seed=SEED, accepted=accepted, endings=str(counts))


FEATURES_SEED = 12
MEMORY_BYTES = 1 << 18
UNIT = TMAU_PRESETS["unit"]


def without(*missing):
    return tuple(name for name in FEATURES if name not in missing)


#: What is built, by name.
BUILT = {"lean": TMAU_PRESETS["lean"].features}
LONG = {
    "integers": without("reductions_float", "unaligned", "interleave"),
    "nothing": (),
    "loads": without("stores", "reductions_global", "local_copies"),
    **{name: without(name) for name in FEATURES if name not in ("stores", "reductions_float")},
}


@pytest.mark.long
@pytest.mark.parametrize("name", [*BUILT, *LONG])
def test_mixed_commands(name):
    compare(name, UNIT.replace(features=(BUILT | LONG)[name]))


@pytest.mark.long
def test_mixed_commands_on_the_preset():
    """A bus of 64 bytes, which rotators and choices of chunks are made for."""
    compare("lean", TMAU_PRESETS["lean"])


@pytest.mark.long
@pytest.mark.parametrize("name", ["lean", "all"])
def test_mixed_commands_that_wait_in_block_memories(name):
    features = BUILT["lean"] if name == "lean" else tuple(FEATURES)
    compare(name, UNIT.replace(features=features, prefer_bram=True))


def compare(name, params):
    print(f"{name}: seed {FEATURES_SEED}")
    with Session(params=CoreParams(params), memory_bytes=MEMORY_BYTES) as session:
        run = MixedRun(session)
        batches = list(random_mixes(FEATURES_SEED, params, 400))
        if params.has("windows"):  # without them garbage goes anywhere
            batches += garbage_mixes(FEATURES_SEED, params, 256)
        for batch in batches:
            if run.run(batch):
                pytest.fail(run.report(batch), pytrace=False)
    # Windows are asked for by registers.
    refused = run.endings[Error.UNSUPPORTED] > 5 or name in ("windows", "all")
    assert run.endings[Error.NONE] > 100 and refused, run.endings


@pytest.mark.long
def test_registers():
    """Register ``features`` shows what there is; registers of windows are there with the feature only."""
    with Session(params=CoreParams(UNIT.replace(features=BUILT["lean"]))) as session:
        bits = session.read_register("features")
        assert [name for k, name in enumerate(FEATURES) if bits >> k & 1] == ["swizzle", "stores"]
        answers = session.run(registers=[("windows", 3), ("global_base_lo",), ("irq_enable", 1)]).registers
        assert [answer.response != 0 for answer in answers] == [True, True, False]


PROCESSORS_SEED = 4


@pytest.fixture(scope="module", params=["unit", "default"])
def session(request):
    with Session(params=CoreParams(TMAU_PRESETS[request.param].replace(processors=4)), patience=300_000) as session:
        yield session


def processors_compare(session, mixed, garbage):
    for kind, make, count in (("mixed", random_mixes, mixed), ("garbage", garbage_mixes, garbage)):
        run = MixedRun(session)
        for batch in make(PROCESSORS_SEED, session.params.tmau, count):
            assert run.run(batch) == [], batch.name
        print(f"{kind}: seed {PROCESSORS_SEED}, {run.commands} commands, {dict(run.endings.most_common(4))}")
        # Some processors are refused what others may do.
        assert run.commands >= count and run.endings[Error.WINDOW] > run.commands // 12
        assert run.endings[Error.NONE] > run.commands // 8
        record(f"processors-{kind}", cases=run.commands, mismatches=0, seed=PROCESSORS_SEED)


# Clusters whose cores have two processors are among those of the default suite.
@pytest.mark.long
def test_random(session):
    processors_compare(session, 6000, 20_000)


def copies(session, count, size, processors):
    """Cycles of so many copies into shared memory, which processors issue in turns."""
    session.clear()
    session.configure(latency=20, stall=0.0, issue_stall=0.0)
    run = session.run([{"opcode": Opcode.COPY_BLOCK, "source": size * number, "destination": 0, "size": size,
                     "destination_space": Space.SHARED, "processor": number % processors}
                    for number in range(count)])  # fmt: skip
    assert {stamp.error for stamp in run.commands} == {Error.NONE}
    return run.span


@pytest.mark.long
def test_a_change_of_processor_costs_some_cycles(session):
    """Of small copies; larger ones hide it."""
    alone, turns = copies(session, 33, 16, 1), copies(session, 33, 16, 4)
    assert alone < turns <= alone + 4 * 32
    assert copies(session, 16, 1024, 1) == copies(session, 16, 1024, 4)


MIXED_SEED = 5

#: Commands of each run: in mixes, and garbage.
PLAN = {
    ("unit", "verilator"): (3400, 2304),
    ("ecp5", "verilator"): (800, 384),
    ("default", "verilator"): (1000, 256),
    ("lean", "verilator"): (300, 0),
    ("full", "verilator"): (150, 128),
    ("unit", "icarus"): (50, 64),
}


def planned(preset, simulator):
    """The batches of a run."""
    mixes, garbage = PLAN[preset, simulator]
    yield from random_mixes(MIXED_SEED, TMAU_PRESETS[preset], mixes)
    yield from garbage_mixes(MIXED_SEED, TMAU_PRESETS[preset], garbage)


def mixed_compare(preset, simulator):
    print(f"{preset} on {simulator}: seed {MIXED_SEED}, commands in mixes and garbage: {PLAN[preset, simulator]}")
    with Session(preset, ["tmau"], simulator=simulator, memory_bytes=MEMORY_BYTES) as session:
        run, coverage = MixedRun(session), mixed_coverage()
        for batch in planned(preset, simulator):
            if run.run(batch):
                record(f"mixed-{preset}-{simulator}", cases=run.commands, mismatches=1, seed=MIXED_SEED)
                pytest.fail(run.report(batch), pytrace=False)
            sample_batch(coverage, run.golden, session.params.tmau.addr_width)
    if (preset, simulator) == ("unit", "verilator"):
        print(coverage.table())
        record("coverage-mixed", bins=coverage.bins, empty=coverage.empty, commands=run.commands)
        assert run.commands >= 5000
        assert not coverage.empty
    assert run.commands >= sum(PLAN[preset, simulator])
    record(f"mixed-{preset}-{simulator}", cases=run.commands, mismatches=0, seed=MIXED_SEED)
    record(f"preset-{preset}-{simulator}", preset=preset, simulated=True)


# Nothing else needs the models of the others.
@cases("preset", ["unit"], ["ecp5", "default", "lean", "full"])
def test_mixed_commands_on_verilator(preset):
    """Those of preset unit, which always run, hit every bin; a bin that cannot be hit is excluded there."""
    mixed_compare(preset, "verilator")


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog is not installed")
@pytest.mark.parametrize("preset", [preset for preset, simulator in PLAN if simulator == "icarus"])
def test_mixed_commands_on_icarus(preset):
    mixed_compare(preset, "icarus")


def test_a_wrong_byte_is_found_and_becomes_a_case(tmp_path):
    """The comparison can fail, and what it prints can be read and kept."""

    class Wrong(MixedRun):
        """Sees one store more than there is."""

        def run(self, batch):
            stores = [order for order in batch.orders if order.fields["opcode"] == Opcode.STORE]
            return [*super().run(batch), *(["one store too many"] if stores else [])]

    with Session("unit", ["tmau"], memory_bytes=MEMORY_BYTES) as session:
        run = Wrong(session)
        batch = next(batch for batch in random_mixes(MIXED_SEED, session.params.tmau, 300) if run.run(batch))
        smallest = run.reduce(batch)
        opcodes = [order.fields["opcode"] for order in smallest.orders]
        assert [opcode for opcode in opcodes if opcode != Opcode.WAIT_ALL] == [Opcode.STORE]
        path = tmp_path / "case.json"
        path.write_text(run.report(batch).splitlines()[-1])
        assert main(["replay", str(path), "--on", "golden"]) == 0
