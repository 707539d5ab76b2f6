"""``tilewright sim``: moves photographs through the RTL and compares every byte with the golden model."""

import sys
import time
from pathlib import Path
from typing import NamedTuple

from tilewright.hw.tmau.params import PRESETS

from .report import write_report
from .report_timeline import record_transfer
from .results import record
from .session import Session
from .usage import UsageError
from .workloads import WORKLOADS
from .workloads.findings import Findings, Totals
from .workloads.mover import Mover
from .workloads.photographs import load_photographs

__all__ = ["CROP", "SMALL_CROP", "Played", "configure", "play", "run", "table_row"]

#: Height and width of the part of each photograph that is moved where simulation is slow, or leaves a waveform.
CROP = (48, 64)
#: The same where shared memory is so small that a box or two fill it, and every box waits for the memory.
SMALL_CROP = (208, 320)
_SMALL = 4096  # bytes of shared memory

_REPORT = Path("build/report")
_WAVES = Path("build/waves/sim.vcd")
_PROGRESS_SECONDS = 5


class Played(NamedTuple):
    """A workload that has run; ``speed`` is simulated cycles a second."""

    name: str
    totals: Totals
    findings: Findings
    speed: float


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--preset", choices=list(PRESETS), default="default", help="configuration (%(default)s)")
    parser.add_argument("--sim", choices=("verilator", "icarus"), default="verilator", help="simulator (%(default)s)")
    parser.add_argument("--workload", choices=list(WORKLOADS), help="one workload; all if left out")
    parser.add_argument("--waves", action="store_true", help=f"leave a waveform of a crop in {_WAVES}")


def run(args):
    """Runs the subcommand. The status is 1 if anything differs from the golden model."""
    crop = _crop(args)
    photographs = load_photographs(crop)
    extent = (
        f"{'crops' if crop else 'whole photographs'} of {photographs[0].shape[1]} x {photographs[0].shape[0]} pixels"
    )
    names = [args.workload] if args.workload else list(WORKLOADS)
    print(f"preset {args.preset} on {args.sim}; {extent}; memory answers after 100 cycles", flush=True)
    begin = time.perf_counter()
    with _session(args) as session:
        print(f"simulator ready after {time.perf_counter() - begin:.0f} s\n\n{_HEAD}", flush=True)
        played = []
        for name in names:
            played.append(play(name, session, photographs, _Progress(name)))
            print(table_row(played[-1]), flush=True)
        transfer = record_transfer(session)
    problems = [f"{each.name}: {problem}" for each in played for problem in each.totals.problems]
    print("\n" + "\n".join([*_LEGEND, *(f"{each.name}: {fact}" for each in played for fact in each.findings.facts)]))
    for problem in problems[:20]:
        print(f"DIFFERS {problem}")
    record(
        f"preset-{args.preset}", preset=args.preset, simulated=not problems, boxes=sum(p.totals.boxes for p in played)
    )
    if args.waves:
        print(_WAVES)
    print(write_report(_REPORT, args.preset, args.sim, extent, session.params, played, transfer))
    return 1 if problems else 0


def play(name, session, photographs, progress=lambda boxes: None):
    """Runs one workload on a session and returns it as :class:`Played`."""
    simulation = session.simulation
    cycles, seconds = simulation.cycles, simulation.seconds
    mover = Mover(session, progress)
    findings = WORKLOADS[name].play(mover, photographs)
    speed = (simulation.cycles - cycles) / max(simulation.seconds - seconds, 1e-9)
    return Played(name, mover.totals, findings, speed)


_HEAD = (
    f"{'workload':<9} {'boxes':>6} {'bytes':>11} {'cycles':>9} {'limit':>9} {'of limit':>8} {'steady':>7} "
    f"{'vs golden':>12} {'cycles/s':>9}"
)
_LEGEND = (
    "bytes: landed in shared memory, fill included",
    "limit: for each shared memory full of boxes the larger of: distinct bus words of each box; 128-byte lines written",
    "of limit: limit / cycles, with the latency of each shared memory full; steady: from its first box's completion on",
)


def table_row(played):
    """A line of the table."""
    totals = played.totals
    steady = "–" if totals.steady is None else f"{totals.steady:.1%}"
    return (
        f"{played.name:<9} {totals.boxes:>6,} {totals.bytes:>11,} {totals.cycles:>9,} {totals.limit:>9,} "
        f"{totals.utilisation:>8.1%} {steady:>7} {totals.verdict:>12} {played.speed:>9,.0f}"
    )


def _session(args):
    try:
        return Session(args.preset, simulator=args.sim, waves=_WAVES if args.waves else None)
    except RuntimeError as error:  # a tool is missing
        raise UsageError(str(error)) from None


def _crop(args):
    """How much of the photographs can be moved in a minute or two; None for all."""
    if args.waves or args.sim == "icarus":
        return CROP
    return SMALL_CROP if PRESETS[args.preset].smem.size_bytes <= _SMALL else None


class _Progress:
    """Says every few seconds how many boxes have been compared."""

    def __init__(self, name):
        self._name = name
        self._said = time.perf_counter()

    def __call__(self, boxes):
        if time.perf_counter() - self._said > _PROGRESS_SECONDS:
            self._said = time.perf_counter()
            print(f"  {self._name}: {boxes:,} boxes compared", file=sys.stderr, flush=True)
