"""Processors that share a unit, each with windows of its own: random commands and garbage, and cycles.

Both memories are compared as a whole after each batch, so a byte outside the windows of the processor that issued a
command cannot have changed.

Specification: docs/cluster.md, "Several processors".
"""

import pytest

from tilewright.golden.spec import Error, Opcode, Space
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.compare.mixed_run import MixedRun
from tilewright.sim.random.garbage import garbage_mixes
from tilewright.sim.random.mixed import random_mixes
from tilewright.sim.results import record
from tilewright.sim.session.tmau import TmauSession

SEED = 4


#: Clusters whose cores have two processors are among those of the default suite.
pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=["unit", "default"])
def session(request):
    with TmauSession(params=TMAU_PRESETS[request.param].replace(processors=4), patience=300_000) as session:
        yield session


def compare(session, mixed, garbage):
    for kind, make, count in (("mixed", random_mixes, mixed), ("garbage", garbage_mixes, garbage)):
        run = MixedRun(session)
        for batch in make(SEED, session.params, count):
            assert run.run(batch) == [], batch.name
        print(f"{kind}: seed {SEED}, {run.commands} commands, {dict(run.endings.most_common(4))}")
        # Some processors are refused what others may do.
        assert run.commands >= count and run.endings[Error.WINDOW] > run.commands // 12
        assert run.endings[Error.NONE] > run.commands // 8
        record(f"processors-{kind}", cases=run.commands, mismatches=0, seed=SEED)


def test_random(session):
    compare(session, 6000, 20_000)


def copies(session, count, size, processors):
    """Cycles of so many copies into shared memory, which processors issue in turns."""
    session.clear()
    session.configure(latency=20, stall=0.0, issue_stall=0.0)
    run = session.run([{"opcode": Opcode.COPY_BLOCK, "source": size * number, "destination": 0, "size": size,
                     "destination_space": Space.SHARED, "processor": number % processors}
                    for number in range(count)])  # fmt: skip
    assert {stamp.error for stamp in run.commands} == {Error.NONE}
    return run.span


def test_a_change_of_processor_costs_some_cycles(session):
    """Of small copies; larger ones hide it."""
    alone, turns = copies(session, 33, 16, 1), copies(session, 33, 16, 4)
    assert alone < turns <= alone + 4 * 32
    assert copies(session, 16, 1024, 1) == copies(session, 16, 1024, 4)
