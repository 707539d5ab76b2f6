"""Resets of the convolution engine in the middle of jobs.

Each byte of memory then is as before the job or as after it, and the next job does not notice.
"""

import pytest

from support.sessions import session_fixture
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.spec.conv import JOB, ConvOperation
from tilewright.tools.package.ports import reset_values
from tilewright.verify.compare.job_run import GoldenJobs, JobRun
from tilewright.verify.random.conv_jobs import random_jobs

SEED = 6
#: Resets of each test.
CUTS = 150


session = session_fixture("unit", engines=["conv"], patience=400_000)


def some_jobs(count):
    print(f"seed {SEED}")
    return list(random_jobs(SEED, CONV_UNIT_PRESETS["unit"].conv, count))


def cut(session, words, smem, cycles):
    """Ends a run after so many cycles; checks what it has left in memory."""
    session.reset()
    run = session.run(jobs=words, preload=smem, limit=cycles)
    session.reset()
    session.run()  # what is on its way into memory when the reset comes is written
    found = session.shared_memory.read(0, len(smem))
    expected = GoldenJobs(words, smem, session.params.conv.conv).smem
    assert ((found == smem) | (found == expected)).all(), f"after {cycles} cycles, seed {SEED}"
    return run.finished


def test_a_reset_in_any_cycle_leaves_nothing_behind(session):
    """Jobs are cut off all over their lives."""
    run, jobs = JobRun(session), some_jobs(2 * CUTS)
    unfinished = 0
    for number in range(CUTS):
        job, whole = jobs[2 * number : 2 * number + 2]
        session.reset()
        life = session.run(jobs=[job.word], preload=job.smem).cycles
        finished = cut(session, [job.word], job.smem, 1 + (life * number) // CUTS)
        unfinished += not finished
        assert run.run([whole.word], whole.smem) == [], f"job {number} of {life} cycles, seed {SEED}"
    assert unfinished > CUTS * 9 // 10


@pytest.mark.parametrize("operation", [ConvOperation.CONVOLUTION, ConvOperation.DEPTHWISE])
def test_a_reset_in_every_cycle_of_one_job(session, operation):
    """Of a short one; others wait behind it."""
    run, jobs = JobRun(session), some_jobs(200)
    after = jobs[0]
    lives = {}
    for number, job in enumerate(jobs[1:], 1):
        fields = JOB.unpack(job.word)
        # A job that adds in place, or arrives at a barrier, does more the second time.
        again = fields["add"] and fields["addend"] != fields["y"] and not fields["signal"]
        if fields["operation"] == operation and again:
            session.reset()
            lives[session.run(jobs=[job.word], preload=job.smem).cycles] = number
    life = min(life for life in lives if life > 300)
    job = jobs[lives[life]]
    for cycles in range(1, life, 3):
        cut(session, [job.word] * 3, job.smem, cycles)
        assert run.run([after.word], after.smem) == [], f"after {cycles} cycles of {life}, seed {SEED}"


def test_registers_read_what_documents_say_after_a_reset(session):
    """Something is in all of them before."""
    job = some_jobs(1)[0]
    session.reset()
    session.run(jobs=[job.word, 0], preload=job.smem, registers=[("irq_enable", 3)])
    before = session.registers()
    session.reset()
    after, documented = session.registers(), reset_values("conv", session.params.conv)
    assert len(after) > 16
    assert after == {name: documented[name] for name in after}
    changed = {name for name in after if before[name] != after[name]}
    assert {"irq_status", "irq_enable", "error_count", "jobs", "busy_cycles", "steps", "results_written"} <= changed
