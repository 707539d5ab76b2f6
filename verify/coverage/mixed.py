"""Coverage of mixed batches: features of their commands, and combinations of features that are bins."""

from collections import defaultdict
from itertools import combinations

import numpy as np

from tilewright.golden.tmau.reduce import is_legal
from tilewright.golden.tmau.tile import gathers, pitch, pixel_coordinates, row_bytes, spatial_dimensions, walk
from tilewright.spec import (
    DESCRIPTOR,
    TENSOR_OPCODES,
    Element,
    Error,
    Interleave,
    LaneLayout,
    Mode,
    Opcode,
    Reduction,
    Space,
)
from tilewright.spec.fields import spoken

from ..random.maps import OUT_OF_BOUNDS
from ..random.mixed import LAYOUT_PAIRS
from .loads import TENSOR_FEATURES, place, tensor_samples
from .table import Coverage, others

__all__ = ["CROSSES", "EXCLUSIONS", "FEATURES", "batch_features", "features", "mixed_coverage", "sample_batch"]

_SHARES = ("none", "some", "all")
_LATENCIES = {"2 or 3": (2, 3), "4 to 19": (4, 19), "20 to 99": (20, 99), "100 or more": (100, 200)}
_REDUCTIONS = ("none", *(f"{op.name.lower()} {spoken(element)}" for op in Reduction for element in Element
                         if is_legal(op, element)))  # fmt: skip
_LAYOUTS = tuple(layout.name.lower() for layout in LaneLayout)

#: Name and values of every feature.
FEATURES = {
    "operation": (*(opcode.name.lower() for opcode in Opcode), "unknown"),
    "ending": tuple(error.name.lower() for error in Error),
    # Of the batch.
    "memory stall": (0, 0.3, 0.7),
    "issue stall": (0, 0.8),
    "answer stall": (0, 0.5),
    "latency": tuple(_LATENCIES),
    "windows": ("none", "global", "shared", "both"),
    "base": ("bottom", "top"),
    # Of a command that was not refused, on a tensor.
    "walk": ("load", "store", "reduce", "prefetch"),
    "mode": tuple(map(spoken, Mode)),
    **TENSOR_FEATURES,
    "interleave": tuple(map(spoken, Interleave)),
    "gather": ("no", "one by one", "in steps"),
    "row": ("chunks", "odd bytes"),
    "pitch": ("the row", "wider"),
    "place": OUT_OF_BOUNDS,
    "source": ("shared memory", "fill"),
    "barrier": ("silent", "signals"),
    # In im2col mode.
    "spatial dimensions": (1, 2, 3),
    "pixels outside": _SHARES,
    "channels outside": _SHARES,
    "images": ("one", "several"),
    "offsets": ("zero", "others"),
    # Of other commands.
    "reduction": _REDUCTIONS,
    "destination": ("tensor", "global block", "shared block"),
    "block source": ("global", "shared"),
    "block bytes": ("0", "16", "more"),
    "lanes from": _LAYOUTS,
    "lanes to": _LAYOUTS,
    "lane element": (1, 2, 4, 8),
    "lane count": (1, 2, 4, 8, 16),
    "group wait": tuple(f"{count}{read}" for count in range(3) for read in ("", ", read")),
    "replaced": ("size", "box", "traversal", "fill_constant"),
}


def batch_features(batch):
    """Those features of a command that it has from its batch, as a dictionary of sets."""
    windows = {(0, 0): "none", (1, 0): "global", (0, 1): "shared", (1, 1): "both"}
    return {
        "memory stall": {batch.stall},
        "issue stall": {batch.issue_stall},
        "answer stall": {batch.answer_stall},
        "latency": {name for name, (low, high) in _LATENCIES.items() if low <= batch.latency <= high},
        "windows": {windows[batch.windows]},
        "base": {"top" if batch.base else "bottom"},
    }


def features(order, ending, addr_width):
    """Those features that a command has itself, as a dictionary of sets; others are left out.

    Parameters
    ----------
    order : Order
    ending : Error
        How it ends.
    addr_width : int
        Addresses wrap modulo 2^addr_width.
    """
    opcode, fields = order.fields["opcode"], order.fields
    known = opcode in list(Opcode)
    samples = {"operation": {Opcode(opcode).name.lower() if known else "unknown"}, "ending": {ending.name.lower()}}
    if ending or not known:
        return samples
    if opcode in TENSOR_OPCODES and order.tmap:
        return samples | _tensor(Opcode(opcode), fields, order.tmap, addr_width)
    reader = _OTHERS.get(opcode)
    return samples | (reader(fields) if reader else {})


def _tensor(opcode, fields, tmap, addr_width):
    coords, offsets = tuple(fields["coords"])[: tmap.rank], (*fields.get("offsets", ()), 0, 0, 0)[:3]
    tile = walk(tmap, coords, addr_width, offsets)
    starts = tile.addresses[tile.inside] + np.uint64(tile.start)
    samples = {
        "walk": {opcode.name.lower()},
        "mode": {spoken(tmap.mode)},
        **tensor_samples(tmap, starts),
        "interleave": {spoken(tmap.interleave)},
        "row": {"odd bytes" if row_bytes(tmap) % 16 else "chunks"},
        "pitch": {"wider" if pitch(tmap) > row_bytes(tmap) else "the row"},
    }
    if opcode == Opcode.LOAD:
        samples["barrier"] = {"signals" if fields.get("signal") else "silent"}
    if opcode in (Opcode.STORE, Opcode.REDUCE):
        op = Reduction(fields["reduction"] if opcode == Opcode.REDUCE else 0)
        samples["source"] = {"fill" if fields.get("fill") else "shared memory"}
        samples |= {"reduction": {_reduction(op, tmap.element)}, "destination": {"tensor"}}
    return samples | (_pixels(tmap, coords, offsets) if tmap.mode == Mode.IM2COL else _box(tmap, coords))


def _box(tmap, coords):
    from_each = zip(coords, tmap.box, tmap.traversal, tmap.size, strict=True)
    gather = "no" if not gathers(tmap) else "in steps" if tmap.traversal[0] > 1 else "one by one"
    return {
        "gather": {gather},
        "place": {place(coord, -(-box // step), step, size) for coord, box, step, size in from_each},
    }


def _pixels(tmap, coords, offsets):
    pixels, spatial = pixel_coordinates(tmap, coords, offsets), spatial_dimensions(tmap)
    sizes = np.array([tmap.size[d] for d in spatial])
    inside = pixels[:, spatial.start : spatial.stop]
    outside = ((inside < 0) | (inside >= sizes)).any(axis=1)
    samples = {
        "spatial dimensions": {len(spatial)},
        "pixels outside": {_share(outside)},
        "images": {"several" if pixels[0, -1] != pixels[-1, -1] else "one"},
        "offsets": {"others" if any(offsets) else "zero"},
    }
    if not tmap.interleave:
        channels = coords[0] + np.arange(tmap.channels)
        samples["channels outside"] = {_share((channels < 0) | (channels >= tmap.size[0]))}
    return samples


def _share(flags):
    return "all" if flags.all() else "some" if flags.any() else "none"


def _reduction(op, element):
    return f"{op.name.lower()} {spoken(element)}" if op else "none"


def _copy(fields):
    op, element = Reduction(fields.get("reduction", 0)), Element(fields.get("element", 0))
    to_shared, size = fields["destination_space"] == Space.SHARED, fields["size"]
    samples = {
        "reduction": {_reduction(op, element)},
        "destination": {"shared block" if to_shared else "global block"},
        "block source": {Space(fields["source_space"]).name.lower()},
        "block bytes": {str(size) if size <= 16 else "more"},
    }
    return samples | ({"barrier": {"signals" if fields.get("signal") else "silent"}} if to_shared else {})


def _lanes(fields):
    return {
        "lanes from": {_LAYOUTS[fields["source_layout"]]},
        "lanes to": {_LAYOUTS[fields["destination_layout"]]},
        "lane element": {Element(fields["element"]).bytes},
        "lane count": {1 << fields["lanes_log2"]},
    }


def _wait(fields):
    return {"group wait": {f"{fields['count']}{', read' if fields['read'] else ''}"}}


def _replace(fields):
    return {"replaced": {DESCRIPTOR.fields[fields["field"]].name}}


_OTHERS = {Opcode.COPY_BLOCK: _copy, Opcode.LANES: _lanes, Opcode.WAIT: _wait, Opcode.REPLACE: _replace}


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
_STORES = ("store", "reduce")
_LAYOUT_PAIRS = {tuple(LaneLayout(layout).name.lower() for layout in pair) for pair in LAYOUT_PAIRS}


_INTERLEAVED = others(FEATURES["interleave"], "none")

#: Combinations that no command of a batch has, see :class:`Coverage`.
EXCLUSIONS = (
    ("bus errors, and sizes that cannot be encoded, have tests of their own",
     {"ending": others(FEATURES["ending"], *_ENDINGS)}),
    ("an operation breaks only rules that it has",
     *({"operation": name, "ending": tuple(each for each in FEATURES["ending"] if (name, each) not in _POSSIBLE)}
       for name in FEATURES["operation"])),
    ("im2col and interleave have three dimensions or more",
     {"mode": "im2col", "rank": (1, 2)}, {"interleave": _INTERLEAVED, "rank": (1, 2)}),
    ("NaN is for floats", {"fill": "nan", "element": tuple(spoken(each) for each in Element if not each.is_float)}),
    ("slices of 32 bytes are swizzled by 32 bytes",
     {"interleave": "32B", "swizzle": others(FEATURES["swizzle"], "32B")}),
    ("slices are whole chunks", {"interleave": _INTERLEAVED, "row": "odd bytes"}),
    ("without swizzle rows are contiguous", {"swizzle": "none", "pitch": "wider"}),
    ("no reduction is on bytes", {"walk": "reduce", "element bytes": 1}),
    ("a store begins in the tensor or above it", {"walk": _STORES, "place": ("low part", "below", "both ends")}),
    ("a store has no offsets", {"walk": _STORES, "offsets": "others"}),
    ("the pixels of a store are inside", {"walk": _STORES, "pixels outside": others(_SHARES, "none")}),
    ("of lanes to lanes three pairs of layouts are drawn",
     *({"lanes from": source, "lanes to": tuple(each for each in _LAYOUTS if (source, each) not in _LAYOUT_PAIRS)}
       for source in _LAYOUTS)),
    ("a block lands in one of the memories", {"block source": FEATURES["block source"], "destination": "tensor"}),
)  # fmt: skip


def mixed_coverage():
    """A new :class:`Coverage` of the commands of mixed batches."""
    return Coverage(FEATURES, CROSSES, EXCLUSIONS)


def sample_batch(coverage, golden, addr_width):
    """Counts the commands of a batch that golden has executed, a ``MixedGolden``."""
    nothing = dict.fromkeys(FEATURES, frozenset()) | batch_features(golden.batch)
    for order, ending in zip(golden.batch.orders, golden.endings, strict=True):
        coverage.sample(nothing | features(order, ending, addr_width))
