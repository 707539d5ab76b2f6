"""``tilewright silicon take``: imports the results of ``tilewright silicon all`` from a machine with a GPU.

It runs in the root of the repository, and repeats the comparison with the current golden model. The capture and the
answers become test vectors, and the tables of docs/silicon.md show them.
"""

import json
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tilewright.errors import UsageError
from tilewright.files import BUILD, write_atomically

from .ask import ask, document, read_questions, tables
from .capture import (
    MOST_BYTES,
    MOST_CLUSTER_BYTES,
    TooLargeError,
    capture,
    clusters_to_run,
    what_to_run,
    where,
    write_capture,
)
from .packing import Status
from .replay import why_not
from .replies import Hello, Journal, Kept
from .steps import NOTES, QUESTIONS, REPLIES, TIME, WORKED
from .timing import table, utilisations

__all__ = ["configure", "run", "shown"]

_PAGE = Path("docs/silicon.md")
_HEADING = "## Questions\n"


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("answers", metavar="ANSWERS", type=Path, help="archive or folder of answers")


def run(args):
    """Runs the subcommand; returns 1 if a case differs from golden or the capture is too large, otherwise 0."""
    with _unpacked(args.answers) as folder:
        notes = _notes(folder, args.answers)
        kept = Kept(Journal(folder / REPLIES), _hello(notes), notes["sources"])
        print(", ".join(f"{name} {value}" for name, value in notes["silicon"].items()))
        for step, said in notes["steps"].items():
            print(f"{step}: {said}")
        seed, count = notes["seed"], notes["cases"]
        status = max(
            _take_cases(notes, kept, "", what_to_run(WORKED, seed, count), MOST_BYTES),
            _take_cases(notes, kept, "-clusters", clusters_to_run(seed, count), MOST_CLUSTER_BYTES),
        )
        _take_answers(notes, kept)
        _take_times(folder / TIME)
    return status


def shown(page, answers):
    """The text of docs/silicon.md with its tables replaced by the tables of these answers."""
    before, heading, rest = page.partition(_HEADING)
    start, end = rest.find("### "), rest.rfind("\n| `")
    if not heading or start < 0 or end < 0:
        raise UsageError(f"{_PAGE} has no tables below {_HEADING.strip()!r}")
    end = rest.index("\n", end + 1) + 1
    return before + heading + rest[:start] + tables(answers) + rest[end:]


@contextmanager
def _unpacked(path):
    """Yields the folder of answers."""
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
        except (OSError, EOFError, tarfile.TarError) as error:
            raise UsageError(f"{path} is no archive of answers: {getattr(error, 'strerror', None) or error}") from None
        yield Path(folder)


def _notes(folder, given):
    try:
        return json.loads((folder / NOTES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(f"{given} has no {NOTES}, with which answers begin") from None


def _hello(notes):
    silicon = notes["silicon"]
    return Hello(Status.OK, 0, 0, 0, 0, notes["shared_bytes"], silicon["gpu"], "")


def _take_cases(notes, kept, part, to_run, most_bytes):
    """Writes the capture of the cases that silicon has answered, of ``to_run`` in both forms; returns the status."""
    entries, cases = to_run
    pairs = [(entry, case) for entry, case in zip(entries, cases, strict=True) if why_not(case) or kept.knows(case)]
    print(f"{len(cases) - len(pairs)} of {len(cases)} cases have not been answered")
    taken = capture(*map(list, zip(*pairs, strict=True)), kept, most_failed=len(pairs)) if pairs else None
    if not taken or not taken.entries:
        return 0
    taken.report(kept.hello.gpu)
    path = where(QUESTIONS.parent, kept.hello.gpu, part)
    try:
        size, with_bytes = write_capture(path, notes["silicon"], taken.entries, taken.kept, most_bytes)
    except TooLargeError as error:
        print(f"{error}: take fewer cases")
        return 1
    print(f"{path}: {size} bytes; single bytes of {with_bytes} cases")
    return 1 if taken.different else 0


def _take_answers(notes, kept):
    """Writes the answers, and the tables of all questions."""
    cases = read_questions(QUESTIONS)
    answers = [ask(case, kept if kept.knows(case) else None) for case in cases]
    given = [answer for answer in answers if answer.silicon]
    different = sum(not answer.same for answer in given)
    print(f"{len(given)} of {len(cases)} questions have been answered, {different} differently")
    if given:
        path = QUESTIONS.with_name("answers.json")
        write_atomically(path, document(notes["silicon"], given))
        write_atomically(_PAGE, shown(_PAGE.read_text(encoding="utf-8"), answers))
        print(f"{path}, {_PAGE}: the pages must not say any more that nothing has been captured")


def _take_times(path):
    """Prints the times with our current figures, and writes them to the file of ``tilewright silicon time``."""
    if not path.exists():
        return
    result = json.loads(path.read_text(encoding="utf-8"))
    ours = utilisations()
    for line in result["shapes"]:
        line["tilewright"] = ours.get(line["name"])
    out = BUILD / "silicon_time.json"
    write_atomically(out, json.dumps(result, indent=1) + "\n")
    print("\n".join(table(result)))
    print(out)
