"""Random garbage: descriptors and commands that are mostly wrong, in windows that nothing may leave.

Both memories are compared as a whole after each batch, so a byte outside the windows cannot have changed. A command
that hangs ends the session with an error.

Specification: docs/tmau.md, "Windows".
"""

import pytest

from tilewright.golden.spec import Error
from tilewright.sim.compare.mixed_run import MixedRun
from tilewright.sim.random.garbage import garbage_mixes
from tilewright.sim.results import record
from tilewright.sim.session.tmau import TmauSession

SEED = 1


@pytest.mark.parametrize(
    ("preset", "count"),
    [
        ("unit", 4000),
        *(pytest.param(*case, marks=pytest.mark.long) for case in (("unit", 16_000), ("default", 4000))),
    ],
)
def test_garbage(preset, count):
    with TmauSession(preset, patience=300_000) as session:
        run = MixedRun(session)
        for batch in garbage_mixes(SEED, session.params, count):
            assert run.run(batch) == [], batch.name
    counts = {code.name.lower(): count for code, count in run.endings.most_common()}
    print(f"{preset}: seed {SEED}, {run.commands} commands: {counts}")
    assert run.commands >= count
    # Half or more are refused, for nearly every reason there is, and many of the others move something.
    accepted = run.endings[Error.NONE]
    assert run.commands // 10 < accepted < run.commands // 2
    assert len(run.endings) > 24
    record(f"isolation-{preset}", cases=run.commands, mismatches=0, seed=SEED, accepted=accepted, endings=str(counts))
