"""The host and processors in the same shared memory while jobs run: banks have to serve all of them.

Specification: docs/conv.md, "Queue and barrier".
"""

import random

import numpy as np
import pytest

from support.sessions import session_fixture
from tilewright.golden.conv.job import barriers_of, parts_of
from tilewright.golden.smem import Barrier
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.spec import BarrierOp
from tilewright.verify.compare.job_run import JobRun
from tilewright.verify.random.conv_jobs import random_jobs

SEED = 8
#: Bytes for jobs; behind them there are words of the host, and then barriers.
JOBS, WORDS, BARRIERS = 12288, 3584, 512
PLAIN = (BarrierOp.INIT, BarrierOp.ARRIVE, BarrierOp.EXPECT_TX, BarrierOp.COMPLETE_TX)


session = session_fixture("unit", engines=["conv"], patience=400_000)


def some_accesses(rng, count):
    """Reads and writes of words behind the jobs."""
    for _ in range(count):
        address = JOBS + 4 * rng.randrange(WORDS // 4)
        yield (address, rng.getrandbits(32)) if rng.random() < 0.5 else (address,)


def some_operations(rng, count):
    """On few barriers, so that some are refused."""
    for _ in range(count):
        address = JOBS + WORDS + 8 * rng.randrange(8)
        yield rng.choice(PLAIN), address, rng.choice([1, 1, 2, 3])


@pytest.mark.parametrize("stall", [0, 0.5])
def test_accesses_and_operations_meanwhile(session, stall):
    """More of them than jobs have cycles, so that they meet in every one."""
    session.configure(issue_stall=stall, seed=4)
    rng, run = random.Random(SEED), JobRun(session)
    jobs = random_jobs(SEED, CONV_UNIT_PRESETS["unit"].conv, 60, smem_bytes=JOBS)
    for number, job in enumerate(jobs):
        rest = np.random.default_rng(number).integers(0, 256, WORDS + BARRIERS, np.uint8)
        smem = np.concatenate([job.smem, rest])
        for place in range(8):
            Barrier(3, 3).write(smem, JOBS + WORDS + 8 * place)
        host, barriers = list(some_accesses(rng, 250)), list(some_operations(rng, 150))
        assert run.run([job.word], smem, host=host, barriers=barriers) == [], f"seed {SEED}, job {number}"


def test_the_host_reads_what_a_job_reads(session):
    """The same banks, again and again: neither takes the other's words."""
    session.configure(issue_stall=0.0, seed=4)
    rng, run = random.Random(SEED), JobRun(session)
    for number, job in enumerate(random_jobs(SEED + 1, CONV_UNIT_PRESETS["unit"].conv, 60, smem_bytes=JOBS)):
        parts = parts_of(job.fields)
        written = [parts[name] for name in ("y", "barrier") if name in parts]
        words = range(parts["x"].address & ~3, parts["x"].end, 4)
        kept = [word for word in words if all(word >= part.end or word + 4 <= part.address for part in written)]
        host = [(rng.choice(kept[:8]),) for _ in range(300)] if kept else []
        assert run.run([job.word], job.smem, host=host) == [], f"seed {SEED + 1}, job {number}"


def test_others_wait_for_the_arrival_of_a_job(session):
    """The phase of its barrier is complete when its results are there, not before; that of the second one earlier."""
    session.configure(issue_stall=0.0, seed=4)
    waited, ahead = 0, []
    for number, job in enumerate(random_jobs(SEED + 2, CONV_UNIT_PRESETS["unit"].conv, 200, smem_bytes=JOBS)):
        if not job.fields["signal"]:
            continue
        smem = job.smem.copy()
        places = barriers_of(job.fields)[::-1]
        for place in places:
            Barrier(1, 1).write(smem, place)
        run = session.run(
            jobs=[job.word], barriers=[(BarrierOp.TRY_WAIT, place, 0, True) for place in places], preload=smem
        )
        assert all(answer.done and not answer.error for answer in run.barriers)
        assert abs(run.barriers[-1].cycle - run.jobs[0].cycle) < 20, f"seed {SEED + 2}, job {number}"
        ahead += [run.jobs[0].cycle - answer.cycle for answer in run.barriers[:-1]]
        waited += 1
    assert waited > 20
    assert len(ahead) > 5 and min(ahead) > 0 and max(ahead) > 200, ahead
