"""Code coverage: how many lines and branches of the generated Verilog a simulation by Verilator ran."""

import re
from pathlib import Path

__all__ = ["code_coverage"]

_POINT = re.compile(r"^C '(.*)' (\d+)$", re.MULTILINE)
_PAIR = re.compile(r"\x01([^\x02]*)\x02([^\x01]*)")


def code_coverage(path, module):
    """Points of the modules whose names begin with ``module``, from the ``coverage.dat`` that a simulation left.

    Returns
    -------
    dict of str to (int, int)
        By kind, ``"line"`` or ``"branch"``: points that were run, and all.
    """
    counts = {"line": [0, 0], "branch": [0, 0]}
    for text, count in _POINT.findall(Path(path).read_text(errors="replace")):
        point = dict(_PAIR.findall(text))
        kind, _, place = point["page"].removeprefix("v_").partition("/")
        if kind in counts and place.startswith(module):
            counts[kind][0] += count != "0"
            counts[kind][1] += 1
    return {kind: tuple(pair) for kind, pair in counts.items()}
