"""``tilewright silicon ask``: puts the questions that documents leave open to a GPU, beside what golden says.

Every question is run, also where our TMAU refuses a command: silicon has no such check, and what it does is the answer.
"""

import json
from pathlib import Path

from ..arguments import output_file
from ..files import BUILD, write_atomically
from ..replay.cases import read_cases
from ..usage import UsageError
from .answers import Answer, golden_side, silicon_side, tables
from .program import open_program
from .support import no_counterpart

__all__ = ["ask", "configure", "run"]


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("questions", metavar="QUESTIONS.json", type=Path,
                        help="file of cases, each with its question as `why`")  # fmt: skip
    parser.add_argument("--out", metavar="ANSWERS.json", type=output_file,
                        default=str(BUILD / "silicon_answers.json"),
                        help="where answers go; tables of them go beside it, as Markdown (%(default)s)")  # fmt: skip


def run(args):
    """Runs the subcommand; returns 0 whatever the answers are."""
    cases = read_cases(args.questions)
    for case in cases:
        reason = no_counterpart(case)
        if reason:
            raise UsageError(f"case {case.name!r}: silicon cannot be asked: {reason}")
    answers = []
    with open_program() as program:
        silicon = program.hello.provenance()
        for case in cases:
            answers.append(ask(case, program))
            print(_report(answers[-1]), flush=True)
            _write(args.out, silicon, answers)  # each time: a lease may end in the middle
    same = sum(answer.same for answer in answers)
    print(f"{len(answers)} questions to {silicon['gpu']}: {same} times the same, {len(answers) - same} DIFFERENT")
    print(args.out)
    return 0


def ask(case, program=None):
    """The :class:`Answer` to the question that a case is; without a program silicon's is left open."""
    silicon = silicon_side(case, program.run(case)) if program else None
    return Answer(case.name, case.why, golden_side(case), silicon)


def _report(answer):
    verdict = "same" if answer.same else "DIFFERENT"
    return (
        f"{verdict:<10}{answer.name}: {answer.question}\n"
        f"    golden   {answer.golden.text()}\n    silicon  {answer.silicon.text()}"
    )


def _write(path, silicon, answers):
    """Answers as JSON, and as tables in Markdown."""
    lines = ",\n".join(json.dumps(answer.record(), ensure_ascii=False) for answer in answers)
    text = f'{{"version": 1, "silicon": {json.dumps(silicon)}, "answers": [\n{lines}\n]}}\n'
    write_atomically(path, text)
    write_atomically(path.with_suffix(".md"), tables(answers))
