"""``tilewright replay``: runs the cases of a file (docs/replay.md) and compares with what they expect.

A backend is a module with ``open_backend(args)``, a context manager that yields a callable: one case in, an ``Outcome``
out. It may have ``why_not(case)``, the sentence why it has nothing to run the case on, or None. What another backend
than golden returns must also equal golden's, whole memories included.
"""

import json
import re
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

from ..files import write_atomically
from ..usage import UsageError
from .cases import read_cases
from .expectations import differences, mismatches
from .golden import run_case
from .rtl_options import configure_rtl

__all__ = ["BACKENDS", "configure", "run"]

#: Where cases can run, and the module that does it.
BACKENDS = {
    "golden": "tilewright.sim.replay.golden",
    "rtl": "tilewright.sim.replay.rtl",
    "gpu": "tilewright.sim.silicon.replay",
}


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("cases", metavar="CASES.json", type=Path, help="file of cases")
    parser.add_argument("--on", choices=list(BACKENDS), required=True, help="what runs the cases")
    parser.add_argument("--out", metavar="RESULTS.json", type=Path, help="write one result record a case")
    parser.add_argument("--dump", metavar="DIR", type=Path, help="write the memories after each case")
    configure_rtl(parser.add_argument_group("on rtl"))


def run(args):
    """Runs the subcommand; returns 1 if a case did not meet what it expects, otherwise 0."""
    cases = read_cases(args.cases)
    _check_targets(args)
    module = import_module(BACKENDS[args.on])
    why_not = getattr(module, "why_not", lambda case: None)
    records, missed, skipped = [], 0, 0
    with ExitStack() as stack:
        # Opened late: a file in which every case is skipped needs no simulator, and no GPU.
        backend = None
        for case in cases:
            reason = case.skip or why_not(case)
            if reason:
                records.append({"name": case.name, "skipped": reason})
                print(f"skipped   {case.name}: {reason}")
                skipped += 1
                continue
            backend = backend or stack.enter_context(module.open_backend(args))
            outcome = backend(case)
            wrong = mismatches(case.expect, outcome)
            if args.on != "golden":
                wrong += differences(outcome, run_case(case))
            missed += bool(wrong)
            records.append(outcome.record)
            if args.dump:
                _dump(args.dump, case.name, outcome.memories)
            verdict = "MISMATCH " if wrong else "met      " if case.expect else "ran      "
            print(f"{verdict} {case.name}{': ' if wrong else ''}{'; '.join(wrong)}", flush=True)
    if args.out:
        write_atomically(args.out, json.dumps({"version": 1, "results": records}, indent=1) + "\n")
    print(f"{len(cases) - skipped} cases ran on {args.on}, {missed} with a mismatch; {skipped} skipped")
    return 1 if missed else 0


def _check_targets(args):
    """Finds out before anything runs whether results can be written."""
    if args.out and (args.out.is_dir() or not args.out.parent.is_dir()):
        raise UsageError(f"--out must name a file in an existing folder, not {args.out}")
    if args.dump and (args.dump.is_file() or not args.dump.parent.is_dir()):
        raise UsageError(f"--dump must name a folder in an existing one, not {args.dump}")


def _dump(folder, name, memories):
    """Writes the memories of the case ``name``, whose characters that a file name must not have become underscores."""
    folder.mkdir(exist_ok=True)
    stem = re.sub(r"[^\w.-]", "_", name)
    for memory, data in memories.items():
        data.tofile(folder / f"{stem}.{memory}.bin")
