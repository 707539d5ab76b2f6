"""Random jobs: the convolution engine in hardware against the golden model.

All of shared memory is compared, how each job ended, the error record, and the counters that golden knows: jobs, steps
of the array and results. A failure prints the fewest jobs that still fail as text; with the seed, its number is enough
to have them again.
"""

import shutil

import numpy as np
import pytest

from support.selection import cases
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import CoreParams
from tilewright.results import record
from tilewright.sim.asm.conv import assemble_jobs
from tilewright.sim.session import Session
from tilewright.spec.conv import CONV_PRESETS
from tilewright.spec.pe import MM_FAMILIES
from tilewright.verify.compare.job_run import JobRun
from tilewright.verify.coverage.conv import conv_coverage, sample_job
from tilewright.verify.coverage.table import telling
from tilewright.verify.random.conv_jobs import RandomJob, random_jobs

#: Of the random jobs; other tests have others, which they print.
SEED = 1
SMEM_BYTES = 16384
ICARUS = pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog is not installed")
#: Presets without floats, and small engines with all types, by the bytes of a row: those of ``floats`` are 16.
PARAMS = {name: params.without_floats() for name, params in CONV_UNIT_PRESETS.items()} | {
    name: CONV_UNIT_PRESETS["unit"].replace(conv=CONV_PRESETS["unit"].replace(types=MM_FAMILIES, **changes))
    for name, changes in {
        "floats": {},
        "floats32": {"row_bytes": 32, "results": 4, "feature_rows": 16, "weight_bytes": 4096},
        "floats64": {
            "row_bytes": 64, "slaves": 1, "units": 4, "results": 4, "feature_rows": 16, "weight_bytes": 4096
        },
    }.items()
}  # fmt: skip
#: As many jobs of preset unit as every combination takes. Behind the first ones those run that have a new one.
EVERY_COMBINATION = 3600
#: Jobs of preset unit that failed while the fetch of two blocks of a pixel at once was new.
ONCE_WRONG = """
convolution.u8s8.raw.raster granularity=4 x_zero=151 x=0x1a6 k=0xd4 y=0x4 channels=21 width=3 height=2 batch=2 out_channels=5 out_width=5 kernel=(1,2) stride=(4,1) dilation=(2,1) padding=(2,0) x_pitch=(21,63,126) k_pitch=42 y_pitch=(20,104,108)
convolution.u8s8.u8.bias.raster granularity=4 k_zero=16 x=0x108 k=0x38 table=0xf0 y=0x3 maximum=255 y_zero=248 channels=20 width=2 height=3 batch=2 out_channels=3 out_width=2 out_height=4 kernel=(3,1) dilation=(1,2) padding=(1,1) x_pitch=(20,40,120) k_pitch=60 y_pitch=(3,6,29)
convolution.s8s8.raw.bias granularity=4 k=0xb4 table=0x180 y=0x9c channels=29 height=3 batch=2 out_channels=3 kernel=(2,1) stride=(2,4) x_pitch=(34,3,117) k_pitch=58 y_pitch=(12,12,12)
convolution.u8u8.raw granularity=4 x_zero=65 k_zero=52 x=0x1ad y=0x180 channels=63 height=3 out_channels=3 out_height=2 kernel=(2,1) stride=(1,3) dilation=(3,1) padding=(0,1) x_pitch=(63,63,189) k_pitch=126 y_pitch=(12,32,84)
"""  # noqa: E501
#: The weights of the first one fill their ring up to its last word, and the second one begins with the word behind.
FULL_RING = """
convolution.s16s16.raw.raster granularity=1 merge=3 tag=58368 k_zero=50569 x=0xb8 y=0x4d8 channels=44 width=6 height=2 out_channels=2 out_width=3 stride=(3,1) padding=(1,0) x_pitch=(88,528,1056) k_pitch=94 y_pitch=(28,84,84)
convolution.u8u8.raw.raster granularity=1 x_zero=28 x=0x24 k=0x4b y=0x800 channels=3 width=3 height=3 out_channels=3 out_width=2 out_height=2 kernel=(1,2) stride=(2,1) padding=(1,0) x_pitch=(3,9,27) k_pitch=6 y_pitch=(12,24,48)
"""  # noqa: E501


def some_jobs(name, count, seed=SEED):
    print(f"{name}: seed {seed}, {count} jobs")
    return list(random_jobs(seed, PARAMS[name].conv, count, smem_bytes=SMEM_BYTES))


def compare(name, jobs, simulator="verilator", together=1, **surroundings):
    """Runs jobs, several together in the memory of the first one; returns what has been run."""
    with Session(params=CoreParams(conv=PARAMS[name]), simulator=simulator, patience=400_000) as session:
        session.configure(**surroundings)
        run = JobRun(session)
        for first in range(0, len(jobs), together):
            words, smem = [job.word for job in jobs[first : first + together]], jobs[first].smem
            if differences := run.run(words, smem):
                where = f"{name} on {simulator}: job {first} of {len(jobs)}, {together} together"
                pytest.fail("\n".join([where, *differences, "", run.report(words, smem)]), pytrace=False)
    print(f"{name} on {simulator}: {run.jobs} jobs in {run.cycles} cycles: {dict(run.endings)}")
    return run


@cases("name, count", [("unit", 400), ("floats", 150)],
       [("unit", 2000), ("ecp5", 500), ("default", 2000), ("full", 200), ("floats", 1500), ("floats32", 600),
        ("floats64", 600)])  # fmt: skip
def test_random_jobs(name, count):
    """Each in a memory of its own. Of preset unit they show every combination of features."""
    params, jobs = PARAMS[name].conv, some_jobs(name, max(count, EVERY_COMBINATION) if name == "unit" else count)
    coverage, tried = conv_coverage(params), conv_coverage(params)
    jobs = list(telling(jobs, count, lambda job: sample_job(tried, job.word, params)))
    run = compare(name, jobs)
    record(f"conv-random-{name}-{count}", cases=run.jobs, mismatches=0, seed=SEED, cycles=run.cycles)
    for job in jobs:
        sample_job(coverage, job.word, params)
    if name == "unit":
        print(coverage.table())
        record(f"coverage-conv-{name}", bins=coverage.bins, empty=coverage.empty)
        assert not coverage.empty


def test_jobs_that_were_once_wrong():
    """Blocks of a pixel that come two at a time."""
    contents = np.random.default_rng(SEED).integers(256, size=SMEM_BYTES, dtype=np.uint8)
    chosen = [RandomJob(word, contents) for word in assemble_jobs(ONCE_WRONG)]
    assert all(job.fields["channels"] > CONV_UNIT_PRESETS["unit"].conv.row_bytes for job in chosen)
    compare("unit", chosen)


def test_a_job_behind_a_full_ring_of_weights():
    """Its first ones wait until there is room, which there is less than none of."""
    contents = some_jobs("floats", 1)[0].smem
    compare("floats", [RandomJob(word, contents) for word in assemble_jobs(FULL_RING)], together=2)


@ICARUS
@cases("count", [6], [12])
def test_random_jobs_on_icarus(count):
    compare("unit", some_jobs("unit", count, seed=2), "icarus")


@pytest.mark.parametrize(("name", "stall"), [("unit", 0), ("unit", 0.6), ("unit", 0.99), ("floats", 0)])
def test_jobs_wait_in_the_queue(name, stall):
    """They work in one memory: a job reads what the ones before it have written. More of them than the queue holds."""
    together = 8
    assert together > PARAMS[name].conv.queue_depth
    compare(name, some_jobs(name, 240, seed=3), together=together, issue_stall=stall, seed=5)


@pytest.mark.long
def test_jobs_wait_in_the_queue_of_a_larger_engine():
    compare("default", some_jobs("default", 400, seed=4), together=8)
