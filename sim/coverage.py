"""Functional coverage of tile loads: which combinations of features a set of loads has shown (verification.md 3.1)."""

from collections import Counter
from itertools import combinations, product

from tilewright.golden.spec import Swizzle
from tilewright.golden.tmau.descriptor import spoken

from .load_features import BOXES, FEATURES, PLACES

__all__ = ["CROSSES", "EXCLUSIONS", "Coverage", "excluded"]

_MAIN = ("rank", "element bytes", "swizzle", "fill", "traversal", "alignment", "out of bounds")

#: Features of which every combination of values is a bin: each by itself, all pairs of the main ones, and some more.
CROSSES = (
    *((name,) for name in FEATURES),
    *combinations(_MAIN, 2),
    *(("rank", place) for place in PLACES),
    *(("element bytes", box) for box in BOXES),
    ("element bytes", "stride"),
    ("fill", "element kind"),
    ("swizzle", "row bytes", "line in 1 KiB"),
    ("base in page", "page edges"),
    ("rank", "barrier"),
)

_SPANS = {spoken(swizzle): swizzle.span or 2048 for swizzle in Swizzle}

#: Combinations that no legal load has: why, and a predicate on a bin, given as a dictionary of features.
EXCLUSIONS = (
    (
        "a swizzled row fits the span, and a row is a multiple of 16 bytes",
        lambda bin_: _longer(bin_.get("row bytes", 16), bin_.get("swizzle", "none")),
    ),
    (
        "NaN is for floats",
        lambda bin_: bin_.get("fill") == "nan" and bin_.get("element kind") == "integer",
    ),
    (
        "rank 1 has no dimension in which to step",
        lambda bin_: bin_.get("rank") == 1 and bin_.get("traversal", "1") != "1",
    ),
    (
        "a box that is wholly outside in one dimension has no data",
        lambda bin_: bin_.get("out of bounds") in ("below", "above") and bin_.get("alignment", "no data") != "no data",
    ),
    (
        "a dimension that the rank does not reach has no place",
        lambda bin_: any(place in bin_ and bin_.get("rank", 5) <= d for d, place in enumerate(PLACES)),
    ),
    (
        "a row is at least 16 bytes",
        lambda bin_: bin_.get(BOXES[0]) == "1" or (bin_.get(BOXES[0]) == "2-15" and bin_.get("element bytes", 8) == 1),
    ),
)


def _longer(row, swizzle):
    span = _SPANS[swizzle]
    # The shortest row that is none of the named sizes is 48 bytes.
    return span < (48 if row == "other" else row)


class Coverage:
    """Counts how often each bin of :data:`CROSSES` was hit; excluded combinations are no bins.

    Attributes
    ----------
    hits : dict of tuple to Counter
        For each cross, hits of each combination of values.
    """

    def __init__(self):
        self.hits = {}
        for cross in CROSSES:
            combined = product(*(FEATURES[name] for name in cross))
            self.hits[cross] = Counter({values: 0 for values in combined if not excluded(cross, values)})

    def sample(self, found):
        """Counts one load, given by its :func:`~tilewright.sim.load_features.features`."""
        for cross, hits in self.hits.items():
            hits.update(values for values in product(*(found[name] for name in cross)) if values in hits)

    @property
    def bins(self):
        """Number of bins."""
        return sum(map(len, self.hits.values()))

    @property
    def empty(self):
        """Names of the bins that were never hit."""
        return [
            _spoken(cross, values) for cross, hits in self.hits.items() for values, count in hits.items() if not count
        ]

    def table(self):
        """A text: one line a cross with its bins and its rarest one, hits of single features, and all empty bins."""
        lines = []
        for cross, hits in self.hits.items():
            reached = sum(map(bool, hits.values()))
            rarest = min(hits, key=hits.get)
            detail = f"rarest {' × '.join(map(str, rarest))}: {hits[rarest]}"
            if len(cross) == 1:
                detail = ", ".join(f"{value}: {count}" for (value,), count in hits.items())
            lines.append(f"{' × '.join(cross):<48} {reached:>3} of {len(hits):>3}   {detail}")
        empty = self.empty
        lines += [f"{self.bins - len(empty)} of {self.bins} bins hit; empty: {'; '.join(empty) or 'none'}"]
        return "\n".join(lines)


def excluded(cross, values):
    """Whether no legal load can have these ``values`` of the features ``cross``."""
    bin_ = dict(zip(cross, values, strict=True))
    return any(predicate(bin_) for _, predicate in EXCLUSIONS)


def _spoken(cross, values):
    return " × ".join(f"{name} {value}" for name, value in zip(cross, values, strict=True))
