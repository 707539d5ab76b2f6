"""How much of the generated Verilog random commands run."""

from itertools import islice

import pytest

from tilewright.results import record
from tilewright.sim.hdl.cocotb_run import code_coverage
from tilewright.sim.session import Session
from tilewright.verify.compare.batch_run import RandomRun
from tilewright.verify.compare.mixed_run import MixedRun
from tilewright.verify.random.batches import random_batches
from tilewright.verify.random.mixed import random_mixes

SEED = 4
BATCHES = 12
MIXED_COMMANDS = 1000


@pytest.mark.long
def test_lines_and_branches(tmp_path):
    print(f"seed {SEED}")
    with Session("unit", ["tmau"], coverage=tmp_path / "coverage.dat") as session:
        loads, mixes = RandomRun(session), MixedRun(session)
        for batch in islice(random_batches(SEED, session.params.tmau, descriptors=1000), BATCHES):
            assert loads.run(batch) == []
        for batch in random_mixes(SEED, session.params.tmau, MIXED_COMMANDS):
            assert mixes.run(batch) == []
    counts = code_coverage(tmp_path / "coverage.dat", "harness.dut.")
    shares = {kind: 100 * hit / points for kind, (hit, points) in counts.items()}
    commands, points = loads.loads + mixes.commands, counts["line"][1] + counts["branch"][1]
    record("code-coverage", preset="unit", commands=commands, points=points, **shares)
    assert min(shares.values()) > 80, counts
