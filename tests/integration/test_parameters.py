"""Units of random parameters: hardware against the golden model. Each is built for one test, so all are long."""

import random
from itertools import islice

import pytest

from tilewright.hw.core.params import CoreParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.replay.rtl import run_on_session
from tilewright.sim.session import Session
from tilewright.sim.session.cluster import ClusterSession
from tilewright.verify.compare.cluster_run import ClusterComparison
from tilewright.verify.compare.job_run import JobRun
from tilewright.verify.compare.mixed_run import MixedRun
from tilewright.verify.compare.pe_program_run import ProgramRun
from tilewright.verify.random.cluster import random_cluster_batches
from tilewright.verify.random.conv_jobs import random_jobs
from tilewright.verify.random.mixed import garbage_mixes, random_mixes
from tilewright.verify.random.params import random_cluster, random_conv, random_pe, random_tmau
from tilewright.verify.random.pe_programs import random_programs

pytestmark = pytest.mark.long

#: Parameters of each unit.
SEEDS = range(6)
MEMORY_BYTES = 1 << 18


def drawn(make, seed):
    params = make(random.Random(seed))
    print(f"seed {seed}: {params}")
    return params


@pytest.mark.parametrize("seed", SEEDS)
def test_access_units(seed):
    run_commands(drawn(random_tmau, seed), seed)


def test_bursts_of_a_word():
    """Eight of them bring a descriptor, while as many bring data as may, and reductions read what they change."""
    run_commands(TMAU_PRESETS["unit"].replace(max_burst=1, cache_entries=1), 2)


def run_commands(params, seed):
    """Commands that mostly run and, where windows confine it, garbage."""
    with Session(params=CoreParams(params), memory_bytes=MEMORY_BYTES) as session:
        run = MixedRun(session)
        batches = list(random_mixes(seed, params, 250))
        if params.has("windows"):
            batches += garbage_mixes(seed, params, 128)
        for batch in batches:
            if run.run(batch):
                pytest.fail(run.report(batch), pytrace=False)
    assert sum(run.endings.values()) >= 250


@pytest.mark.parametrize("seed", SEEDS)
def test_processing_engines(seed):
    params = drawn(random_pe, seed)
    with Session(params=CoreParams(pe=params), patience=400_000) as session:
        session.configure(issue_stall=0.5 * (seed & 1))
        run = ProgramRun(lambda program: run_on_session(program, session))
        for program in random_programs(seed, params, 60):
            if run.run(program):
                pytest.fail(run.report(program), pytrace=False)
    assert run.instructions > 60


@pytest.mark.parametrize("seed", SEEDS)
def test_convolution_engines(seed):
    """Jobs alone in their memory."""
    params = drawn(random_conv, seed)
    with Session(params=CoreParams(conv=params), patience=800_000) as session:
        session.configure(issue_stall=0.6 * (seed & 1))
        run = JobRun(session)
        for job in random_jobs(seed, params.conv, 150, smem_bytes=4096):
            if differences := run.run([job.word], job.smem):
                pytest.fail("\n".join([*differences, "", run.report([job.word], job.smem)]), pytrace=False)
    assert run.jobs == 150


@pytest.mark.parametrize("seed", SEEDS)
def test_clusters(seed):
    params = drawn(random_cluster, seed)
    with ClusterSession(params=params, memory_bytes=MEMORY_BYTES, patience=300_000) as session:
        comparison = ClusterComparison(session)
        batches = random_cluster_batches(seed, params.cores, params.smem.size_bytes, 20)
        for number, batch in enumerate(islice(batches, 25)):
            stall = [0.0, 0.3, (0.5, 0.2)][number % 3]
            session.configure(
                latency=[100, 5, 20, 50][number % 4], seed=number, stall=stall, issue_stall=0.5 * (number & 1)
            )
            assert comparison.run(batch) == [], f"batch {number}"
    assert comparison.commands >= 250
