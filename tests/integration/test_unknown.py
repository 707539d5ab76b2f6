"""Four-state simulation without power-on values: a reset is enough for everything that can be seen from outside."""

import shutil
from itertools import islice

import pytest

from tilewright.sim.batches import random_batches
from tilewright.sim.random_run import RandomRun
from tilewright.sim.results import record
from tilewright.sim.session import Session
from tilewright.sim.unknowns import without_power_on_values

SEED = 8
BATCHES = 3


@pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog is not installed")
def test_random_commands_without_power_on_values():
    print(f"seed {SEED}")
    with Session("unit", simulator="icarus", change=without_power_on_values) as session:
        run = RandomRun(session)
        for batch in islice(random_batches(SEED, session.params, descriptors=1000), BATCHES):
            # An answer that is unknown ends the session with an error.
            assert run.play(batch) == []
    record("unknown-unit", cases=run.loads, mismatches=0, seed=SEED)
