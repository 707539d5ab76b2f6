"""Random garbage: jobs that are mostly wrong.

All of shared memory is compared after each batch, so a job that is refused cannot have written. Code, field and tag of
every job are compared; one that hangs ends the session with an error.

Specification: docs/conv.md, "Checks".
"""

import numpy as np
import pytest

from support.selection import cases
from tilewright.results import record
from tilewright.sim.session import Session
from tilewright.spec.conv import ConvError
from tilewright.verify.compare.job_run import JobRun
from tilewright.verify.random.conv_jobs import garbage_jobs

SEED = 1
BATCH = 250


@cases("preset, count", [("unit", 2000)], [("unit", 20_000), ("default", 5000)])
def test_garbage(preset, count):
    with Session(preset, ["conv"], patience=2_000_000) as session:
        size = session.params.smem.size_bytes
        jobs = list(garbage_jobs(SEED, session.params.conv.conv, count))
        run = JobRun(session)
        for first in range(0, count, BATCH):
            words, smem = jobs[first : first + BATCH], np.random.default_rng(first).integers(0, 256, size, np.uint8)
            if differences := run.run(words, smem):
                where = f"{preset}: seed {SEED}, jobs {first} to {first + BATCH - 1}"
                pytest.fail("\n".join([where, *differences, "", run.report(words, smem)]), pytrace=False)
    counts = {code.name.lower(): number for code, number in run.endings.most_common()}
    print(f"{preset}: seed {SEED}, {run.jobs} jobs in {run.cycles} cycles: {counts}")
    # Most are refused, for every reason that there is.
    assert 0 < run.endings[ConvError.NONE] < count // 2
    assert run.endings.keys() == set(ConvError) - {ConvError.STOPPED}
    record(f"conv-garbage-{preset}-{count}", cases=run.jobs, mismatches=0, seed=SEED, endings=str(counts))
