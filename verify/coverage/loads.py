"""Coverage of tile loads: features of a load, and combinations of features that are bins."""

from itertools import combinations

import numpy as np

from tilewright.golden.tmau.tile import counts, row_bytes, walk
from tilewright.spec import Element, Fill, Swizzle
from tilewright.spec.fields import spoken

from ..random.maps import OUT_OF_BOUNDS
from .table import Coverage, others

__all__ = ["BOXES", "CROSSES", "EXCLUSIONS", "FEATURES", "PAGE", "PLACES", "TENSOR_FEATURES", "features",
           "load_coverage", "place", "tensor_samples"]  # fmt: skip

PAGE = 4096
_BUS_WORD = 64  # the widest, whatever the bus: an address that is aligned for it is aligned for all

_EXTENTS = {"1": (1, 1), "2-15": (2, 15), "16": (16, 16), "17-255": (17, 255), "256": (256, 256)}
_STEPS = {"1": (1, 1), "2": (2, 2), "3": (3, 3), "4-7": (4, 7), "8": (8, 8)}
#: Features of one dimension each.
PLACES = tuple(f"place in dimension {d}" for d in range(5))
BOXES = tuple(f"box of dimension {d}" for d in range(5))

#: Name and values of the features of every command on a tensor, see :func:`tensor_samples`.
TENSOR_FEATURES = {
    "rank": (1, 2, 3, 4, 5),
    "element": tuple(map(spoken, Element)),
    "element bytes": (1, 2, 4, 8),
    "swizzle": tuple(map(spoken, Swizzle)),
    "fill": tuple(map(spoken, Fill)),
    "alignment": ("bus word", "chunk", "element", "no data"),
}

#: Name and values of every feature.
FEATURES = TENSOR_FEATURES | {
    "traversal": tuple(_STEPS),
    "out of bounds": OUT_OF_BOUNDS,
    "element kind": ("integer", "float", "tf32"),
    "row bytes": (16, 32, 64, 128, 256, "other"),
    "line in 1 KiB": tuple(range(8)),
    "stride": ("packed", "padded", "power of two", "4 KiB or more", "4 GiB or more", "overlapping", "zero"),
    "base in page": ("0", "16", "middle", "4080"),
    "page edges": ("none", "ends on one", "crosses one", "crosses more"),
    "barrier": ("silent", "signals", "signals without data"),
    **dict.fromkeys(PLACES, OUT_OF_BOUNDS),
    **dict.fromkeys(BOXES, tuple(_EXTENTS)),
}


def features(tmap, coords, smem, signal, addr_width=64):
    """The values that a load has, as a dictionary of sets; empty where the feature does not exist for it.

    Parameters
    ----------
    tmap : TensorMap
    coords : sequence of int
    smem : int
        Destination.
    signal : bool
        Whether it names a barrier.
    addr_width : int
        Addresses wrap modulo 2^addr_width.
    """
    tile = walk(tmap, coords, addr_width)
    starts = tile.addresses[tile.inside] if tile.stop > tile.start else tile.addresses[:0]
    length = row_bytes(tmap)
    places = [place(*extent) for extent in zip(coords, counts(tmap), (1, *tmap.traversal[1:]), tmap.size, strict=True)]
    samples = tensor_samples(tmap, starts) | {
        "traversal": {_named(step, _STEPS) for step in tmap.traversal[1:]} or {"1"},
        "out of bounds": set(places),
        "element kind": {"tf32" if tmap.element == Element.TF32 else "float" if tmap.element.is_float else "integer"},
        "row bytes": {length if length in FEATURES["row bytes"] else "other"},
        "line in 1 KiB": {smem % 1024 // 128},
        "stride": _strides(tmap),
        "base in page": {{0: "0", 16: "16", PAGE - 16: "4080"}.get(tmap.address % PAGE, "middle")},
        "page edges": _page_edges(starts, tile.stop - tile.start),
        "barrier": {("signals" if len(starts) else "signals without data") if signal else "silent"},
    }
    samples |= {name: set() for name in (*PLACES, *BOXES)}
    samples |= {PLACES[d]: {where} for d, where in enumerate(places)}
    samples |= {BOXES[d]: {_named(box, _EXTENTS)} for d, box in enumerate(tmap.box)}
    return samples


def _named(value, ranges):
    return next(name for name, (low, high) in ranges.items() if low <= value <= high)


def place(coord, count, step, size):
    """Where ``count`` elements from ``coord`` on lie in a dimension of ``size``."""
    last = coord + (count - 1) * step
    if coord >= 0:
        return "inside" if last < size else "above" if coord >= size else "high part"
    if last < 0:
        return "below"
    return "both ends" if last >= size else "low part"


def tensor_samples(tmap, starts):
    """The values of :data:`TENSOR_FEATURES`; ``starts`` are the first bytes of the rows that are in the tensor."""
    element = {"element": {spoken(tmap.element)}, "element bytes": {tmap.element.bytes}}
    modes = {"rank": {tmap.rank}, "swizzle": {spoken(tmap.swizzle)}, "fill": {spoken(tmap.fill)}}
    return element | modes | {"alignment": _alignments(starts)}


def _alignments(starts):
    if not len(starts):
        return {"no data"}
    odd, chunk = starts % np.uint64(16) != 0, starts % np.uint64(_BUS_WORD) != 0
    classes = {"element": odd, "chunk": chunk & ~odd, "bus word": ~chunk}
    return {name for name, rows in classes.items() if rows.any()}


def _strides(tmap):
    kinds, packed = set(), tmap.size[0] * tmap.element.bytes
    for stride, size in zip(tmap.stride, tmap.size[1:], strict=True):
        if stride >= PAGE:
            kinds.add("4 GiB or more" if stride >= 1 << 32 else "4 KiB or more")
        if stride and not stride & (stride - 1):
            kinds.add("power of two")
        if stride < packed:
            kinds.add("overlapping" if stride else "zero")
        else:
            kinds.add("packed" if stride == packed else "padded")
        packed = stride * size
    return kinds


def _page_edges(starts, count):
    """How pieces that are contiguous in global memory lie relative to pages."""
    if not len(starts):
        return set()
    begins = np.concatenate([[True], starts[1:] != starts[:-1] + np.uint64(count)])
    first = starts[begins]
    after = np.concatenate([starts[:-1][begins[1:]], starts[-1:]]) + np.uint64(count)
    crossed = (after - np.uint64(1)) // np.uint64(PAGE) - first // np.uint64(PAGE)
    ends = after % np.uint64(PAGE) == 0
    classes = {
        "none": (crossed == 0) & ~ends,
        "ends on one": ends,
        "crosses one": crossed == 1,
        "crosses more": crossed > 1,
    }
    return {name for name, pieces in classes.items() if pieces.any()}


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

#: Bytes of the shortest row that has each name: of those that are none of the named sizes 48.
_ROWS = {row: 48 if row == "other" else row for row in FEATURES["row bytes"]}

#: Combinations that no legal load has, see :class:`Coverage`.
EXCLUSIONS = (
    ("a swizzled row fits the span, and a row is a multiple of 16 bytes",
     *({"swizzle": name, "row bytes": tuple(row for row, least in _ROWS.items() if least > span)}
       for name, span in _SPANS.items())),
    ("NaN is for floats", {"fill": "nan", "element kind": "integer"}),
    ("rank 1 has no dimension in which to step", {"rank": 1, "traversal": others(_STEPS, "1")}),
    ("a box that is wholly outside in one dimension has no data",
     {"out of bounds": ("below", "above"), "alignment": others(FEATURES["alignment"], "no data")}),
    ("a dimension that the rank does not reach has no place",
     *({"rank": tuple(range(1, d + 1)), place: OUT_OF_BOUNDS} for d, place in enumerate(PLACES))),
    ("a row is at least 16 bytes", {BOXES[0]: "1"}, {BOXES[0]: "2-15", "element bytes": 1}),
)  # fmt: skip


def load_coverage():
    """A new :class:`Coverage` of loads, given by their ``features``."""
    return Coverage(FEATURES, CROSSES, EXCLUSIONS)
