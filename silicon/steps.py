"""``tilewright silicon all``: runs all tests, cases and questions on a GPU, in one run that can be interrupted.

Answers are written to a folder at once; another call continues an interrupted run. ``tilewright silicon take`` reads
the folder, or the archive in it, on a machine without a GPU.
"""

import json
import subprocess
import sys
import tarfile
from argparse import ArgumentTypeError
from io import BytesIO
from pathlib import Path

from tilewright.arguments import add_out
from tilewright.errors import UsageError
from tilewright.files import BUILD, write_atomically

from .ask import ask_all, read_questions
from .capture import capture, clusters_to_run, configure_cases, what_to_run
from .program import open_program, source_key
from .replies import Journal, Kept
from .timing import measured, table

__all__ = ["ARCHIVE", "GPU_TEST", "NOTES", "QUESTIONS", "REPLIES", "STEPS", "TEST", "TIME", "WORKED", "configure",
           "run"]  # fmt: skip

#: Files in the folder: an archive of all others, the finished steps, replies to cases, output of the GPU test, times.
ARCHIVE, NOTES, REPLIES, TEST, TIME = "answers.tar.gz", "run.json", "replies.bin", "test.txt", "time.json"

#: Path from the root of the repository.
QUESTIONS = Path("tests/vectors/silicon/questions.json")
#: Cases of the TMAU; a GPU cannot run cases of other engines, and these need more than numpy.
WORKED = (Path("tests/vectors/tmau_seed.json"), Path("tests/vectors/layouts.json"))
GPU_TEST = Path("tests/integration/silicon/test_gpu.py")

#: The steps in order, with their tasks.
STEPS = {
    "test": "the test of the program",
    "worked": "worked cases",
    "ask": "open questions",
    "capture": "random cases",
    "clusters": "random cases of clusters, by kind",
    "time": "times of loads",
}


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("steps", metavar="STEP", nargs="*", type=_step,
                        help=f"steps to run (all that are left): {', '.join(STEPS)}")  # fmt: skip
    configure_cases(parser)
    add_out(parser, "FOLDER", "folder for the answers", BUILD / "silicon_answers")


def run(args):
    """Runs the subcommand; returns 1 if the GPU test fails, which ends the run, otherwise 0."""
    questions = read_questions(QUESTIONS)
    args.out.mkdir(parents=True, exist_ok=True)
    with open_program() as program:
        errand = _Errand(args, program, questions)
        try:
            return errand.run(args.steps)
        finally:
            _pack(args.out)


def _step(text):
    if text not in STEPS:
        raise ArgumentTypeError(f"must be one of {', '.join(STEPS)}, not {text!r}")
    return text


class _Errand:
    """The run of all steps on one GPU, with the steps that are finished."""

    def __init__(self, args, program, questions):
        self._args, self._questions = args, questions
        sources = source_key("replay")
        self._notes = {
            "version": 1,
            "silicon": program.hello.provenance(),
            "shared_bytes": program.hello.shared_bytes,
            "sources": sources,
            "cases": args.cases,
            "seed": args.seed,
            "steps": {},
        }
        self._go_on()
        self._program = Kept(Journal(args.out / REPLIES), program.hello, sources, program)

    def run(self, names):
        """Runs the named steps, or by default the remaining ones; returns the exit status."""
        done = self._notes["steps"]
        for number, (name, what) in enumerate(STEPS.items(), 1):
            if name not in names if names else name in done:
                continue
            print(f"[{number} of {len(STEPS)}] {name}: {what}", flush=True)
            done[name] = getattr(self, f"_{name}")()
            failed = done[name].startswith("FAILED")
            if failed:
                del done[name]
            self._write()
            if failed:
                print(f"The GPU test failed, see {self._args.out / TEST}. Mend the program and run this again; "
                      f"or name the steps to run all the same: {' '.join(list(STEPS)[1:])}")  # fmt: skip
                return 1
        print(f"{', '.join(done)} done: carry {self._args.out / ARCHIVE} back, and there `tilewright silicon take` it")
        return 0

    def _go_on(self):
        """Continues an earlier run if it had the same GPU and cases."""
        path = self._args.out / NOTES
        if not path.exists():
            self._write()
            return
        before = json.loads(path.read_text(encoding="utf-8"))
        for what, old, new in (
            *((name, before["silicon"][name], self._notes["silicon"][name]) for name in ("gpu", "driver", "cuda")),
            *((name, before[name], self._notes[name]) for name in ("shared_bytes", "cases", "seed")),
        ):
            if old != new:
                raise UsageError(f"{self._args.out} has answers for {what} {old}, not {new}: --out must name another")
        if before["sources"] == self._notes["sources"]:
            self._notes = before
        else:
            print("The program is another one than before: everything is asked again.")
            self._write()

    def _write(self):
        write_atomically(self._args.out / NOTES, json.dumps(self._notes, indent=1) + "\n")

    def _test(self):
        # Unbuffered, so that the output of tests comes before messages about them, which use another stream.
        command = [sys.executable, "-u", "-m", "unittest", "-v", str(GPU_TEST)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        write_atomically(self._args.out / TEST, done.stdout)
        print(done.stdout, end="", flush=True)
        said = done.stdout.strip().rpartition("\n")[2]
        return said if done.returncode == 0 else f"FAILED: {said}"

    def _worked(self):
        return self._captured(*what_to_run(WORKED))

    def _ask(self):
        answers = ask_all(self._questions, self._program)
        return f"{len(answers)} questions, {sum(not answer.same for answer in answers)} different"

    def _capture(self):
        return self._captured(*what_to_run([], self._args.seed, self._args.cases))

    def _clusters(self):
        return self._captured(*clusters_to_run(self._args.seed, self._args.cases))

    def _captured(self, entries, cases):
        taken = capture(entries, cases, self._program)
        taken.report(self._program.hello.gpu)
        return f"{len(taken.entries)} cases, {taken.different} different"

    def _time(self):
        result = measured()
        write_atomically(self._args.out / TIME, json.dumps(result, indent=1) + "\n")
        print("\n".join(table(result)), flush=True)
        return f"{len(result['shapes'])} shapes"


def _pack(folder):
    """Packs the contents of the folder into an archive in it."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in (NOTES, REPLIES, TEST, TIME):
            if (folder / name).exists():
                archive.add(folder / name, name)
    write_atomically(folder / ARCHIVE, packed.getvalue())
