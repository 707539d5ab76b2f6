"""``tilewright replay``: runs the cases of a file (docs/replay.md), and compares their results with the expected ones.

A backend is a module with two functions: ``why_not(case, args)`` returns the sentence why the backend cannot run the
case, or None; ``hardware(case, args)`` returns the parameters that golden must have for the comparison, or None. All
backends except golden also have ``open_backend(args)``, a context manager that yields a callable from a case to an
``Outcome``. The outcome must equal golden's, including whole memories except for the bytes that the specification
leaves open.
"""

import json
import re
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

from tilewright.arguments import add_out, output_folder
from tilewright.errors import HostError, UsageError
from tilewright.extras import require
from tilewright.files import write_atomically
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import judge
from tilewright.sim.replay.outcome import differences, mismatches, settled
from tilewright.sim.replay.rtl_options import configure_rtl, preset_name

__all__ = ["BACKENDS", "configure", "run"]

#: The module for each backend.
BACKENDS = {
    "golden": "tilewright.sim.replay.golden",
    "rtl": "tilewright.sim.replay.rtl",
    "gpu": "tilewright.silicon.replay",
}
#: Extras that backends need.
_EXTRAS = {"rtl": "sim"}

_NOTHING_RAN = 3  # exit status
_LONGEST_NAME = 200  # bytes of the name of a case with --dump; file names have at most 255


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("cases", metavar="CASES.json", type=Path, help="file of cases")
    parser.add_argument("--on", choices=list(BACKENDS), required=True, help="backend that runs the cases")
    add_out(parser, "RESULTS.json", "write one result record for each case")
    parser.add_argument("--dump", metavar="DIR", type=output_folder, help="write the memories after each case")
    parser.add_argument("--preset", type=preset_name, help="configuration of the access unit (on rtl: default)")
    configure_rtl(parser.add_argument_group("on rtl"))


def run(args):
    """Runs the subcommand; returns 1 if a case has unexpected results, 3 if none ran, otherwise 0."""
    require(_EXTRAS[args.on]) if args.on in _EXTRAS else None
    cases = read_cases(args.cases)
    _check_targets(args, cases)
    module = import_module(BACKENDS[args.on])
    records, missed, skipped = [], 0, 0
    with ExitStack() as stack:
        # Opened late: if every case is skipped, neither a simulator nor a GPU is needed.
        backend = None
        for case in cases:
            # Golden runs first, because it reports a program that would never end.
            reason = module.why_not(case, args)
            golden = None if reason else _guarded(case, judge, module.hardware(case, args))
            reason = reason or _undecided(golden)
            if reason:
                records.append({"name": case.name, "skipped": reason})
                print(f"skipped   {case.name}: {reason}")
                skipped += 1
                continue
            outcome = golden.outcome
            if args.on != "golden":
                backend = backend or stack.enter_context(module.open_backend(args))
                outcome = _guarded(case, backend)
            certain = settled(outcome, golden.open_bytes)
            wrong = mismatches(case.expect, certain) + differences(outcome, golden.outcome, golden.open_bytes)
            missed += bool(wrong)
            records.append(certain.record)
            if args.dump:
                _dump(args.dump, case.name, outcome.memories)
            verdict = "MISMATCH " if wrong else "met      " if case.expect else "ran      "
            print(f"{verdict} {case.name}{': ' if wrong else ''}{'; '.join(wrong)}", flush=True)
    if args.out:
        write_atomically(args.out, json.dumps({"version": 1, "results": records}, indent=1) + "\n")
    print(f"{len(cases) - skipped} cases ran on {args.on}, {missed} with a mismatch; {skipped} skipped")
    return 1 if missed else _NOTHING_RAN if skipped == len(cases) else 0


def _undecided(golden):
    """Why the right outcome is undefined, as a sentence, or None."""
    return golden.undecided and f"its result is left open: {golden.undecided}"


def _guarded(case, run, *arguments):
    """Calls a function for a case; errors in it name the case."""
    try:
        return run(case, *arguments)
    except (MemoryError, RuntimeError) as error:
        kind = next(kind for kind in (MemoryError, HostError, RuntimeError) if isinstance(error, kind))
        raise kind(f"case {case.name!r}: {error}") from None


def _check_targets(args, cases):
    """Checks, before any case runs, whether results can be written."""
    if args.out and args.out.exists() and args.out.samefile(args.cases):
        raise UsageError(f"--out must not be the file of cases, {args.cases}")
    if not args.dump:
        return
    names = {}
    for case in cases:
        length = len(case.name.encode())
        if length > _LONGEST_NAME:
            raise UsageError(
                f"case {case.name[:20]!r}… has a name of {length} bytes: with --dump at most {_LONGEST_NAME}"
            )
        other = names.setdefault(_stem(case.name), case.name)
        if other != case.name:
            raise UsageError(f"cases {other!r} and {case.name!r} would have the same files in --dump")
    args.dump.mkdir(parents=True, exist_ok=True)


def _stem(name):
    """The beginning of the names of a case's files."""
    return re.sub(r"[^\w.-]", "_", name)


def _dump(folder, name, memories):
    for memory, data in memories.items():
        write_atomically(folder / f"{_stem(name)}.{memory}.bin", data.tobytes())
