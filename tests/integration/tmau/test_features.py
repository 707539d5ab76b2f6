"""Hardware without some features beside golden without them: random mixes of every command."""

import pytest

from tilewright.golden.spec import Error
from tilewright.golden.spec.tmau.features import FEATURES
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.compare.mixed_run import MixedRun
from tilewright.sim.random.garbage import garbage_mixes
from tilewright.sim.random.mixed import random_mixes
from tilewright.sim.session.tmau import TmauSession

SEED = 12
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
    compare(name, UNIT.replace(features=features, spares_tables=True))


def compare(name, params):
    print(f"{name}: seed {SEED}")
    with TmauSession(params=params, memory_bytes=MEMORY_BYTES) as session:
        run = MixedRun(session)
        batches = list(random_mixes(SEED, params, 400))
        if params.has("windows"):  # without them garbage goes anywhere
            batches += garbage_mixes(SEED, params, 256)
        for batch in batches:
            if run.run(batch):
                pytest.fail(run.report(batch), pytrace=False)
    # Windows are asked for by registers.
    refused = run.endings[Error.UNSUPPORTED] > 5 or name in ("windows", "all")
    assert run.endings[Error.NONE] > 100 and refused, run.endings


@pytest.mark.long
def test_registers():
    """Register ``features`` shows what there is; registers of windows are there with the feature only."""
    with TmauSession(params=UNIT.replace(features=BUILT["lean"])) as session:
        bits = session.read_register("features")
        assert [name for k, name in enumerate(FEATURES) if bits >> k & 1] == ["swizzle", "stores"]
        answers = session.run(registers=[("windows", 3), ("global_base_lo",), ("irq_enable", 1)]).registers
        assert [answer.response != 0 for answer in answers] == [True, True, False]
