"""Kinds of random cases of a campaign: each draws cases from a seed, runs them, and says which differ from golden."""

from collections.abc import Callable
from itertools import islice
from random import Random
from typing import NamedTuple

from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.replay.rtl import run_on_session
from tilewright.sim.session import Session
from tilewright.sim.session.cluster import ClusterSession
from tilewright.verify.compare.batch_run import RandomRun
from tilewright.verify.compare.cluster_run import ClusterComparison
from tilewright.verify.compare.job_run import JobRun
from tilewright.verify.compare.mixed_run import MixedRun
from tilewright.verify.compare.pe_program_run import ProgramRun
from tilewright.verify.coverage.conv import conv_coverage, sample_job
from tilewright.verify.coverage.loads import features, load_coverage
from tilewright.verify.coverage.mixed import mixed_coverage, sample_batch
from tilewright.verify.coverage.pe import pe_coverage, sample_program
from tilewright.verify.random.batches import random_batches
from tilewright.verify.random.cluster import random_cluster_batches
from tilewright.verify.random.conv_jobs import random_jobs
from tilewright.verify.random.mixed import garbage_mixes, random_mixes
from tilewright.verify.random.pe_programs import random_programs

from .networks import try_networks, try_networks_on_rtl

__all__ = ["KINDS", "Kind", "Tried"]

_PATIENCE = 400_000  # cycles: no batch takes a tenth of it


class Tried(NamedTuple):
    """Some cases that have run.

    Attributes
    ----------
    cases : int
    failure : str
        What differs, with the smallest part that still does; empty if nothing. Its last line is a replay case, if the
        kind has such cases.
    model : bytes
        A network that fails, as a file.
    """

    cases: int
    failure: str = ""
    model: bytes = b""


class Kind(NamedTuple):
    """A kind of cases.

    Attributes
    ----------
    noun : str
        What is counted.
    chunk : int
        Cases that a worker runs at a time: some tens of seconds, of which starting the simulator is a small part.
    run : callable
        Takes a preset, a seed, the number of cases and a coverage; yields :class:`Tried`.
    coverage : callable or None
        Takes a preset and returns the empty ``Coverage``.
    suite : str
        The name under which tests record the same coverage.
    """

    noun: str
    chunk: int
    run: Callable
    coverage: Callable | None = None
    suite: str = ""


def _loads(preset, seed, count, coverage):
    seen = set()
    with Session(preset, ["tmau"], patience=_PATIENCE) as session:
        run, params = RandomRun(session), session.params.tmau
        for batch in random_batches(seed, params, count):
            before = len(seen)
            seen.update(load.tmap for load in batch.loads)
            for load in batch.loads:
                if load.is_legal(params.smem.size_bytes):
                    tmap, coords = batch.moved(load.tmap), load.coords[: load.tmap.rank]
                    coverage.sample(features(tmap, coords, load.smem, load.barrier is not None, params.addr_width))
            wrong = run.run(batch)
            yield Tried(len(seen) - before, run.report(batch) if wrong else "")


def _of_mixes(draw):
    def run(preset, seed, count, coverage):
        with Session(preset, ["tmau"], memory_bytes=1 << 18, patience=_PATIENCE) as session:
            run, params = MixedRun(session), session.params.tmau
            for batch in draw(seed, params, count):
                before = run.commands
                wrong = run.run(batch)
                sample_batch(coverage, run.golden, params.addr_width)
                yield Tried(run.commands - before, run.report(batch) if wrong else "")

    return run


def _programs(preset, seed, count, coverage):
    params = PE_PRESETS[preset]
    with Session(params=CoreParams(pe=params), patience=_PATIENCE) as session:
        run = ProgramRun(lambda program: run_on_session(program, session))
        for program in random_programs(seed, params, count):
            wrong = run.run(program)
            sample_program(coverage, program)
            yield Tried(1, run.report(program) if wrong else "")


_JOB_MEMORY = 16384


def _jobs(preset, seed, count, coverage):
    params = CONV_UNIT_PRESETS[preset].without_floats()
    with Session(params=CoreParams(conv=params), patience=_PATIENCE) as session:
        run = JobRun(session)
        for job in random_jobs(seed, params.conv, count, smem_bytes=_JOB_MEMORY):
            wrong = run.run([job.word], job.smem)
            sample_job(coverage, job.word, params.conv)
            yield Tried(1, run.report([job.word], job.smem) if wrong else "")


_CORES, _COMMANDS = 2, 20


def _clusters(preset, seed, count, coverage):
    params, rng = ClusterParams(_CORES, CoreParams(TMAU_PRESETS[preset])), Random(seed)
    batches = random_cluster_batches(seed, _CORES, params.smem.size_bytes, _COMMANDS)
    with ClusterSession(params=params, patience=_PATIENCE) as session:
        run = ClusterComparison(session)
        for batch in islice(batches, -(-count // (_CORES * _COMMANDS))):
            session.configure(latency=rng.choice([5, 20, 100]), seed=rng.getrandbits(16),
                              stall=rng.choice([0.0, 0.3, (0.5, 0.2)]), issue_stall=rng.choice([0.0, 0.3]))  # fmt: skip
            wrong = run.run(batch)
            yield Tried(_CORES * _COMMANDS, "\n".join([*wrong, str(batch)]) if wrong else "")


def _job_coverage(preset):
    return conv_coverage(CONV_UNIT_PRESETS[preset].without_floats().conv)


#: By name.
KINDS = {
    "loads": Kind("descriptors", 500, _loads, lambda preset: load_coverage(), "random"),
    "mixed": Kind("commands", 1000, _of_mixes(random_mixes), lambda preset: mixed_coverage(), "mixed"),
    "garbage": Kind("commands", 2000, _of_mixes(garbage_mixes), lambda preset: mixed_coverage(), "mixed"),
    "programs": Kind("programs", 100, _programs, lambda preset: pe_coverage(PE_PRESETS[preset]), "pe-{preset}"),
    "jobs": Kind("jobs", 200, _jobs, _job_coverage, "conv-{preset}"),
    "clusters": Kind("commands", 800, _clusters),
    "networks": Kind("networks", 20, try_networks),
    "networks-rtl": Kind("networks", 5, try_networks_on_rtl),
}
