"""The coverage table of tile loads: which combinations of their features are bins."""

from itertools import combinations

from tilewright.golden.spec import Swizzle
from tilewright.golden.spec.fields import spoken

from .load_features import BOXES, FEATURES, PLACES
from .table import Coverage

__all__ = ["CROSSES", "EXCLUSIONS", "load_coverage"]

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


def load_coverage():
    """A new :class:`Coverage` of loads, given by their ``features``."""
    return Coverage(FEATURES, CROSSES, EXCLUSIONS)


def _longer(row, swizzle):
    span = _SPANS[swizzle]
    # The shortest row that is none of the named sizes is 48 bytes.
    return span < (48 if row == "other" else row)
