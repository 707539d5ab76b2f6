"""The coverage table of mixed batches: which combinations of their commands' features are bins."""

from collections import defaultdict
from itertools import combinations

from tilewright.golden.spec import Element, Error, LaneLayout, Opcode
from tilewright.golden.spec.fields import spoken

from ..random.mixed import LAYOUT_PAIRS
from .mixed_features import FEATURES, batch_features, features
from .table import Coverage

__all__ = ["CROSSES", "EXCLUSIONS", "mixed_coverage", "sample_batch"]

_MAIN = ("walk", "mode", "rank", "element bytes", "interleave", "swizzle", "fill", "alignment", "row")

#: Features of which every combination of values is a bin: each by itself, all pairs of the main ones, and some more.
CROSSES = (
    *((name,) for name in FEATURES),
    ("operation", "ending"),
    *(("operation", name) for name in ("memory stall", "answer stall", "latency", "windows")),
    *combinations(_MAIN, 2),
    ("fill", "element"),
    ("walk", "gather"),
    ("walk", "place"),
    ("rank", "place"),
    ("swizzle", "pitch"),
    ("source", "fill"),
    *(("walk", name) for name in ("spatial dimensions", "pixels outside", "channels outside", "images", "offsets")),
    *(("spatial dimensions", name) for name in ("interleave", "pixels outside", "images", "offsets")),
    ("destination", "reduction"),
    ("block source", "destination"),
    ("block source", "block bytes"),
    ("lanes from", "lanes to"),
    ("lanes from", "lane element"),
)

_DESCRIPTOR = (Error.DESCRIPTOR_ALIGNMENT, Error.VERSION, Error.RESERVED, Error.RANK, Error.ELEMENT, Error.INTERLEAVE,
               Error.FILL, Error.ADDRESS, Error.STRIDE, Error.BOX, Error.TRAVERSAL, Error.SWIZZLE, Error.UNUSED,
               Error.CORNER, Error.CHANNELS, Error.COORDS, Error.START, Error.OFFSETS, Error.WINDOW)  # fmt: skip
_SHARED = (Error.SMEM_ALIGNMENT, Error.SMEM_RANGE)
_BARRIER = (Error.BARRIER_ALIGNMENT, Error.BARRIER_RANGE)
_BLOCK = (Error.BLOCK_ALIGNMENT, Error.BLOCK_RANGE, Error.OVERLAP, Error.WINDOW)

#: Errors that each operation can end with.
_ERRORS = defaultdict(tuple) | {
    Opcode.LOAD: _DESCRIPTOR + _SHARED + _BARRIER,
    Opcode.STORE: _DESCRIPTOR + _SHARED,
    Opcode.REDUCE: (*_DESCRIPTOR, *_SHARED, Error.REDUCTION),
    Opcode.PREFETCH: _DESCRIPTOR,
    Opcode.INVALIDATE: (Error.DESCRIPTOR_ALIGNMENT,),
    Opcode.REPLACE: (Error.DESCRIPTOR_ALIGNMENT, Error.FIELD),
    Opcode.COPY_BLOCK: (*_BLOCK, *_BARRIER, Error.REDUCTION),
    Opcode.PREFETCH_BLOCK: (Error.BLOCK_ALIGNMENT, Error.WINDOW),
    Opcode.LANES: (*_BLOCK, *_BARRIER, Error.ELEMENT, Error.LANES),
}
_POSSIBLE = {
    *((opcode.name.lower(), error.name.lower()) for opcode in Opcode for error in (Error.NONE, *_ERRORS[opcode])),
    ("unknown", "opcode"),
}
_ENDINGS = {ending for _, ending in _POSSIBLE}
_INTEGERS = {spoken(element) for element in Element if not element.is_float}
_STORES = ("store", "reduce")
_LAYOUT_PAIRS = {tuple(LaneLayout(layout).name.lower() for layout in pair) for pair in LAYOUT_PAIRS}


def _ranked(bin_):
    return bin_.get("mode") == "im2col" or bin_.get("interleave", "none") != "none"


#: Combinations that no command of a batch has: why, and a predicate on a bin, given as a dictionary of features.
EXCLUSIONS = (
    (
        "bus errors, and sizes that cannot be encoded, have tests of their own",
        lambda bin_: "operation" not in bin_ and bin_.get("ending", "none") not in _ENDINGS,
    ),
    (
        "an operation breaks only rules that it has",
        lambda bin_: {"operation", "ending"} <= set(bin_) and tuple(bin_.values()) not in _POSSIBLE,
    ),
    ("im2col and interleave have three dimensions or more", lambda bin_: _ranked(bin_) and bin_.get("rank", 5) < 3),
    ("NaN is for floats", lambda bin_: bin_.get("fill") == "nan" and bin_.get("element", "f32") in _INTEGERS),
    (
        "slices of 32 bytes are swizzled by 32 bytes",
        lambda bin_: bin_.get("interleave") == "32B" and bin_.get("swizzle", "32B") != "32B",
    ),
    (
        "slices are whole chunks",
        lambda bin_: bin_.get("interleave", "none") != "none" and bin_.get("row") == "odd bytes",
    ),
    (
        "without swizzle rows adjoin",
        lambda bin_: bin_.get("swizzle", "128B") == "none" and bin_.get("pitch") == "wider",
    ),
    ("no reduction is on bytes", lambda bin_: bin_.get("walk") == "reduce" and bin_.get("element bytes") == 1),
    (
        "a store begins in the tensor or above it",
        lambda bin_: bin_.get("walk") in _STORES and bin_.get("place") in ("low part", "below", "both ends"),
    ),
    ("a store has no offsets", lambda bin_: bin_.get("walk") in _STORES and bin_.get("offsets") == "others"),
    (
        "the pixels of a store are inside",
        lambda bin_: bin_.get("walk") in _STORES and bin_.get("pixels outside", "none") != "none",
    ),
    (
        "of lanes to lanes three pairs of layouts are drawn",
        lambda bin_: {"lanes from", "lanes to"} <= set(bin_) and tuple(bin_.values()) not in _LAYOUT_PAIRS,
    ),
    (
        "a block lands in one of the memories",
        lambda bin_: {"block source", "destination"} <= set(bin_) and bin_["destination"] == "tensor",
    ),
)


def mixed_coverage():
    """A new :class:`Coverage` of the commands of mixed batches."""
    return Coverage(FEATURES, CROSSES, EXCLUSIONS)


def sample_batch(coverage, golden, addr_width):
    """Counts the commands of a batch that golden has executed, a ``MixedGolden``."""
    nothing = dict.fromkeys(FEATURES, frozenset()) | batch_features(golden.batch)
    for order, ending in zip(golden.batch.orders, golden.endings, strict=True):
        coverage.sample(nothing | features(order, ending, addr_width))
