"""A program on the hardware, simulated, and what its engines did when."""

from typing import NamedTuple

from tilewright.golden.core.program import KIND_LSB
from tilewright.progress import report, work
from tilewright.sim.session.core import open_accelerator
from tilewright.spec.core import JOB_WORDS, Kind

from ..errors import ModelError
from .machine import MACHINES
from .steps import tag_layer

__all__ = ["Measured", "measure_layers", "measured", "run_on", "run_rtl"]

#: Bytes of memory that all sessions have at least, so that they share a simulator.
_LEAST = 16 << 20


class Measured(NamedTuple):
    """A layer in a run: cycles from ``start``, when the one before ended, to ``end``; ``expected`` ones; bytes."""

    layer: object
    start: int
    end: int
    expected: int
    bytes_in: int
    bytes_out: int

    @property
    def cycles(self):
        """From the end of the layer before to its own; 0 if that ended later."""
        return max(self.end - self.start, 0)


def run_rtl(compiled, memory, preset=None, settings=(), **options):
    """Global memory after the program of a :class:`Compiled` in simulated hardware, and its ``Run``.

    Parameters
    ----------
    compiled : Compiled
        For a core of the preset with the settings.
    memory : uint8 array
        Global memory before, as of ``Compiled.memory``.
    preset : str or None
        None: the one that the program was compiled for.
    settings : sequence of Setting
        Parameters that differ from the preset.
    **options
        Options of ``open_accelerator``: ``latency``, ``stall``.
    """
    preset = preset or next((name for name, machine in MACHINES.items() if machine == compiled.machine), None)
    if preset is None:
        raise ModelError("only cores of presets are simulated")
    if len(memory) > _LEAST:
        options = {"memory_bytes": len(memory)} | options
    with open_accelerator(preset, settings, **options) as session, work("hardware"):
        return run_on(session, compiled, memory)


def run_on(session, compiled, memory, stage="words"):
    """The same on a ``Session`` of the core that it is for; reports how far it is, as ``stage``.

    Raises
    ------
    RuntimeError
        If the program stops, does not end, or does more than logs can hold.
    """
    session.reset()
    session.global_memory.write(0, memory)
    done = _words_by_stamps(compiled.schedule.words)
    stamps = len(done) - 1
    limit = 100 * compiled.schedule.cycles + 1_000_000
    run = session.run_program(compiled.start, compiled.words, limit=limit,
                              progress=lambda seen: report(stage, done[min(seen, stamps)], compiled.words))  # fmt: skip
    if not run.finished:
        raise RuntimeError(f"the program is not over after {limit:,} cycles")
    if run.record is not None:
        raise RuntimeError(f"the program stopped with {run.record}")
    if len(run.words) != stamps:
        raise RuntimeError(f"the program has {stamps:,} words, of which the log holds {len(run.words):,}")
    return session.global_memory.read(0, len(memory)), run


def _words_by_stamps(words):
    """How many words of a program have been carried out, by the number of stamps: a job's three words have one."""
    done = [0]
    while done[-1] < len(words):
        job = words[done[-1]] >> KIND_LSB == Kind.CONV
        done.append(done[-1] + (1 + JOB_WORDS if job else 1))
    return done


def measure_layers(compiled, run):
    """A :class:`Measured` for each layer, by a ``Run``."""
    ends = {}
    for end in (*run.jobs, *run.ends):
        if end.tag:
            number = tag_layer(end.tag)
            ends[number] = max(ends.get(number, 0), end.cycle)
    made, before, wanted = [], run.words[0].cycle, 0
    for number, layer in enumerate(compiled.layers):
        spans = [span for span in compiled.schedule.spans if span.layer == number]
        expected = max(span.end for span in spans)
        moved = {way: compiled.machine.bus_bytes * sum(span.words for span in spans if span.engine == way)
                 for way in ("load", "store")}  # fmt: skip
        end = ends.get(number, before)
        made.append(Measured(layer, before, end, max(expected - wanted, 0), moved["load"], moved["store"]))
        before, wanted = max(before, end), max(wanted, expected)
    return made


def measured(compiled, run):
    """When every layer ended, by a ``Run``: text, a line for each, beside what was expected."""
    lines, peak = [f"{'cycles':>12} {'expected':>12} {'MACs busy':>10}  layer"], compiled.machine.conv.peak
    for one in measure_layers(compiled, run):
        share = f"{100 * one.layer.macs / one.cycles / peak:.1f} %" if one.layer.macs and one.cycles else ""
        lines.append(f"{one.cycles:>12,} {one.expected:>12,} {share:>10}  {one.layer.name}")
    macs = sum(layer.macs for layer in compiled.layers)
    lines.append(f"{run.cycles:>12,} {compiled.schedule.cycles:>12,} {100 * macs / run.cycles / peak:>8.1f} %  all")
    return "\n".join(lines)
