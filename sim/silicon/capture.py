"""``tilewright silicon capture``: runs thousands of cases on a GPU, and keeps what came out as one file of cases.

Random cases and those of files. Each is compared with golden; what is kept is what silicon gave, even if it differs.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

from ..arguments import integer
from ..replay.cases import cases_of, read_cases, read_document
from ..replay.expectations import differences
from ..replay.golden import judge
from ..usage import UsageError
from .capture_file import Chooser, TooLargeError, expectation, spots, write_capture
from .program import open_program
from .random_cases import random_cases
from .random_cluster_cases import random_cluster_cases
from .replay import outcome_of
from .support import why_not

__all__ = ["Capture", "capture", "configure", "configure_cases", "run", "what_to_run", "where"]

_MOST_FAILED = 20
_EACH_CLUSTER = 10  # random cases for one of several cores
_STEP = 500  # cases between two signs of life


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("files", metavar="CASES.json", nargs="*", type=Path, help="files of cases beside random ones")
    configure_cases(parser)
    parser.add_argument("--out", metavar="FOLDER", type=Path, required=True, help="where the capture goes")


def configure_cases(parser):
    """Adds the arguments that say which random cases there are."""
    parser.add_argument("--cases", type=integer(0, 1_000_000), default=5000, help="how many random cases (%(default)s)")
    parser.add_argument("--seed", type=integer(0, 1 << 63), default=1, help="of the random cases (%(default)s)")


def run(args):
    """Runs the subcommand; returns 1 if a case differs from golden or the capture is too large, otherwise 0."""
    if not args.out.is_dir():
        raise UsageError(f"--out must name an existing folder, not {args.out}")
    entries, cases = what_to_run(args.files, args.seed, args.cases)
    with open_program() as program:
        hello = program.hello
        taken = capture(entries, cases, program)
    path = where(args.out, hello.gpu)
    taken.report(hello.gpu)
    try:
        size, with_bytes = write_capture(path, hello.provenance(), taken.entries, taken.kept)
    except TooLargeError as error:
        print(f"tilewright silicon: {error}: take fewer cases", file=sys.stderr)
        return 1
    print(f"{path}: {size} bytes; single bytes of {with_bytes} cases")
    return 1 if taken.different else 0


def what_to_run(files, seed=1, count=0):
    """The cases of files and random ones, a tenth more of several cores, as in a file and as read: two lists."""
    entries = [*_worked(files), *random_cases(seed, count), *random_cluster_cases(seed, count // _EACH_CLUSTER)]
    return entries, cases_of({"version": 1, "cases": entries}, "the capture", Path())


def where(folder, gpu):
    """Path of the capture of a GPU in a folder."""
    return folder / f"{re.sub('[^a-z0-9]+', '-', gpu.lower()).strip('-')}.json.xz"


class Capture:
    """What silicon made of cases.

    Attributes
    ----------
    entries : list of dict
        The cases that ran, as in a file, with what silicon gave as ``expect``.
    kept : dict
        By index, single bytes of the memories of some of them, as :func:`.capture_file.write_capture` takes them.
    different : int
        How many of them differ from golden.
    skipped : Counter
        How often each reason not to run one was met.
    """

    def __init__(self):
        self.entries = []
        self.kept = {}
        self.different = 0
        self.skipped = Counter()

    def report(self, gpu):
        """Prints a summary."""
        ran = len(self.entries)
        print(f"{ran} cases ran on {gpu}: {ran - self.different} equal to golden, {self.different} different; "
              f"{self.skipped.total()} skipped")  # fmt: skip
        for reason, count in self.skipped.most_common():
            print(f"{count:6} skipped: {reason}")


def capture(entries, cases, program, most_failed=None):
    """Runs cases, each given as in a file and as it was read; prints each one that differs; returns a `Capture`.

    UsageError after more than ``most_failed`` cases that failed or were not finished.
    """
    taken, chooser, failed = Capture(), Chooser(), 0
    most_failed = _MOST_FAILED if most_failed is None else most_failed
    for number, (entry, case) in enumerate(zip(entries, cases, strict=True)):
        if number and number % _STEP == 0:
            print(f"{number} of {len(cases)} cases", flush=True)
        reason = why_not(case)
        if reason:
            taken.skipped[reason] += 1
            continue
        outcome, (golden, open_bytes, _) = outcome_of(case, program.run(case)), judge(case)
        wrong = differences(outcome, golden, open_bytes)
        if wrong:
            print(f"DIFFERENT {case.name}: {'; '.join(wrong)}", flush=True)
        expect = expectation(outcome)
        alone = case.cores == 1  # single bytes are not expected of others
        if alone and chooser.wants(case, sum(golden.record["tx_bytes"])) and "smem" in expect:
            changes = _changes(case, outcome)
            taken.kept |= {len(taken.entries): changes} if changes else {}
        taken.entries.append(entry | {"expect": expect})
        taken.different += bool(wrong)
        failed += (expect["error"] or "").startswith(("failed", "unfinished"))
        if failed > most_failed:  # each costs a second or more, and something else is wrong
            raise UsageError(f"given up after {failed} cases that failed or were not finished, at {case.name!r}")
    return taken


def _changes(case, outcome):
    before = {"smem": case.smem.contents(), "gmem": case.global_contents()}
    changes = {memory: spots(start, outcome.memories[memory]) for memory, start in before.items()}
    return {memory: found for memory, found in changes.items() if found}


def _worked(files):
    """The cases of files, as they have them. Each file is first read by itself."""
    for path in files:
        read_cases(path)
        entries = read_document(path)["cases"]
        for entry in entries:
            if '"npy"' in json.dumps(entry):
                raise UsageError(f"{path}: case {entry['name']!r} has contents in another file, which is not captured")
        yield from entries
