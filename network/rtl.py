"""Runs of programs on simulated hardware, and the cycles of each layer."""

from dataclasses import replace
from typing import NamedTuple

from tilewright.golden.core.program import KIND_LSB
from tilewright.progress import report, work
from tilewright.sim.session.cluster import open_cluster
from tilewright.sim.session.core import open_accelerator
from tilewright.spec.core import JOB_WORDS, Kind

from .compiled import shared_memory
from .failures import check_records
from .graph import ModelError
from .machine import MACHINES
from .words import tag_layer

__all__ = ["Measured", "cores_of", "measure_layers", "measured", "open_cores", "run_cores", "run_on", "run_rtl"]

#: Least bytes of memory of a session, so that sessions share a simulator.
_LEAST = 16 << 20
#: Cycles of the watchdogs of a cluster, beside those that the network is expected to take.
_PATIENCE = 20_000


class Measured(NamedTuple):
    """A layer in a run: ``start``, when the layer before ended, and ``end`` in cycles; expected cycles; bytes moved.

    ``working`` are the cycles from the end of the job before its first one to the end of its last one. Layers that are
    joined take turns, and each of them works while the other one's jobs run.
    """

    layer: object
    start: int
    end: int
    expected: int
    working: int
    bytes_in: int
    bytes_out: int

    @property
    def cycles(self):
        """Cycles from the end of the layer before to its own end; 0 if the layer before ended later."""
        return max(self.end - self.start, 0)

    def share(self, peak):
        """Its multiplications as a share, of 1, of what an engine of this ``peak`` can do while it works."""
        return self.layer.macs / self.working / peak if self.working else 0.0


def run_rtl(compiled, memory, preset=None, settings=(), **options):
    """Global memory after the program of a :class:`Compiled` in simulated hardware, and its ``Run``.

    Parameters
    ----------
    compiled : Compiled
        For a core of the preset with the settings.
    memory : uint8 array
        Global memory before the program: see ``Compiled.memory``.
    preset : str or None
        None for the one that the program was compiled for.
    settings : sequence of Setting
        Parameters that differ from the preset.
    **options
        Options of ``open_accelerator``: ``latency``, ``stall``.
    """
    cores, one = compiled.plan.machine.cores, replace(compiled.plan.machine, cores=1)
    preset = preset or next((name for name, machine in MACHINES.items() if machine == one), None)
    if preset is None:
        raise ModelError("only cores of presets are simulated")
    if len(memory) > _LEAST:
        options = {"memory_bytes": len(memory)} | options
    with open_cores(preset, cores, settings, **options) as session, work("hardware"):
        return run_on(session, compiled, memory)


def open_cores(preset, cores=1, settings=(), **options):
    """A session of a core of a preset with all engines and a command processor, or of a cluster of several."""
    if cores == 1:
        return open_accelerator(preset, settings, **options)
    return open_cluster(preset, cores, settings, **options)


def run_on(session, compiled, memory, stage="words"):
    """The same on a session of the core, or of the cluster, with progress reported as ``stage``.

    RuntimeError if a program stops, does not end, or has more words than the log can hold.
    """
    session.reset()
    if compiled.plan.machine.cores > 1:
        return run_cores(session, compiled, memory)
    session.global_memory.write(0, memory)
    count, done = len(compiled.words), _words_by_stamps(compiled.words)
    stamps = len(done) - 1
    limit = 100 * compiled.plan.cycles + 1_000_000
    run = session.run_program(compiled.plan.start, count, limit=limit,
                              progress=lambda stamp: report(stage, done[min(stamp, stamps)], count))  # fmt: skip
    if not run.finished:
        raise RuntimeError(f"the program is not over after {limit:,} cycles")
    check_records(compiled.plan, [run.record])
    if len(run.words) != stamps:
        raise RuntimeError(f"the program has {stamps:,} words, of which the log holds {len(run.words):,}")
    return session.global_memory.read(0, len(memory)), run


def run_cores(session, compiled, memory):
    """The same on a session of a cluster, which is not reset before."""
    if session.params.l2:
        session.flush()  # lines of what memory held before
    session.global_memory.write(0, memory)
    for shared in session.shared_memories:
        shared.write(0, shared_memory(compiled.plan.machine))
    limit = 100 * compiled.plan.cycles + 1_000_000
    # A core that waits for one that has stopped stops too.
    run = session.run_programs(compiled.starts, watchdog=compiled.plan.cycles + _PATIENCE, limit=limit)
    if not run.finished:
        raise RuntimeError(f"the programs are not over after {limit:,} cycles")
    check_records(compiled.plan, run.records)
    if session.params.l2:
        session.flush()
    return session.global_memory.read(0, len(memory)), run


def _words_by_stamps(words):
    """Words of a program that have been executed, by the number of stamps: the three words of a job have one stamp."""
    done = [0]
    while done[-1] < len(words):
        job = words[done[-1]] >> KIND_LSB == Kind.CONV
        done.append(done[-1] + (1 + JOB_WORDS if job else 1))
    return done


def measure_layers(compiled, run):
    """A :class:`Measured` for each layer, by a ``Run`` or a ``ClusterRun``."""
    plan, ends, begins, finishes = compiled.plan, {}, {}, {}
    cores = cores_of(run)
    for core in cores:
        for end in (*core.jobs, *core.ends):
            if end.tag:
                number = tag_layer(end.tag)
                ends[number] = max(ends.get(number, 0), end.cycle)
        previous = core.words[0].cycle
        for job in core.jobs:
            number = tag_layer(job.tag)
            begins[number] = min(begins.get(number, previous), previous)
            finishes[number] = max(finishes.get(number, 0), job.cycle)
            previous = job.cycle
    start = min(core.words[0].cycle for core in cores)
    layers, before, expected_before = [], start, 0
    for number, layer in enumerate(plan.layers):
        spans = [span for span in plan.spans if span.layer == number]
        expected = max(span.end for span in spans)
        moved = (plan.machine.bus_bytes * sum(span.words for span in spans if span.engine == way)
                 for way in ("load", "store"))  # fmt: skip
        end = ends.get(number, before)
        working = finishes[number] - begins[number] if number in begins else 0
        layers.append(Measured(layer, before, end, max(expected - expected_before, 0), working, *moved))
        before, expected_before = max(before, end), max(expected_before, expected)
    return layers


def cores_of(run):
    """What came out of each core in a ``Run`` or a ``ClusterRun``."""
    return getattr(run, "cores", [run])


def measured(compiled, run):
    """A table of a run: cycles and expected cycles of each layer, and the MACs' share while its jobs run."""
    plan, lines = compiled.plan, [f"{'cycles':>12} {'expected':>12} {'MACs busy':>10}  layer"]
    peak = plan.machine.peak
    rows = [(each.layer.name, each.share(peak), each.cycles, each.expected) for each in measure_layers(compiled, run)]
    rows.append(("all", plan.macs / run.cycles / peak, run.cycles, plan.cycles))
    for name, share, cycles, expected in rows:
        busy = f"{100 * share:.1f} %" if share else ""
        lines.append(f"{cycles:>12,} {expected:>12,} {busy:>10}  {name}")
    return "\n".join(lines)
