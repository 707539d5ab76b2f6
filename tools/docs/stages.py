"""The verification stage: the goals that are met, according to recorded figures."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilewright.arguments import add_out
from tilewright.errors import UsageError
from tilewright.files import write_atomically
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.results import FOLDER, load, record
from tilewright.sim.harness.axi_channels import Rule

from .field_tables import table

__all__ = ["GOALS", "LEDGER", "Goal", "configure", "record_rules", "rules_table", "run", "stages_text"]

#: Bugs found so far, one table row each.
LEDGER = Path("docs/bugs.md")


def configure(parser):
    """Arguments of ``tilewright stages``."""
    add_out(parser, "FILE.md", "output file; rows without new figures stay", "STAGES.md")


def run(args):
    """Writes the page, and reports the rows without new figures; UsageError if there are no figures at all."""
    if not any(load(goal.results) for goal in GOALS if goal.results):
        raise UsageError(f"there are no figures in {FOLDER}: `make test` and `make bench` leave them there")
    text = stages_text(args.out.read_text(encoding="utf-8") if args.out.exists() else "")
    write_atomically(args.out, text)
    kept = [str(goal.number) for goal in GOALS if goal.target and not load(goal.results) and _measured(text, goal)]
    if kept:
        print(f"kept from before, for {FOLDER} has no figures of them: {', '.join(kept)}")
    print(args.out)
    return 0


@dataclass(frozen=True)
class Goal:
    """One goal of the ladder.

    Attributes
    ----------
    number : int
    name : str
        The quantity that is counted.
    target : str
        The requirement of stage V1; empty if there is none.
    results : str
        Pattern of the names of its results.
    show : callable
        Returns the text of the table for a list of figures.
    met : callable
        Returns whether a list of figures meets the goal.
    """

    number: int
    name: str
    target: str = ""
    results: str = ""
    show: Callable = lambda found: ""
    met: Callable = lambda found: False


def _total(found, figure):
    return sum(figures[figure] for figures in found)


def _compared(number, name, target, cases, results, noun="cases"):
    """A goal of a number of ``cases`` without a mismatch."""
    return Goal(
        number,
        name,
        target,
        results,
        lambda found: f"{_total(found, 'cases'):,} {noun}, {_total(found, 'mismatches')} mismatches",
        lambda found: _total(found, "cases") >= cases and not _total(found, "mismatches"),
    )


def _killed(number, name, results):
    """A goal of a mutation score; the first stage only requires that it is measured."""
    return Goal(
        number,
        name,
        "measured",
        results,
        lambda found: f"{_total(found, 'killed')} of {_total(found, 'mutants')} mutants killed",
        lambda found: _total(found, "mutants") > 0,
    )


def _properties(found):
    """Identifiers of the properties that are proved without a bound, in order: F1, F2, …"""
    proved = {figures["property"] for figures in found if figures["mode"] == "prove"}
    return sorted(proved, key=lambda identifier: int(identifier[1:]))


def _empty_bins(found):
    return sum(len(figures["empty"]) for figures in found)


GOALS = (
    _compared(1, "Random descriptors against the golden model, whole memory compared", "1,000 cases", 1000, "random-*"),
    Goal(2, "The same in bulk, per release"),
    Goal(
        3,
        "Functional coverage",
        "plan written",
        "coverage-*",
        lambda found: f"{_total(found, 'bins') - _empty_bins(found)} of {_total(found, 'bins')} bins",
        lambda found: _total(found, "bins") > 0,
    ),
    Goal(
        4,
        "Code coverage",
        "shown",
        "code-coverage",
        lambda found: f"lines {found[0]['line']:.1f} %, branches {found[0]['branch']:.1f} %",
        bool,
    ),
    Goal(
        5,
        "Properties proved without a bound",
        "F1 (queues), F3 and F4 (read addresses)",
        "proof-f*",
        lambda found: ", ".join(_properties(found)) + f" in {len(found)} proofs",
        lambda found: {"F1", "F3", "F4"} <= set(_properties(found)),
    ),
    _killed(6, "Mutation score of the simulation", "mutation-simulation-*"),
    _killed(7, "Mutation score of the properties", "mutation-properties-*"),
    _compared(8, "Four-state simulation without power-on values", "done", 1, "unknown-*"),
    Goal(9, "Gate level"),
    Goal(
        10,
        "Lint of the generated Verilog",
        "0 errors",
        "lint-*",
        lambda found: f"{_total(found, 'errors')} errors in {len(found)} runs",
        lambda found: not _total(found, "errors"),
    ),
    Goal(11, "Isolation by windows", "guard exists", "isolation-*", lambda found: "guard exists", bool),
    _compared(12, "AXI error responses injected", "SLVERR on reads", 1, "axi-errors-*", "errors"),
    _compared(13, "Reset in mid-transfer", "at random moments", 1, "reset-*", "resets"),
    Goal(14, "Progress bounds"),
    Goal(15, "Pass rate over seeds"),
    Goal(
        16,
        "Presets elaborated and simulated",
        ", ".join(TMAU_PRESETS),
        "preset-*",
        lambda found: ", ".join(dict.fromkeys(figures["preset"] for figures in found if figures["simulated"])),
        lambda found: set(TMAU_PRESETS) <= {figures["preset"] for figures in found if figures["simulated"]},
    ),
    _compared(17, "A second golden model, written independently", "1,000 cases", 1000, "second-opinion*"),
)


def _measured(page, goal):
    """The row of a goal on a page, if the page has its measurement; otherwise None."""
    head = f"| {goal.number} | {goal.name} | {goal.target} |"
    return next((row for row in page.splitlines() if row.startswith(head) and "| not measured |" not in row), None)


def _row(goal, before):
    if not goal.target:
        return f"| {goal.number} | {goal.name} | – | | | |"
    found = load(goal.results)
    if not found:
        return _measured(before, goal) or f"| {goal.number} | {goal.name} | {goal.target} | not measured | open | |"
    verdict = "**met**" if goal.met(found) else "open"
    commits = ", ".join(sorted({f"{figures['commit']} ({figures['date']})" for figures in found}))
    return f"| {goal.number} | {goal.name} | {goal.target} | {goal.show(found)} | {verdict} | {commits} |"


def _ledger_row():
    """The row of goal 18, which is met if the ledger has rows. It does not show their number, which changes often."""
    lines = LEDGER.read_text(encoding="utf-8").splitlines() if LEDGER.exists() else []
    bugs = sum(line.startswith("| ") for line in lines) - 2  # without the head of the table
    if bugs < 1:
        return "| 18 | Public bug ledger | kept | not measured | open | |"
    return "| 18 | Public bug ledger | kept | docs/bugs.md | **met** | |"


def stages_text(before=""):
    """STAGES.md as one string; goals without figures keep their rows of the page ``before``, if it has them."""
    rows = [*(_row(goal, before) for goal in GOALS), _ledger_row()]
    asked = [row for row in rows if "| – |" not in row]
    return "\n".join(
        [
            "# Verification stages",
            "",
            "Written by `make stages` from the figures that `make test` and `make bench` left behind; do not edit.",
            "The stages are V1 first use, V2 complete, V3 release. A dash stands where V1 asks for nothing.",
            "The commit is the one on which the figures were measured, with a + if files were changed.",
            "A row that was not measured since then keeps its figures and their commit.",
            "",
            f"**Stage V1: {sum('**met**' in row for row in asked)} of {len(asked)} goals met.**",
            "",
            "| # | goal | V1 asks for | measured | V1 | commit |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def record_rules(how, where, rules=Rule):
    """Records that ``rules`` were ``how`` (``"proved"`` or ``"simulated"``) in the suite ``where``."""
    record(f"axi-rules-{how}-{where}", how=how, where=where, rules=[rule.name for rule in rules])


def rules_table():
    """A Markdown table of the rules: the party that must keep each, and the suites that proved or simulated it last."""
    results = load("axi-rules-*")

    def places(rule, how):
        found = (each["where"] for each in results if each["how"] == how and rule.name in each["rules"])
        return ", ".join(found) or "–"

    rows = [
        (f"`{rule.name}`", rule.party.name.lower(), rule.doc, places(rule, "proved"), places(rule, "simulated"))
        for rule in Rule
    ]
    return table(["rule", "kept by", "meaning", "proved", "simulated"], rows)
