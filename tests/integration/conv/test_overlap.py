"""Jobs overlap, and have the effect of being executed one after the other (docs/conv.md, "Queue and barrier").

Chains of random jobs read what the job before them writes, as X, K, table or second operand, wholly or just the last
bytes; all of memory is compared with golden. Cycles of jobs behind each other are those of their steps and little more.
"""

import random
from collections import Counter

import numpy as np
import pytest

from support.sessions import session_fixture
from tilewright.golden.conv.job import check_job, parts_of
from tilewright.golden.conv.machine import job_word
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import CoreParams
from tilewright.sim.session import Session
from tilewright.spec.conv import JOB, ConvOperation
from tilewright.spec.pe import MM_FAMILIES
from tilewright.verify.compare.job_run import JobRun
from tilewright.verify.random.conv_jobs import random_jobs, stays_clear

SEED = 31
TOGETHER = 12
#: What two jobs have in common where the array needs nothing else for the later one.
ALIKE = ("type", "granularity", "x_zero", "k_zero", "bias")
UNIT = CONV_UNIT_PRESETS["unit"]
PARAMS = {"unit": UNIT, "floats": UNIT.replace(conv=UNIT.conv.replace(types=MM_FAMILIES))}
SIZE = UNIT.smem.size_bytes


def chain(rng, jobs, params):
    """Words of jobs, each with a tensor where the one before it has results or a barrier; and which tensors."""
    words, shared = [jobs[0].word], Counter()
    for job in jobs[1:]:
        before, fields = parts_of(JOB.unpack(words[-1])), JOB.unpack(job.word)
        parts = parts_of(fields)
        for _ in range(20):
            name = rng.choice([name for name in ("x", "k", "table", "addend", "function_table") if name in parts])
            written = rng.choice([before[other] for other in ("y", "barrier") if other in before])
            # From where the results begin, or so that only the last bytes or the first ones are shared.
            place = rng.choice(
                [written.address, written.end - parts[name].unit, written.address - parts[name].span + 1]
            )
            changed = fields | {name: max(0, place - place % parts[name].unit)}
            if rng.random() < 0.3:
                changed["y"] = rng.randrange(SIZE) // parts["y"].unit * parts["y"].unit
            if rng.random() < 0.5:
                changed |= {name: JOB.unpack(words[-1])[name] for name in ALIKE}
            word = job_word(**changed)
            if check_job(word, params, SIZE) is None and stays_clear(word) and name in parts_of(changed):
                part = parts_of(changed)[name]
                touch = part.address < written.end and written.address < part.end
                shared[name if touch else None] += 1
                shared["alike"] += all(changed[name] == JOB.unpack(words[-1])[name] for name in ALIKE)
                lanes = [each["operation"] != ConvOperation.CONVOLUTION for each in (fields, JOB.unpack(words[-1]))]
                shared["alone"] += lanes[0] != lanes[1]
                shared["lanes"] += all(lanes)
                words.append(word)
                break
        else:
            words.append(job.word)
    return words, shared


@pytest.mark.parametrize(("name", "stall"), [("unit", 0), ("unit", 0.9), ("floats", 0)])
def test_chains(name, stall):
    """In every order of modes, with jobs that come at once or late."""
    params, rng, shared = PARAMS[name], random.Random(SEED), Counter()
    jobs = list(random_jobs(SEED, params.conv, 50 * TOGETHER, most_macs=1500, smem_bytes=SIZE))
    with Session(params=CoreParams(conv=params), patience=400_000) as session:
        session.configure(issue_stall=stall, seed=SEED)
        run = JobRun(session)
        for first in range(0, len(jobs), TOGETHER):
            words, counts = chain(rng, jobs[first : first + TOGETHER], params.conv)
            shared += counts
            if differences := run.run(words, jobs[first].smem):
                report = run.report(words, jobs[first].smem)
                pytest.fail("\n".join([f"{name}: seed {SEED}, job {first}", *differences, "", report]), pytrace=False)
    print(f"{name}: seed {SEED}, {run.jobs} jobs in {run.cycles} cycles, shared {dict(shared)}")
    assert all(shared[what] >= 20 for what in ("x", "k", "table", "addend", "alone", "lanes", "alike"))
    assert shared["function_table"] >= 5


#: A convolution of 8 × 8 points, whose array works longer than its results take; and where its tensors lie.
CONVOLUTION = {
    "operation": "convolution", "type": "u8s8", "output": "u8", "bias": 1, "raster": 1, "channels": 16, "width": 8,
    "height": 8, "out_channels": 16, "out_width": 8, "out_height": 8, "kernel": (3, 3), "padding": (1, 1),
    "granularity": 4, "maximum": 255, "x_pitch": (16, 128, 1024), "y_pitch": (16, 128, 1024), "k_pitch": 144,
    "x": 0, "y": 4096, "k": 8192, "table": 12288,
}  # fmt: skip
DEPTHWISE = CONVOLUTION | {"operation": "depthwise", "k_pitch": 16, "raster": 0}
STEPS = 2304


session = session_fixture("unit", engines=["conv"], patience=100_000)


def between(session, *jobs, size=SIZE):
    """Cycles from the end of each job to that of the next one."""
    smem, words = np.random.default_rng(SEED).integers(0, 256, size, np.uint8), [job_word(**job) for job in jobs]
    session.reset()
    assert JobRun(session).run(words, smem) == []
    session.reset()
    ends = [end.cycle for end in session.run(jobs=words, preload=smem).jobs]
    return np.diff(ends).tolist()


def test_cycles_of_jobs_behind_each_other(session):
    """Weights and the first rows of a job are there when the one before has been computed."""
    even, odd = CONVOLUTION, CONVOLUTION | {"x": 2048, "y": 6144}
    assert between(session, even, odd, even, odd) == [2455, 2455, 2454]
    # X comes when its results are there; weights are there before.
    odd = CONVOLUTION | {"x": 4096, "y": 6144}
    even = CONVOLUTION | {"x": 6144, "y": 4096}
    assert between(session, even, odd, even, odd) == [2514, 2514, 2513]


def test_cycles_of_lane_private_mode(session):
    """Behind a job of the mode rows are fetched while that is computed; else when it has been, while it is written."""
    other = DEPTHWISE | {"x": 2048, "y": 6144}
    assert between(session, DEPTHWISE, other, DEPTHWISE) == [1072, 1072], "as many as results, and what is between jobs"
    large = DEPTHWISE | {"channels": 64, "width": 7, "height": 13, "out_channels": 64, "out_width": 2, "kernel": (6, 6),
                         "padding": (0, 0), "x_pitch": (64, 448, 5824), "y_pitch": (64, 128, 1024), "y": 6144,
                         "k_pitch": 64}  # fmt: skip
    assert between(session, large, large | {"y": 7168}, large) == [1072, 1072], "as many as results, by pairs of lines"
    alone = session.run(jobs=[job_word(**DEPTHWISE)]).jobs[0].cycle
    assert alone == 1226, "by itself it is checked and set up first"


POOL = DEPTHWISE | {"operation": "max_pool", "output": "element", "kernel": (2, 2), "padding": (0, 0)}
POINT = {"width": 1, "height": 1, "out_width": 1, "out_height": 1, "kernel": (1, 1), "padding": (0, 0)}


@pytest.mark.parametrize(("job", "most"), [
    (CONVOLUTION, 1), (DEPTHWISE, 1), (CONVOLUTION | POINT, 0), (DEPTHWISE | POINT, 0), (POOL, 24), (POOL | POINT, 0),
], ids=["convolution", "depthwise", "point", "depthwise-point", "pool", "pool-point"])  # fmt: skip
def test_cycles_of_functions(session, job, most):
    """Their LUTs are loaded while results are requantised. Largest elements wait for them, unless the next job is not
    set up yet; rows of the next job are fetched at the same time."""
    lut = {"function": 1, "function_table": 12800}
    jobs = [job, job | {"y": 6144}] * 2
    plain = between(session, *jobs)
    assert between(session, *({**each, "zero_first": 1} for each in jobs)) == plain
    costs = np.subtract(between(session, *(each | lut for each in jobs)), plain)
    print(f"{plain} cycles, with functions more: {costs}")
    assert max(costs) <= most


@pytest.mark.long
def test_cycles_of_two_points_at_once():
    """Of 16 channels two points are fetched, read out and written in a cycle: half as many cycles as points."""
    first = CONVOLUTION | {
        "channels": 32, "width": 112, "out_width": 112, "kernel": (1, 1), "padding": (0, 0), "granularity": 5,
        "k_pitch": 32, "x_pitch": (32, 3584, 28672), "y_pitch": (16, 1792, 14336), "table": 0, "k": 1024,
        "x": 0x8000, "y": 0x14000,
    }  # fmt: skip
    params = CONV_UNIT_PRESETS["default"].without_floats()
    with Session(params=CoreParams(conv=params), patience=100_000) as session:
        cycles = between(session, first, first, first, size=params.smem.size_bytes)
    assert cycles == [486, 485], "448, and what is between jobs"


def test_counters_of_jobs_that_overlap(session):
    """Rows are counted once, whichever job they come in."""
    jobs = [CONVOLUTION, CONVOLUTION | {"granularity": 3, "x": 2048, "y": 6144}, DEPTHWISE]
    seen = []
    for some in ([each] for each in jobs):
        session.reset()
        session.run(jobs=[job_word(**job) for job in some])
        seen.append(session.registers())
    session.reset()
    session.run(jobs=[job_word(**job) for job in jobs])
    together = session.registers()
    for name in ("jobs", "steps", "feature_rows_fetched", "weight_rows_fetched", "results_written"):
        assert together[name] == sum(each[name] for each in seen), name
    assert seen[0]["steps"] == STEPS
    assert together["busy_cycles"] < sum(each["busy_cycles"] for each in seen) - 300
