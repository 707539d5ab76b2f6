"""``tilewright sim``: runs workloads on the RTL, and compares everything with the golden model."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from tilewright.arguments import integer
from tilewright.errors import HostError, UsageError
from tilewright.extras import require
from tilewright.files import BUILD, REPORT, writable, write_atomically
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.progress import Bars, Lines, report, shown, work
from tilewright.results import record
from tilewright.sim.hdl.build import require_tools
from tilewright.sim.hdl.settings import add_settings, changed
from tilewright.sim.workloads import SHORT, WORKLOADS, names_on
from tilewright.sim.workloads.findings import Findings, Totals
from tilewright.sim.workloads.photographs import load_photographs
from tilewright.spec.cluster import MOST_CORES

__all__ = ["CROP", "SMALL_CROP", "Played", "configure", "play", "play_all", "run", "table_rows"]

#: Height and width of the part of each photograph that is moved if simulation is slow, or writes a waveform.
CROP = (48, 64)
#: The same if shared memory holds only a box or two, so that every box waits for the memory.
SMALL_CROP = (208, 320)
_SMALL = 4096  # bytes of shared memory

#: The workload that is no session of a core: a processor runs it.
_SYSTEM = "system"
_PHASES = BUILD / "report/system.svg"
_WAVES = BUILD / "waves"
#: Names of the waveforms of machines.
_WAVE_NAMES = {"tmau": "sim", "pe": "pe", "conv": "conv", "cluster": "cluster", "accelerator": "accelerator"}


class Played(NamedTuple):
    """A workload that has run; ``speed`` is simulated cycles a second."""

    name: str
    totals: Totals
    findings: Findings
    speed: float


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--preset", choices=list(TMAU_PRESETS), default="default", help="configuration (%(default)s)")
    add_settings(parser)
    parser.add_argument("--sim", choices=("verilator", "icarus"), default="verilator", help="simulator (%(default)s)")
    parser.add_argument("--workload", choices=[*WORKLOADS, _SYSTEM, "all"],
                        help=f"one or all, or a {_SYSTEM} with a processor; default: {', '.join(SHORT)}")  # fmt: skip
    parser.add_argument("--layers", metavar="N", type=integer(1, 1 << 20),
                        help="only the first N layers of a network")  # fmt: skip
    parser.add_argument("--cores", metavar="N", type=integer(1, MOST_CORES), default=1,
                        help="cores that compute a network together, 1 to 16 (%(default)s)")  # fmt: skip
    parser.add_argument("--waves", action="store_true", help=f"write waveforms of a crop to {_WAVES}/")


def run(args):
    """Runs the subcommand. The status is 1 if a result differs from the golden model."""
    # Imported here: help and completion do not need the workloads and the report.
    from tilewright.sim.report.page import write_report
    from tilewright.sim.report.timeline import record_transfer
    from tilewright.sim.workloads.machines import Machines

    if args.workload == _SYSTEM:
        return _run_system(args)
    with writable(BUILD):  # figures and the report are written there at the end
        pass
    crop = _crop(args)
    small = crop is not None
    photographs = load_photographs(crop)
    names = _names(args)
    what, (height, width, _) = "crops" if small else "whole photographs", photographs[0].shape
    extent = (
        f"{what} of {width} x {height} pixels"
        if set(names) - set(names_on("accelerator"))
        else "photographs of 224 x 224 pixels"
    )
    for name in names:
        if WORKLOADS[name].extra:
            require(WORKLOADS[name].extra)
    require_tools(args.sim)  # before minutes of elaboration
    waves = _waves(args.sim) if args.waves else {}
    several = [f"networks on {args.cores} cores"] if args.cores > 1 else []
    hardware = ", ".join([f"preset {args.preset}", *several, *map(str, args.settings)])
    print(f"{hardware} on {args.sim}; {extent}; memory answers after 100 cycles", flush=True)
    begin = time.perf_counter()
    with (
        shown(Bars() if sys.stderr.isatty() else Lines(sys.stderr)) as display,
        # Ends after the machines, so that workloads that still run end at once.
        ExitStack() as players,
        Machines(args.preset, args.sim, small, waves, args.settings, args.cores) as machines,
    ):
        machines.prepare(names, display)
        sessions = {name: machines.session(name) for name in names}
        print(f"simulators ready after {time.perf_counter() - begin:.0f} s\n\n{_HEAD}", flush=True)
        played = []
        for each in play_all(sessions, photographs, small, players, args.layers):
            played.append(each)
            print("\n".join(table_rows(each)), flush=True)
        moved = next((session for name, session in sessions.items() if name in names_on("tmau")), None)
        transfer = record_transfer(moved) if moved else None
    problems = [f"{each.name}: {problem}" for each in played for problem in each.totals.problems]
    print("\n" + "\n".join([*_LEGEND, *(f"{each.name}: {fact}" for each in played for fact in each.findings.facts)]))
    for problem in problems[:20]:
        print(f"DIFFERS {problem}")
    boxes = sum(each.totals.parts for each in played if each.name in names_on("tmau"))
    if not args.settings and args.cores == 1:
        record(f"preset-{args.preset}", preset=args.preset, simulated=not problems, boxes=boxes)
    if not (small or args.layers or args.settings):
        for each in played:
            cores = args.cores if each.name in names_on("accelerator") else 1
            command = f"tilewright sim --workload {each.name} --preset {args.preset}"
            command += f" --cores {cores}" if cores > 1 else ""
            record(f"sim-{each.name}-{args.preset}{f'-{cores}-cores' * (cores > 1)}", command=command, **_figures(each))
    for path in waves.values():
        if path.exists():
            print(f"{path}, with {path.stem}.gtkw for GTKWave and {path.stem}.sucl for Surfer")
    setting = f"{hardware[0].upper()}{hardware[1:]}, simulated on {args.sim}: {extent}."
    print(write_report(REPORT, setting, [session.params for session in sessions.values()], played, transfer))
    return 1 if problems else 0


def _run_system(args):
    """Runs the firmware of the reference system, which has a core of its own; the status is 1 if anything differs."""
    for option, given in (("--preset", args.preset != "unit" and "preset" in getattr(args, "given", ())),
                          ("--set", args.settings), ("--layers", args.layers)):  # fmt: skip
        if given:
            raise UsageError(f"workload {_SYSTEM} takes no {option}: its core has preset unit")
    if args.waves:
        raise UsageError(f"workload {_SYSTEM} writes no waveforms: it runs millions of cycles")
    require("soc")
    require_tools(args.sim)
    from tilewright.system.run import picture, run_system, table  # needs packages of the extra

    with shown(Bars() if sys.stderr.isatty() else Lines(sys.stderr)):
        outcome = run_system(args.sim)
    print(table(outcome))
    for problem in outcome.problems:
        print(f"DIFFERS {problem}")
    if args.sim == "verilator":  # the other network is smaller
        write_atomically(_PHASES, picture(outcome.phases))
        print(_PHASES)
        record("sim-system", command=f"tilewright sim --workload {_SYSTEM}", cycles=outcome.cycles, **outcome.phases)
    return 1 if outcome.problems else 0


def play_all(sessions, photographs, small, players, layers=None):
    """Runs workloads, on different machines in parallel; yields each :class:`Played`, in the order of the workloads.

    Parameters
    ----------
    sessions : dict of str to session
        By name of the workload. Workloads that share a session run one after the other.
    photographs, small, layers
        See :func:`play`.
    players : ExitStack
        Waits for the threads at its end.
    """
    threads = {session: players.enter_context(ThreadPoolExecutor(1)) for session in dict.fromkeys(sessions.values())}

    def run_one(number, name, session):
        with work(f"workload {number} of {len(sessions)}"):
            report(name)
            return play(name, session, photographs, small, partial(report, name), layers)

    waiting = [
        threads[session].submit(run_one, number, name, session)
        for number, (name, session) in enumerate(sessions.items(), 1)
    ]
    try:
        for each in waiting:
            yield each.result()
    finally:
        for each in waiting:
            each.cancel()


def play(name, session, photographs, small=False, progress=lambda parts: None, layers=None):
    """Runs one workload on a session of its machine and returns it as :class:`Played`.

    If ``layers`` is not None, a network runs only this number of layers. It reports its own progress.
    """
    simulation = session.simulation
    cycles, seconds = simulation.cycles, simulation.seconds
    options = {"small": small, "progress": progress, "layers": layers}
    worker, findings = WORKLOADS[name].play(session, photographs, **options)
    speed = (simulation.cycles - cycles) / max(simulation.seconds - seconds, 1e-9)
    return Played(name, worker.totals, findings, speed)


_HEAD = (
    f"{'workload':<11} {'parts':>6} {'work':>16} {'cycles':>9} {'limit':>9} {'of limit':>8} {'steady':>7} "
    f"{'vs golden':>12} {'cycles/s':>9}"
)
_LEGEND = (
    "parts: boxes that were moved, programs of one or all engines, or jobs of the convolution engine",
    "work: bytes landed in shared memory, including fill; or multiply-accumulates (MACs) of elements",
    "limit: boxes: for each shared memory full, the larger of distinct bus words of each box and lines written",
    "       program of the processing engine: MACs / multipliers of all threads; job: the limit of docs/conv.md",
    "       program of all engines: the largest of MACs / multipliers of the convolution engine, words read, written",
    "       programs of several cores: the largest of MACs / multipliers of all of their threads, words read, written",
    "of limit: limit / cycles, with the latency of each shared memory full; steady: from the end of its first box on",
)


def table_rows(played):
    """Lines of the table: a workload, followed by its cases."""
    return [
        f"{_row(played.name, played.totals)} {played.speed:>9,.0f}",
        *(_row(f"  {name}", totals) for name, totals in played.findings.cases.items()),
    ]


def _row(name, totals):
    widths = (6, 16, 9, 9, 8, 7, 12)
    return " ".join([f"{name:<11}", *(f"{cell:>{width}}" for cell, width in zip(totals.cells, widths, strict=True))])


def _waves(simulator):
    """The files of waveforms, by machine: FST, which is much smaller, if the simulator can write it, otherwise VCD."""
    try:
        require_tools(simulator, "fst")
        suffix = "fst"
    except HostError as error:
        print(f"waveforms are VCD: {error}")
        suffix = "vcd"
    return {machine: _WAVES / f"{name}.{suffix}" for machine, name in _WAVE_NAMES.items()}


def _figures(played):
    """The figures of a workload for a recorded result, with a row for each case."""
    one = played.totals
    rows = {name: {"cycles": case.cycles, "work": case.work} for name, case in played.findings.cases.items()}
    return {"cycles": one.cycles, "work": one.work, "parts": one.parts, "share": 100 * one.utilisation, "rows": rows}


def _names(args):
    """The workload that was given, or those of several for which the preset has the hardware."""
    lacking = {name: _lacking(name, args) for name in WORKLOADS}
    names = [args.workload] if args.workload in WORKLOADS else WORKLOADS if args.workload else SHORT
    if args.workload in WORKLOADS and lacking[args.workload]:
        raise UsageError(f"workload {args.workload} needs {lacking[args.workload]}")
    for option in ("--layers", "--cores") if not set(names) & set(names_on("accelerator")) else ():
        if getattr(args, option[2:]) not in (None, 1):
            raise UsageError(f"{option} goes with a workload among {', '.join(names_on('accelerator'))}")
    return [name for name in names if not lacking[name]]


def _lacking(name, args):
    """What a workload lacks: features of the preset's mover, or a fast simulator; empty if it lacks nothing."""
    features = [each for each in WORKLOADS[name].needs if not _mover(args).has(each)]
    if features:
        return f"{', '.join(features)}, which preset {args.preset} lacks"
    if WORKLOADS[name].machine == "accelerator" and not args.layers and (args.waves or args.sim == "icarus"):
        return "--layers N on icarus and with --waves: all layers would take days"
    return ""


def _crop(args):
    """How much of the photographs can be moved in a minute or two; None for all."""
    if args.waves or args.sim == "icarus":
        return CROP
    return SMALL_CROP if _mover(args).smem.size_bytes <= _SMALL else None


def _mover(args):
    """TmauParams of the mover."""
    return changed(TMAU_PRESETS[args.preset], args.settings)
