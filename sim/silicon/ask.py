"""``tilewright silicon ask``: puts the questions that documents leave open to a GPU, beside what golden says.

Every question is run, also where our TMAU refuses a command: silicon has no such check, and what it does is the answer.
"""

from pathlib import Path

from ..arguments import output_file
from ..files import BUILD, write_atomically
from ..replay.cases import read_cases
from ..usage import UsageError
from .answers import Answer, document, golden_side, silicon_side, tables
from .program import open_program
from .support import no_counterpart

__all__ = ["ask", "ask_all", "configure", "read_questions", "run"]


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("questions", metavar="QUESTIONS.json", type=Path,
                        help="file of cases, each with its question as `why`")  # fmt: skip
    parser.add_argument("--out", metavar="ANSWERS.json", type=output_file,
                        default=str(BUILD / "silicon_answers.json"),
                        help="where answers go; tables of them go beside it, as Markdown (%(default)s)")  # fmt: skip


def run(args):
    """Runs the subcommand; returns 0 whatever the answers are."""
    cases = read_questions(args.questions)
    with open_program() as program:
        silicon = program.hello.provenance()

        def keep(answers):  # each time: a lease may end in the middle
            write_atomically(args.out, document(silicon, answers))
            write_atomically(args.out.with_suffix(".md"), tables(answers))

        ask_all(cases, program, keep)
    print(args.out)
    return 0


def read_questions(path):
    """The cases of a file, all of which silicon can be asked; UsageError if not."""
    cases = read_cases(path)
    for case in cases:
        reason = no_counterpart(case)
        if reason:
            raise UsageError(f"case {case.name!r}: silicon cannot be asked: {reason}")
    return cases


def ask_all(cases, program, keep=lambda answers: None):
    """Asks and prints one after the other; ``keep`` gets all answers so far after each. Returns them."""
    answers = []
    for case in cases:
        answers.append(ask(case, program))
        print(_report(answers[-1]), flush=True)
        keep(answers)
    same = sum(answer.same for answer in answers)
    print(f"{len(answers)} questions to {program.hello.gpu}: {same} times the same, {len(answers) - same} DIFFERENT")
    return answers


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
