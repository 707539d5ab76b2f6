"""``tilewright figures``: updates the figures that pages cite from the latest measurements.

Benches, workloads and tests write results to ``build/results/``. ``docs/figures.json``, the *home* of figures, has the
figures of each result that pages cite, with the command, the commit and the date. A figure whose command
takes hours, or needs a GPU, is written into that file by hand.

A page cites a figure: a number, followed by a comment that names the result from which it comes.
``592,463<!-- figure: sim-network-default.cycles[*] -->`` cites the field ``cycles`` of all rows of a recorded result
that match a shell pattern; ``bench.lines`` cites a field of the result itself. Semicolons separate patterns; a pattern
that begins with ``!`` excludes rows.
"""

import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tilewright.errors import UsageError
from tilewright.files import write_atomically
from tilewright.results import FOLDER, load

from .stages import LEDGER

__all__ = ["HOME", "Citation", "configure", "disagreements", "find_citations", "measured_values", "pages", "run",
           "stale", "text_of"]  # fmt: skip

#: The home of all figures, from the root of the repository.
HOME = Path("docs/figures.json")
#: Numbers from this size on are not equal by chance.
_LARGE = 100_000
#: If there are more values, the least and the largest are kept.
_MOST = 8


def configure(parser):
    """Arguments of ``tilewright figures``."""
    parser.add_argument("--check", action="store_true", help="write nothing; the status is 1 if a figure is stale")


def run(args):
    """Updates the home and the pages, or only reports differences; UsageError outside of a checkout."""
    root = Path()
    if not (root / HOME).exists():
        raise UsageError(f"there is no {HOME}: run it in the root of the repository")
    before = _read(root)
    home = _updated(root, before)
    changes = [
        f"{name}.{what}: {_figures(before, name).get(what)} in {HOME}, now {values} ({entry['commit']})"
        for name, entry in home.items()
        for what, values in entry["figures"].items()
        if _figures(before, name).get(what) != values
    ]
    problems = disagreements(root, home)
    print("\n".join([*changes, *problems]) or f"all figures are those of {HOME} and {FOLDER}")
    if args.check:
        return 1 if changes or problems else 0
    for path, text in pages(root).items():
        write_atomically(root / path, _rewritten(text, home))
    # The numbers of a figure are in one line.
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda at: f"[{' '.join(at[1].split())}]", json.dumps(home, indent=1))
    write_atomically(root / HOME, text + "\n")
    return 1 if disagreements(root, home) else 0


def pages(root):
    """Texts of the pages that may cite figures, by path from the root: all except the bug ledger, which is history."""
    paths = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return {path.relative_to(root): path.read_text(encoding="utf-8") for path in paths if path.name != LEDGER.name}


def disagreements(root, home=None):
    """Sentences on figures of pages that differ from the home, and on figures of the home that no page cites."""
    home = _read(root) if home is None else home
    found, cited = [], set()
    for path, text in pages(root).items():
        for citation in find_citations(text):
            where, name = f"{path}:{citation.line}", f"{citation.name}.{citation.what}"
            cited.add((citation.name, citation.what))
            values = _figures(home, citation.name).get(citation.what)
            if not values:
                found.append(f"{where}: {HOME} has no figure {name}")
                continue
            try:
                wanted = text_of(citation, values)
            except ValueError as error:
                found.append(f"{where}: {citation.text}, but {name} is {error}")
                continue
            if wanted != citation.text:
                found.append(f"{where}: {citation.text}, but {name} is {wanted}")
        found += _copies(path, text, home)
    found += [
        f"{HOME}: no page cites {name}.{what}"
        for name, entry in home.items()
        for what in entry["figures"]
        if (name, what) not in cited
    ]
    return found


def _copies(path, text, home):
    """Sentences on large figures of the home that a page has without a citation, so that they would not be updated."""
    for citation in reversed(find_citations(text)):
        text = text[: citation.start] + text[citation.end :]
    every = {value: f"{name}.{what}" for name, entry in home.items()
             for what, values in entry["figures"].items() for value in values if value >= _LARGE}  # fmt: skip
    return [
        f"{path}:{text.count(chr(10), 0, at.start()) + 1}: {at[0]} is {name}, and does not cite it"
        for value, name in every.items()
        for at in re.finditer(rf"(?<![\d,.])(?:{value:,}|{value})(?![\d,.]*\d)", text)
    ]


def stale(name, root):
    """Sentences on figures in the latest result ``name`` that differ from the home of ``root``.

    A result without a cited figure gives a sentence too.
    """
    (result,) = load(name)
    kept = _figures(_read(root), name)
    if not kept:
        return [f"{HOME} has no figure of {name}: cite it on a page and run `tilewright figures`"]
    return [
        f"{name}.{what}: {now} was measured, {HOME} has {values}: run `tilewright figures`"
        for what, values in kept.items()
        if (now := _kept(measured_values(result, what))) != values
    ]


def _read(root):
    return json.loads((root / HOME).read_text(encoding="utf-8"))


def _figures(home, name):
    return home.get(name, {}).get("figures", {})


def _kept(values):
    """Values in the form of the home: rounded, and if there are many, only the least and the largest."""
    values = [round(value, 6) for value in values]
    return values if len(values) <= _MOST else [min(values), max(values)]


def _updated(root, before):
    """The home with the figures that pages cite now: recorded ones, or the previous ones if nothing was recorded."""
    cited = {}
    for text in pages(root).values():
        for citation in find_citations(text):
            cited.setdefault(citation.name, {})[citation.what] = None
    home = {}
    for name in sorted(cited):
        entry, results = before.get(name, {"figures": {}}), load(name)
        if results:
            source = {key: results[0].get(key, "") for key in ("command", "commit", "date")}
            figures = {what: _kept(measured_values(results[0], what)) for what in sorted(cited[name])}
            # The commit is the one on which these figures were first measured.
            home[name] = entry if figures == entry["figures"] else source | {"figures": figures}
        elif name in before:
            figures = {what: entry["figures"][what] for what in sorted(cited[name]) if what in entry["figures"]}
            home[name] = entry | {"figures": figures}
    return home


def _rewritten(text, home):
    """A page with the figures of the home; figures that do not fit their form stay unchanged."""
    for citation in reversed(find_citations(text)):
        values = _figures(home, citation.name).get(citation.what)
        try:
            new = text_of(citation, values) if values else citation.text
        except ValueError:
            continue
        text = text[: citation.start] + new + text[citation.end :]
    return text


_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_UNITS = {"thousand": 1e3, "million": 1e6, "k": 1e3}
_CITATION = re.compile(
    rf"(?<![\w.,])(?P<text>(?:{_NUMBER}(?:, | to | and ))*{_NUMBER})(?P<unit> ?[^\W\d_]+| %)?(?P<bold>\*\*)?"
    r"<!-- figure: (?P<name>[a-z0-9][a-z0-9-]*)\.(?P<what>[a-z][a-z0-9_]*(?:\[.*?\])?) -->"
)
_COMMENT = re.compile(r"<!-- *figure")


@dataclass(frozen=True)
class Citation:
    """A figure on a page.

    Attributes
    ----------
    line : int
        Line of the page, from 1 on.
    start, end : int
        Position of its numbers in the text of the page.
    text : str
        The numbers: one, two with ``to`` for the least and the largest, or a list.
    unit : str
        The word after them, which may be ``thousand``, ``million`` or ``k``.
    name, what : str
        The recorded result, and its field.
    """

    line: int
    start: int
    end: int
    text: str
    unit: str
    name: str
    what: str


def find_citations(text):
    """The citations of a page, in order.

    Raises
    ------
    ValueError
        If a comment begins like a citation, but is not one, or has no number before it.
    """
    found = [
        Citation(text.count("\n", 0, at.start()) + 1, *at.span("text"), at["text"], (at["unit"] or "").strip(),
                 at["name"], at["what"])
        for at in _CITATION.finditer(text)
    ]  # fmt: skip
    ends = {at.end("bold") if at["bold"] else max(at.end("text"), at.end("unit")) for at in _CITATION.finditer(text)}
    for comment in _COMMENT.finditer(text):
        if comment.start() not in ends:
            line = text.count("\n", 0, comment.start()) + 1
            raise ValueError(f"line {line}: this is no citation of a figure: {text[comment.start() :].splitlines()[0]}")
    return found


def measured_values(result, what):
    """The list of numbers of a recorded result that a citation names; empty if the result has none with that name."""
    field, _, patterns = what.rstrip("]").partition("[")
    if not patterns:
        return [result[field]] if field in result else []
    rows = result.get("rows", {})
    patterns = [each.strip() for each in patterns.split(";")]
    left_out = [each[1:] for each in patterns if each.startswith("!")]
    names = dict.fromkeys(
        name for each in patterns for name in rows
        if fnmatchcase(name, each) and not any(fnmatchcase(name, other) for other in left_out)
    )  # fmt: skip
    return [rows[name][field] for name in names if field in rows[name]]


def text_of(citation, values):
    """The text that a citation should have, in its present form: same number of decimals, with or without commas.

    Raises
    ------
    ValueError
        If the form cannot express the values: one number for several that differ, or a list of another length.
    """
    numbers = re.findall(_NUMBER, citation.text)
    scale = _UNITS.get(citation.unit, 1)
    if " to " in citation.text and len(numbers) == 2:
        values = [min(values), max(values)]
    elif len(numbers) == 1:
        shown = {_shown(value / scale, numbers[0]) for value in values}
        if len(shown) > 1:
            raise ValueError(f"one number for several: {_shown(min(values) / scale, numbers[0])} to "
                             f"{_shown(max(values) / scale, numbers[0])}")  # fmt: skip
        values = values[:1]
    elif len(numbers) != len(values):
        raise ValueError(f"{len(numbers)} numbers for {len(values)} values")
    shown = (_shown(value / scale, number) for value, number in zip(values, numbers, strict=True))
    return re.sub(_NUMBER, lambda _: next(shown), citation.text)


def _shown(value, like):
    """A number with as many decimals as another one, and commas from 10,000 on, or 1,000 if the other one has one."""
    decimals = len(like.partition(".")[2])
    text = f"{value:,.{decimals}f}"
    return text if "," in like or abs(value) >= 10_000 else text.replace(",", "")
