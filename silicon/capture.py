"""Captures the results of silicon as a case file (docs/replay.md): expectations, and bytes of some cases."""

import json
import lzma
import re
import sys
from collections import Counter
from pathlib import Path

from tilewright.arguments import integer
from tilewright.errors import UsageError
from tilewright.files import write_atomically
from tilewright.sim.replay.cases import cases_of, read_cases, read_document
from tilewright.sim.replay.golden import judge
from tilewright.sim.replay.outcome import differences

from .cases import case_features, random_cases
from .cluster_cases import random_cases_of_kinds, random_cluster_cases
from .program import open_program
from .replay import outcome_of, why_not
from .replies import spots

__all__ = ["MOST_BYTES", "MOST_CLUSTER_BYTES", "Capture", "Chooser", "TooLargeError", "capture", "clusters_to_run",
           "configure", "configure_cases", "expectation", "run", "what_to_run", "where",
           "write_capture"]  # fmt: skip

#: The most bytes of a capture in a repository, and of a capture of clusters.
MOST_BYTES = 1 << 20
MOST_CLUSTER_BYTES = 400 << 10

_DIGITS = 16  # of each hash of a cluster
_EACH = 4  # cases with bytes, for each feature
_LARGEST = 2048  # the most bytes that a case with bytes may move
_ALL = 320 << 10  # the most bytes that all cases with bytes may move


class TooLargeError(Exception):
    """A capture would take more bytes than it may."""


class Chooser:
    """Chooses the cases whose bytes are kept: some for every feature, none large; the choice is deterministic."""

    def __init__(self):
        self._counts = Counter()
        self._room = _ALL

    def wants(self, case, moved):
        """Whether to keep the bytes of the next case, which moves ``moved`` bytes."""
        features = case_features(case)
        wanted = 0 < moved <= min(_LARGEST, self._room) and any(self._counts[name] < _EACH for name in features)
        if wanted:
            self._counts.update(features)
            self._room -= moved
        return wanted


def expectation(outcome):
    """The member ``expect`` of a case with this outcome; if the case failed, only the error is known.

    Of several cores it has only the first digits of hashes, as they do not compress.
    """
    record = outcome.record
    if (record["error"] or "").startswith("failed"):
        return {"error": record["error"]}
    digits = 64 if len(record["smem_sha256"]) == 1 else _DIGITS
    hashes = [{"sha256": smem[:digits]} for smem in record["smem_sha256"]]
    strides = {"strides": record["strides"]} if "strides" in record else {}
    return {"error": record["error"], "tx_bytes": record["tx_bytes"], "smem": hashes if len(hashes) > 1 else hashes[0],
            "gmem": {"sha256": record["gmem_sha256"][:digits]}} | strides  # fmt: skip


def write_capture(path, silicon, entries, kept, most_bytes=None):
    """Writes the file; it is complete or missing.

    Parameters
    ----------
    path : Path
    silicon : dict
        The member of this name.
    entries : list of dict
        Cases with ``expect``.
    kept : dict
        By index of the case, spots of its memories. The last ones are left out if the file would be too large.
    most_bytes : int or None
        ``MOST_BYTES`` if None.

    Returns
    -------
    (int, int)
        Bytes of the file, and number of cases with single bytes.

    Raises
    ------
    TooLargeError
        If it would take more than ``most_bytes`` even without single bytes; nothing is written.
    """
    kept, most_bytes = dict(kept), most_bytes or MOST_BYTES
    while len(packed := _packed(silicon, entries, kept)) > most_bytes and kept:
        kept = dict(list(kept.items())[: len(kept) // 2])
    if len(packed) > most_bytes:
        raise TooLargeError(f"the capture takes {len(packed)} bytes, more than {most_bytes}, and was not written")
    write_atomically(path, packed)
    return len(packed), len(kept)


def _packed(silicon, entries, kept):
    """The text of the file, with one case on each line."""
    lines = [json.dumps(_with_bytes(entry, kept.get(index, {}))) for index, entry in enumerate(entries)]
    text = f'{{"version": 1, "silicon": {json.dumps(silicon)}, "cases": [\n' + ",\n".join(lines) + "\n]}\n"
    return lzma.compress(text.encode(), preset=9)


def _with_bytes(entry, kept):
    """A case whose memories also expect the kept bytes."""
    expect = entry["expect"]
    return entry | {"expect": expect | {memory: expect[memory] | {"bytes": found} for memory, found in kept.items()}}


_MOST_FAILED = 20
_EACH_CLUSTER = 10  # random cases for each case of several cores
_STEP = 500  # cases between two progress reports


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument(
        "files", metavar="CASES.json", nargs="*", type=Path, help="files of cases, in addition to random ones"
    )
    configure_cases(parser)
    parser.add_argument("--out", metavar="FOLDER", type=Path, required=True, help="folder for the capture")


def configure_cases(parser):
    """Adds the arguments for random cases."""
    parser.add_argument(
        "--cases", type=integer(0, 1_000_000), default=5000, help="number of random cases (%(default)s)"
    )
    parser.add_argument("--seed", type=integer(0, 1 << 63), default=1, help="seed of the random cases (%(default)s)")


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
    """The cases of files, random ones, and a tenth more of several cores; as two lists, for a file and as read."""
    entries = [*_worked(files), *random_cases(seed, count), *random_cluster_cases(seed, count // _EACH_CLUSTER)]
    return entries, cases_of({"version": 1, "cases": entries}, "the capture", Path())


def clusters_to_run(seed, count):
    """The cases of a capture of clusters: two fifths of ``count`` of each kind; both lists of :func:`what_to_run`."""
    entries = list(random_cases_of_kinds(seed, 2 * count // 5))
    return entries, cases_of({"version": 1, "cases": entries}, "the capture of clusters", Path())


def where(folder, gpu, part=""):
    """Path of the capture of a GPU in a folder, or of a part that has its own file."""
    return folder / f"{re.sub('[^a-z0-9]+', '-', gpu.lower()).strip('-')}{part}.json.xz"


class Capture:
    """The results of silicon for cases.

    Attributes
    ----------
    entries : list of dict
        The cases that ran, in the form of a file, with silicon's results as ``expect``.
    kept : dict
        By index, single bytes of the memories of some of them, for :func:`write_capture`.
    different : int
        Number of cases that differ from golden.
    skipped : Counter
        Number of skipped cases by reason.
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
    """Runs cases, given in the form of a file and as read; prints those that differ; returns a `Capture`.

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
        alone = case.cores == 1  # only these cases expect single bytes
        if alone and chooser.wants(case, sum(golden.record["tx_bytes"])) and "smem" in expect:
            changes = _changes(case, outcome)
            taken.kept |= {len(taken.entries): changes} if changes else {}
        taken.entries.append(entry | {"expect": expect})
        taken.different += bool(wrong)
        failed += (expect["error"] or "").startswith(("failed", "unfinished"))
        if failed > most_failed:  # each takes a second or more, and there must be another problem
            raise UsageError(f"given up after {failed} cases that failed or were not finished, at {case.name!r}")
    return taken


def _changes(case, outcome):
    before = {"smem": case.smem.contents(), "gmem": case.global_contents()}
    changes = {memory: spots(start, outcome.memories[memory]) for memory, start in before.items()}
    return {memory: found for memory, found in changes.items() if found}


def _worked(files):
    """The cases of files, unchanged. Each file is first checked separately."""
    for path in files:
        read_cases(path)
        entries = read_document(path)["cases"]
        for entry in entries:
            if '"npy"' in json.dumps(entry):
                raise UsageError(f"{path}: case {entry['name']!r} has contents in another file, which is not captured")
        yield from entries
