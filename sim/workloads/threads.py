"""A product with fewer rows than there are threads: several of them share a row, or a product (docs/pe.md, "mm")."""

import numpy as np

from .findings import Findings

__all__ = ["MERGES", "SUMMARY", "play"]

SUMMARY = "16 rows on 64 threads, with 1, 2 and 4 threads a row"

#: Threads that share a row, each with columns of its own (ka), and that share a product (kb).
MERGES = ((1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (2, 2))
_MOST = 4  # threads a row
_K, _SMALL_K = 2048, 128
_PERIOD = 128  # period of B along K, in elements, so that not all of it must be in memory


def play(multiplier, photographs):
    """Multiplies the same matrices with each merge, without photographs."""
    threads = multiplier.params.threads
    rows, columns, k = threads // _MOST, 4 * threads, _SMALL_K if multiplier.small else _K
    generator = np.random.default_rng(2)
    a, period = (generator.integers(-128, 128, shape, np.int8) for shape in ((rows, k), (_PERIOD, columns)))
    b = np.tile(period, (k // _PERIOD, 1))
    idle = []
    for ka, kb in MERGES:
        name = _name(ka, kb)
        multiplier.product(a, b, case=name, repeated=True, ka=ka, kb=kb)
        idle.append(f"{name} {threads - rows * ka * kb}")
    alone = multiplier.cases[_name(1, 1)].cycles
    gains = ", ".join(f"{name} {alone / totals.cycles:.2f}" for name, totals in multiplier.cases.items())
    return Findings(
        facts=(
            f"{rows} rows on {threads} threads, {columns} columns, K of {k}, s8; idle threads: {', '.join(idle)}",
            f"times as fast as ka1: {gains}",
        ),
        cases=multiplier.cases,
    )


def _name(ka, kb):
    """The merge as in the text of an instruction; a part that is 1 is left out if the other one is not."""
    return "".join(f"{name}{count}" for name, count in (("ka", ka), ("kb", kb)) if count > 1) or "ka1"
