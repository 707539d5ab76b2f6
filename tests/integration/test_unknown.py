"""Four-state simulation without power-on values: a reset is enough for everything that can be seen from outside."""

import shutil
from itertools import islice

import pytest

from tilewright.results import record
from tilewright.sim.hdl.unknowns import without_power_on_values
from tilewright.sim.session import Session
from tilewright.verify.compare.batch_run import RandomRun
from tilewright.verify.compare.mixed_run import MixedRun
from tilewright.verify.random.batches import random_batches
from tilewright.verify.random.mixed import random_mixes

SEED = 8
BATCHES = 3
MIXED_COMMANDS = 60


@pytest.fixture
def session():
    if not shutil.which("iverilog"):
        pytest.skip("Icarus Verilog is not installed")
    # An answer that is unknown ends the session with an error.
    with Session("unit", ["tmau"], simulator="icarus", change=without_power_on_values) as session:
        yield session


@pytest.mark.long
def test_random_loads_without_power_on_values(session):
    print(f"seed {SEED}")
    run = RandomRun(session)
    for batch in islice(random_batches(SEED, session.params.tmau, descriptors=1000), BATCHES):
        assert run.run(batch) == []
    record("unknown-unit", cases=run.loads, mismatches=0, seed=SEED)


def test_random_mixes_without_power_on_values(session):
    """All kinds of commands: what is written to either memory, and on the bus, is known."""
    print(f"seed {SEED}")
    run = MixedRun(session)
    for batch in random_mixes(SEED, session.params.tmau, MIXED_COMMANDS):
        assert run.run(batch) == []
    record("unknown-mixed-unit", cases=run.commands, mismatches=0, seed=SEED)
