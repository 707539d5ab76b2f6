"""The verification stages: the goals that are met, according to recorded figures."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tilewright.arguments import add_out
from tilewright.errors import UsageError
from tilewright.files import write_atomically
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.results import FOLDER, load, record
from tilewright.sim.harness.axi_channels import Rule

from .field_tables import table

__all__ = ["GOALS", "LEDGER", "Asked", "Goal", "configure", "record_rules", "rules_table", "run", "stages_text"]

#: Bugs found so far, one table row each.
LEDGER = Path("docs/bugs.md")


def configure(parser):
    """Arguments of ``tilewright stages``."""
    add_out(parser, "FILE.md", "output file; rows without new figures stay", "STAGES.md")


def run(args):
    """Writes the page, and reports the rows without new figures; UsageError if there are no figures at all."""
    if not any(goal.found for goal in GOALS):
        raise UsageError(f"there are no figures in {FOLDER}: `make test` and `make bench` leave them there")
    text = stages_text(args.out.read_text(encoding="utf-8") if args.out.exists() else "")
    write_atomically(args.out, text)
    kept = [str(goal.number) for goal in GOALS if not goal.found and _measured(text, goal)]
    if kept:
        print(f"kept from before, for {FOLDER} has no figures of them: {', '.join(kept)}")
    print(args.out)
    return 0


class Asked(NamedTuple):
    """What a stage asks for.

    Attributes
    ----------
    text : str
    met : callable
        Returns whether a list of figures, of which there is at least one, meets it.
    """

    text: str
    met: Callable = lambda found: True


@dataclass(frozen=True)
class Goal:
    """One goal of the ladder.

    Attributes
    ----------
    number : int
    name : str
        The quantity that is counted.
    results : tuple of str
        Patterns of the names of its results.
    show : callable
        Returns the text of the table for a list of figures.
    v1, v2 : Asked or None
        None if the stage asks for nothing.
    """

    number: int
    name: str
    results: tuple
    show: Callable
    v1: Asked | None
    v2: Asked | None

    @property
    def found(self):
        """Its figures."""
        return [figures for pattern in self.results for figures in load(pattern)]

    @property
    def head(self):
        """How its row begins."""
        asked = (stage.text if stage else "–" for stage in (self.v1, self.v2))
        return f"| {self.number} | {self.name} | {' | '.join(asked)} |"


#: Cases from which on a table says what they bound.
_MANY = 10_000


def _total(found, figure):
    return sum(figures[figure] for figures in found)


def _cases(least, text="{:,} cases"):
    """At least so many cases, without a mismatch."""
    return Asked(text.format(least), lambda found: _total(found, "cases") >= least and not _total(found, "mismatches"))


def _compared(number, name, results, v1, v2, noun="cases"):
    """A goal of cases that must not differ; of many, how seldom one may fail if none has, by the rule of three."""

    def show(found):
        cases, mismatches = _total(found, "cases"), _total(found, "mismatches")
        seldom = f", so fewer than 1 in {cases // 3:,} fails" if cases >= _MANY and not mismatches else ""
        return f"{cases:,} {noun}, {mismatches} mismatches{seldom}"

    return Goal(number, name, results, show, v1, v2)


def _share(least, hit, all_of):
    """At least so many percent."""
    return Asked(f"≥ {least} %", lambda found: 100 * hit(found) >= least * all_of(found))


def _killed(number, name, result, least, mutants=0, least_of_block=0):
    """A goal of a mutation score, of all and of each block; the first stage only requires that it is measured."""

    def show(found):
        return f"{found[0]['killed']:,} of {found[0]['mutants']:,} mutants killed"

    def met(found):
        blocks = found[0]["rows"].values() if least_of_block else ()
        shares = [(found[0], least), *((block, least_of_block) for block in blocks)]
        return found[0]["mutants"] >= mutants and all(
            100 * one["killed"] >= percent * one["mutants"] for one, percent in shares
        )

    asked = f"≥ {least} %" + (f" of {mutants:,} mutants, no block below {least_of_block} %" if mutants else "")
    return Goal(number, name, (result,), show, Asked("measured"), Asked(asked, met))


#: Properties of the list in docs/verification.md, "What is proved".
_PROPERTIES = 17


def _properties(found):
    """Identifiers of the properties that are proved without a bound, in order: F1, F2, …"""
    proved = {figures["property"] for figures in found if figures["mode"] == "prove"}
    return sorted(proved, key=lambda identifier: int(identifier[1:]))


def _all_bins(found):
    return _total(found, "bins")


def _hit_bins(found):
    return _all_bins(found) - sum(len(figures["empty"]) for figures in found)


def _presets(found):
    return dict.fromkeys(figures["preset"] for figures in found if figures["simulated"])


def _passed(found):
    return _total(found, "chunks") - _total(found, "mismatches")


_ALL_PRESETS = Asked(", ".join(TMAU_PRESETS), lambda found: set(TMAU_PRESETS) <= set(_presets(found)))
_NEVER = lambda found: False  # noqa: E731 - nothing measures it yet
_MOVER = tuple(f"campaign-{kind}-*" for kind in ("loads", "mixed", "garbage"))

GOALS = (
    _compared(1, "Random descriptors against the golden model, whole memory compared",
              ("random-*", "campaign-loads-*"), _cases(1000), _cases(10_000)),
    _compared(2, "Commands of the access unit in bulk, on the RTL", _MOVER, None, _cases(100_000)),
    Goal(3, "Functional coverage", ("coverage-*",),
         lambda found: f"{_hit_bins(found)} of {_all_bins(found)} bins",
         Asked("plan written"), _share(90, _hit_bins, _all_bins)),
    Goal(4, "Code coverage", ("code-coverage",),
         lambda found: f"lines {found[0]['line']:.1f} %, branches {found[0]['branch']:.1f} %",
         Asked("shown"), Asked("≥ 90 %", lambda found: min(found[0]["line"], found[0]["branch"]) >= 90)),
    Goal(5, "Properties proved without a bound", ("proof-f*",),
         lambda found: f"{', '.join(_properties(found))} in {len(found)} proofs",
         Asked("F1 (queues), F3 and F4 (read addresses)", lambda found: {"F1", "F3", "F4"} <= set(_properties(found))),
         Asked(f"≥ 90 % of F1 to F{_PROPERTIES}", lambda found: len(_properties(found)) >= 0.9 * _PROPERTIES)),
    _killed(6, "Mutation score of unit tests and proofs together", "mutation-together", 90, 2000, 80),
    _killed(7, "Mutation score of the properties", "mutation-properties", 75),
    _compared(8, "Four-state simulation without power-on values", ("unknown-*",), _cases(1, "done"),
              Asked("and a proof for each block", _NEVER)),
    Goal(9, "Gate level against the golden model", ("gate-*",), lambda found: f"{_total(found, 'cases')} cases",
         None, _cases(300)),
    Goal(10, "Lint of the generated Verilog", ("lint-*",),
         lambda found: f"{_total(found, 'errors')} errors in {len(found)} runs",
         Asked("0 errors", lambda found: not _total(found, "errors")),
         Asked("0 warnings without a waiver", lambda found: not _total(found, "errors"))),
    Goal(11, "Isolation by windows", ("isolation-*", "proof-f7*"),
         lambda found: f"guard exists, {'proved' if 'F7' in _properties(_proofs(found)) else 'not proved'}",
         Asked("guard exists"), Asked("proved", lambda found: "F7" in _properties(_proofs(found)))),
    _compared(12, "AXI error responses injected", ("axi-errors-*",), _cases(1, "SLVERR on reads"),
              _cases(500, "SLVERR and DECERR, at each beat"), "errors"),
    _compared(13, "Reset in mid-transfer", ("reset-*",), _cases(1, "at random moments"),
              _cases(56, "8 moments of 7 operations"), "resets"),
    Goal(14, "Progress bounds", ("proof-f11*",), lambda found: f"{len(found)} proofs of F11",
         None, Asked("bounds proved", lambda found: "F11" in _properties(found))),
    Goal(15, "Pass rate over seeds", ("campaign-*",),
         lambda found: f"{_passed(_chunked(found)):,} of {_total(_chunked(found), 'chunks'):,} seeds",
         None, Asked("≥ 90 %", lambda found: 10 * _passed(_chunked(found)) >= 9 * _total(_chunked(found), "chunks"))),
    Goal(16, "Presets elaborated and simulated", ("preset-*",), lambda found: ", ".join(_presets(found)),
         _ALL_PRESETS, _ALL_PRESETS),
    _compared(17, "A second golden model, written independently", ("second-opinion*",), _cases(1000), _cases(10_000)),
)  # fmt: skip


def _proofs(found):
    """Of figures those of proofs."""
    return [figures for figures in found if "property" in figures]


def _chunked(found):
    """Of figures of campaigns those of cases, without coverage."""
    return [figures for figures in found if "chunks" in figures]


def _measured(page, goal):
    """The row of a goal on a page, if the page has its measurement; otherwise None."""
    return next((row for row in page.splitlines() if row.startswith(goal.head) and "| not measured |" not in row), None)


def _row(goal, before):
    if not (found := goal.found):
        verdicts = " | ".join("open" if stage else "–" for stage in (goal.v1, goal.v2))
        return _measured(before, goal) or f"{goal.head} not measured | {verdicts} | |"
    verdicts = ("–" if stage is None else "**met**" if stage.met(found) else "open" for stage in (goal.v1, goal.v2))
    commits = ", ".join(sorted({f"{figures['commit']} ({figures['date']})" for figures in found}))
    return f"{goal.head} {goal.show(found)} | {' | '.join(verdicts)} | {commits} |"


def _ledger_row():
    """The row of goal 18, which is met if the ledger has rows. It does not show their number, which changes often."""
    lines = LEDGER.read_text(encoding="utf-8").splitlines() if LEDGER.exists() else []
    bugs = sum(line.startswith("| ") for line in lines) - 2  # without the head of the table
    shown = "not measured | open | open" if bugs < 1 else "docs/bugs.md | **met** | **met**"
    return f"| 18 | Public bug ledger | kept | kept | {shown} | |"


def _met(stage, verdicts):
    return f"**Stage {stage}: {verdicts.count('**met**')} of {len(verdicts) - verdicts.count('–')} goals met.**"


def stages_text(before=""):
    """STAGES.md as one string; goals without figures keep their rows of the page ``before``, if it has them."""
    rows = [*(_row(goal, before) for goal in GOALS), _ledger_row()]
    cells = [row.split(" | ") for row in rows]
    met = [_met(f"V{stage}", [row[column] for row in cells]) for stage, column in ((1, 5), (2, 6))]
    return "\n".join(
        [
            "# Verification stages",
            "",
            "Written by `make stages` from the figures that tests, campaigns and mutants left behind; do not edit.",
            "`make stages FRESH=1` measures all of them first, which takes hours.",
            "The stages are V1 first use, V2 complete, V3 release. A dash stands where a stage asks for nothing.",
            "The commit is the one on which the figures were measured, with a + if files were changed.",
            "A row that was not measured since then keeps its figures and their commit.",
            "",
            " ".join(met),
            "",
            "| # | goal | V1 asks for | V2 asks for | measured | V1 | V2 | commit |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
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
