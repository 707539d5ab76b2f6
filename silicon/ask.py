"""Answers to questions: the changes on golden and on silicon, as text, as JSON and as rows of a table."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tilewright.arguments import add_out
from tilewright.errors import UsageError
from tilewright.files import BUILD, write_atomically
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import run_case
from tilewright.sim.replay.outcome import shared_names

from .packing import Ending, Status, issues
from .program import open_program
from .replay import no_counterpart
from .replies import spots

__all__ = ["Answer", "Side", "ask", "ask_all", "configure", "document", "golden_side", "read_questions", "run",
           "silicon_side", "tables"]  # fmt: skip

_WHOLE_BYTES = 48  # bytes of a change that is shown as a whole; of a longer one only the first bytes are shown
_FIRST_BYTES = 16
_SHOWN_CHANGES = 2
_MEMORIES = {"smem": "shared", "gmem": "global"}

#: The one error that the driver has for a map that breaks a rule.
_CUDA_ERRORS = {1: "CUDA_ERROR_INVALID_VALUE"}


@dataclass(frozen=True)
class Side:
    """The answer of golden or of silicon to a question.

    Attributes
    ----------
    refusal : str or None
        Why the commands were not executed: our error, or the message of the driver or the GPU.
    bytes : list of int, str or None
        The bytes that a barrier counted for each command; None for a command without a barrier.
    smem, gmem : list of [int, str]
        Address and new contents, in hex, of each change of memory. Changes less than 16 bytes apart are one change.
        With several cores, changes of shared memory have a third entry: the numbers of the cores with that change.
    """

    refusal: str | None
    bytes: list
    smem: list
    gmem: list

    def text(self):
        """The answer as one line; long changes are shortened."""
        if self.refusal:
            return f"refused: {self.refusal}"
        counted = [str(number) for number in self.bytes if number is not None]
        changes = [
            f"{_MEMORIES[memory]} {address:#x}{_where(*cores)}: {_cut(data)}"
            for memory in _MEMORIES
            for address, data, *cores in getattr(self, memory)
        ]
        more = len(changes) - _SHOWN_CHANGES
        parts = [f"counts {', '.join(counted)}"] if counted else []
        parts += changes[:_SHOWN_CHANGES] or ["nothing changes"]
        return "; ".join(parts + ([f"{more} more changes"] if more > 0 else []))


@dataclass(frozen=True)
class Answer:
    """A question, with the name of its case, and both answers; ``silicon`` is None if silicon has not run it."""

    name: str
    question: str
    golden: Side
    silicon: Side | None

    @property
    def same(self):
        """Whether both refuse, or both make the same changes."""
        if self.golden.refusal or self.silicon.refusal:
            return bool(self.golden.refusal and self.silicon.refusal)
        return self.golden == self.silicon

    def record(self):
        """The answer as an object for JSON."""
        return asdict(self) | ({} if self.silicon is None else {"same": self.same})


def golden_side(case):
    """The answer of the golden model to a case."""
    record, memories = run_case(case)
    counted = [
        number if issue.ends_at_barrier else None
        for issue, number in zip(issues(case), record["tx_bytes"], strict=True)
    ]
    smems = [memories[name] for name in shared_names(case.cores)]
    return _side(case, record["error"], counted, smems, memories["gmem"])


def silicon_side(case, reply):
    """The answer of silicon to a case, from the ``Reply`` of the program.

    A copy that never ends is an answer of its own, not a refusal.
    """
    if reply.status != Status.OK:
        return Side(f"by the GPU: {reply.message}", [], [], [])
    broken = next(filter(None, reply.maps.values()), None)
    if broken:
        return Side(f"by the driver: {_CUDA_ERRORS.get(broken, f'CUresult {broken}')}", [], [], [])
    if Ending.NO_SUCH in reply.endings:
        return Side("there is no such instruction", [], [], [])
    counted = ["never ends" if ending == Ending.UNFINISHED else _each(number)
               for ending, number in zip(reply.endings, reply.counted, strict=True)]  # fmt: skip
    return _side(case, None, counted, reply.smems, reply.gmem)


def document(silicon, answers):
    """The answers of a GPU as the text of a file, with one answer on each line."""
    lines = ",\n".join(json.dumps(answer.record(), ensure_ascii=False) for answer in answers)
    return f'{{"version": 1, "silicon": {json.dumps(silicon)}, "answers": [\n{lines}\n]}}\n'


def tables(answers):
    """The answers as Markdown, with a table for each topic, with which the names of its questions begin."""
    lines, topic = [], None
    for answer in answers:
        if answer.name.partition("/")[0] != topic:
            topic = answer.name.partition("/")[0]
            lines += [
                "",
                f"### {topic.replace('_', ' ')}",
                "",
                "| question | golden model | silicon |",
                "| --- | --- | --- |",
            ]
        silicon = "not captured" if answer.silicon is None else answer.silicon.text()
        if answer.silicon is not None and not answer.same:
            silicon = f"**different:** {silicon}"
        lines.append(f"| `{answer.name}`: {answer.question} | {answer.golden.text()} | {silicon} |")
    return "\n".join(lines[1:]) + "\n"


def _side(case, refusal, counted, smems, gmem):
    before = case.smem.contents()
    changes = [spots(before, smem) for smem in smems]
    smem = changes[0] if case.cores == 1 else _of_cores(changes)
    return Side(refusal, counted, smem, spots(case.global_contents(), gmem))


def _of_cores(changes):
    """The changes of several memories as one list of address, new contents and cores."""
    cores = {}
    for core, found in enumerate(changes):
        for address, data in found:
            cores.setdefault((address, data), []).append(core)
    return [[address, data, those] for (address, data), those in sorted(cores.items(), key=lambda item: item[1])]


def _where(cores=()):
    """The text for the cores in whose shared memory a change is."""
    if not cores:
        return ""
    return f" of core{'s' * (len(cores) > 1)} {', '.join(map(str, cores))}"


def _each(counted):
    """The counted bytes, as text if cores counted differently."""
    return f"{', '.join(map(str, counted))} in cores 0 to {len(counted) - 1}" if isinstance(counted, tuple) else counted


def _cut(digits):
    count = len(digits) // 2
    return digits if count <= _WHOLE_BYTES else f"{digits[: 2 * _FIRST_BYTES]}… ({count} bytes)"


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("questions", metavar="QUESTIONS.json", type=Path,
                        help="file of cases, each with its question as `why`")  # fmt: skip
    add_out(
        parser,
        "ANSWERS.json",
        "file for answers; their tables are next to it, as Markdown",
        BUILD / "silicon_answers.json",
    )


def run(args):
    """Runs the subcommand; returns 0 for any answers."""
    cases = read_questions(args.questions)
    with open_program() as program:
        silicon = program.hello.provenance()

        def keep(answers):  # after each answer, because a lease may end at any time
            write_atomically(args.out, document(silicon, answers))
            write_atomically(args.out.with_suffix(".md"), tables(answers))

        ask_all(cases, program, keep)
    print(args.out)
    return 0


def read_questions(path):
    """The cases of a file; UsageError if silicon cannot run one of them."""
    cases = read_cases(path)
    for case in cases:
        reason = no_counterpart(case)
        if reason:
            raise UsageError(f"case {case.name!r}: silicon cannot be asked: {reason}")
    return cases


def ask_all(cases, program, keep=lambda answers: None):
    """Runs questions one after the other, prints and returns the answers; ``keep`` gets all of them each time."""
    answers = []
    for case in cases:
        answers.append(ask(case, program))
        print(_report(answers[-1]), flush=True)
        keep(answers)
    same = sum(answer.same for answer in answers)
    print(f"{len(answers)} questions to {program.hello.gpu}: {same} times the same, {len(answers) - same} DIFFERENT")
    return answers


def ask(case, program=None):
    """The :class:`Answer` to the question of a case; without a program silicon's answer is missing."""
    silicon = silicon_side(case, program.run(case)) if program else None
    return Answer(case.name, case.why, golden_side(case), silicon)


def _report(answer):
    verdict = "same" if answer.same else "DIFFERENT"
    return (
        f"{verdict:<10}{answer.name}: {answer.question}\n"
        f"    golden   {answer.golden.text()}\n    silicon  {answer.silicon.text()}"
    )
