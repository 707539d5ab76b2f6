"""``tilewright mutate``: small changes of the hardware, and how many of them tests and proofs notice, by Dask."""

import hashlib
import json
import os
import random
import sys
import tempfile
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path

from tilewright.arguments import integer
from tilewright.errors import UsageError
from tilewright.files import BUILD
from tilewright.processes import run_process
from tilewright.progress import report, working
from tilewright.results import record
from tilewright.workers import Records, add_workers, connected, worked

from .figures import summary, table
from .imports import ROOT, closure, proofs_of, unit_tests_of
from .mutants import HARDWARE, sample

__all__ = ["JUDGES", "Chunk", "configure", "files", "judge_chunk", "run"]

#: Judges by name: each gives the files of tests that judge a file of hardware.
JUDGES = {"tests": unit_tests_of, "proofs": proofs_of}
#: Files that describe shapes and parameters.
_SHAPES = {"__init__.py", "layouts.py", "params.py", "signatures.py"}


@dataclass(frozen=True)
class Chunk:
    """Mutants of one file that a worker judges in one go.

    Attributes
    ----------
    mutants : tuple of Mutant
    judges : tuple of str
        Of :data:`JUDGES`; each judges what those before it left.
    """

    mutants: tuple
    judges: tuple

    @property
    def groups(self):
        """Files of tests by judge."""
        path = Path("hw", self.mutants[0].path)
        return {judge: [str(test) for test in JUDGES[judge](path)] for judge in self.judges}

    @cached_property
    def key(self):
        """A word for the chunk and for all sources that its tests need: what is known of other files stays known."""
        digest = hashlib.sha256(repr(self).encode())
        for path in sorted({one for tests in self.groups.values() for test in tests for one in closure(Path(test))}):
            digest.update(path.as_posix().encode() + (ROOT / path).read_bytes())
        return digest.hexdigest()[:24]


def files(blocks=()):
    """Files with hardware, of folders or files of :data:`HARDWARE` if there are any.

    Raises
    ------
    UsageError
        If a folder or file has no hardware, or there are no tests.
    """
    if not (ROOT / "tests").is_dir():
        raise UsageError(f"there are no tests in {ROOT}: mutants are judged in a checkout of the repository")
    found = [path.relative_to(HARDWARE) for path in sorted(HARDWARE.rglob("*.py")) if path.name not in _SHAPES]
    for block in blocks:
        if not any(path.is_relative_to(block) for path in found):
            raise UsageError(f"there is no folder or file {block} with hardware in hw/")
    return [str(path) for path in found if not blocks or any(path.is_relative_to(block) for block in blocks)]


def judge_chunk(chunk):
    """The record of a chunk: a record of ``trial.py`` for each mutant, or why it cannot be judged."""
    work = json.dumps({"groups": chunk.groups, "mutants": [astuple(mutant) for mutant in chunk.mutants]})
    with tempfile.TemporaryDirectory(prefix="tilewright-") as build:
        environment = os.environ | {"TILEWRIGHT_BUILD": build, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tilewright.tools.mutation.trial", work, f"{build}/records"]
        done = run_process(command, env=environment, cwd=ROOT)
        if done.returncode:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if "Error" in line]
            return {"mutants": [], "failure": (lines or ["it ended by itself"])[-1].strip()}
        return {"mutants": [json.loads(line) for line in Path(build, "records").read_text().splitlines()]}


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--block", action="append", metavar="PATH", default=[],
                        help="folder or file in hw/; may be repeated; all if left out")  # fmt: skip
    parser.add_argument("--count", type=integer(1, 1000), default=16, help="mutants of each file (%(default)s)")
    parser.add_argument("--seed", type=integer(0, (1 << 31) - 1), default=1, help="of the choice (%(default)s)")
    parser.add_argument("--judge", choices=list(JUDGES), action="append",
                        help=f"may be repeated, each judges what is left; {', '.join(JUDGES)} if left out")  # fmt: skip
    add_workers(parser)


def run(args):
    """Runs the subcommand."""
    chunks = _chunks(args)
    records, found = Records(BUILD / "mutants"), {}
    with working("mutants"):
        report("workers")
        with connected(args.scheduler, args.workers) as client:
            submit = lambda run, chunk: run(judge_chunk, chunk)  # noqa: E731
            for chunk, one in worked(client, submit, chunks, records, "chunks"):
                if "failure" in one:
                    print(f"hw/{chunk.mutants[0].path}: not judged: {one['failure']}", flush=True)
                found |= dict(zip(chunk.mutants, one["mutants"], strict=False))
    figures = summary(found)
    print(table(figures["rows"]))
    for line in figures["survivors"]:
        print(line)
    name = {tuple(JUDGES): "mutation-together", ("proofs",): "mutation-properties"}.get(chunks[0].judges)
    if name and not args.block:  # some blocks do not replace the figures of all
        record(name, command=f"tilewright mutate --count {args.count}", seed=args.seed, **figures)
    return 0


#: Mutants of a chunk: the tests run once without any for each chunk.
_SLICE = 8


def _chunks(args):
    """All chunks; the first of each file come first, and blocks in turn, so that some of them are a fair sample."""
    judges = tuple(dict.fromkeys(args.judge or JUDGES))
    names = files(args.block)
    random.Random(args.seed).shuffle(names)
    samples = [sample(path, args.count, args.seed) for path in names]
    slices = [each[first : first + _SLICE] for first in range(0, args.count, _SLICE) for each in samples]
    chunks = [Chunk(tuple(mutants), judges) for mutants in slices if mutants]
    return [chunk for chunk in chunks if any(chunk.groups.values())]  # of many files nothing is proved
