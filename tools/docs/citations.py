"""Figures that pages cite: a number, followed by a comment that names the result from which it comes.

``592,463<!-- figure: sim-network-default.cycles[*] -->`` cites the field ``cycles`` of all rows of a recorded result
that match a shell pattern; ``bench.lines`` cites a field of the result itself. Semicolons separate patterns; a pattern
that begins with ``!`` excludes rows.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

__all__ = ["Citation", "find_citations", "measured_values", "text_of"]

_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_UNITS = {"thousand": 1e3, "million": 1e6, "k": 1e3}
_CITATION = re.compile(
    rf"(?<![\w.,])(?P<text>(?:{_NUMBER}(?:, | to | and ))*{_NUMBER})(?P<unit> ?[^\W\d_]+| %)?(?P<bold>\*\*)?"
    r"<!-- figure: (?P<name>[a-z0-9][a-z0-9-]*)\.(?P<what>[a-z_]+(?:\[.*?\])?) -->"
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
