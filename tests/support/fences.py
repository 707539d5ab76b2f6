"""The code blocks of a page of the documentation, for the tests that run them."""

import re
from typing import NamedTuple

__all__ = ["Fence", "fences"]

_MARK = re.compile(r"<!-- not run: (.+) -->")


class Fence(NamedTuple):
    """One block between two lines of three backquotes.

    Attributes
    ----------
    line : int
        Number of its first line of text.
    language : str
        The word after the first three backquotes, or empty.
    text : str
    reason : str
        Why tests do not run it, from ``<!-- not run: reason -->`` in the line above; otherwise empty.
    """

    line: int
    language: str
    text: str
    reason: str = ""


def fences(text):
    """Code blocks of the page ``text``, from top to bottom.

    Raises
    ------
    ValueError
        If the last block does not end.
    """
    blocks, opened, above = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        if opened is None:
            if line.startswith("```"):
                mark = _MARK.fullmatch(above)
                opened = Fence(number + 1, line[3:].strip(), "", mark[1] if mark else "")
            above = line
        elif line == "```":
            blocks.append(opened)
            opened, above = None, ""
        else:
            opened = opened._replace(text=f"{opened.text}{line}\n")
    if opened is not None:
        raise ValueError(f"line {opened.line - 1}: the block does not end")
    return blocks
