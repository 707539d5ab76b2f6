"""What is noteworthy about one command of a mixed batch: the features that their coverage is counted in."""

import numpy as np

from tilewright.golden.spec import (
    DESCRIPTOR,
    TENSOR_OPCODES,
    Element,
    Error,
    Fill,
    Interleave,
    LaneLayout,
    Mode,
    Opcode,
    Reduction,
    Space,
    Swizzle,
)
from tilewright.golden.spec.fields import spoken
from tilewright.golden.tmau.im2col import pixel_coordinates, spatial_dimensions
from tilewright.golden.tmau.reduce import is_legal
from tilewright.golden.tmau.tile import gathers, pitch, row_bytes, walk

from ..random.maps import OUT_OF_BOUNDS
from .load_features import alignments, place

__all__ = ["FEATURES", "batch_features", "features"]

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
    "rank": (1, 2, 3, 4, 5),
    "element": tuple(map(spoken, Element)),
    "element bytes": (1, 2, 4, 8),
    "interleave": tuple(map(spoken, Interleave)),
    "swizzle": tuple(map(spoken, Swizzle)),
    "fill": tuple(map(spoken, Fill)),
    "gather": ("no", "one by one", "in steps"),
    "alignment": ("bus word", "chunk", "element", "no data"),
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
    found = {
        "operation": {Opcode(opcode).name.lower() if known else "unknown"},
        "ending": {ending.name.lower()},
    }
    if ending or not known:
        return found
    if opcode in TENSOR_OPCODES and order.tmap:
        return found | _tensor(Opcode(opcode), fields, order.tmap, addr_width)
    reader = _OTHERS.get(opcode)
    return found | (reader(fields) if reader else {})


def _tensor(opcode, fields, tmap, addr_width):
    coords, offsets = tuple(fields["coords"])[: tmap.rank], (*fields.get("offsets", ()), 0, 0, 0)[:3]
    tile = walk(tmap, coords, addr_width, offsets)
    starts = tile.addresses[tile.inside] + np.uint64(tile.start)
    found = {
        "walk": {opcode.name.lower()},
        "mode": {spoken(tmap.mode)},
        "rank": {tmap.rank},
        "element": {spoken(tmap.element)},
        "element bytes": {tmap.element.bytes},
        "interleave": {spoken(tmap.interleave)},
        "swizzle": {spoken(tmap.swizzle)},
        "fill": {spoken(tmap.fill)},
        "alignment": alignments(starts),
        "row": {"odd bytes" if row_bytes(tmap) % 16 else "chunks"},
        "pitch": {"wider" if pitch(tmap) > row_bytes(tmap) else "the row"},
    }
    if opcode == Opcode.LOAD:
        found["barrier"] = {"signals" if fields.get("signal") else "silent"}
    if opcode in (Opcode.STORE, Opcode.REDUCE):
        op = Reduction(fields["reduction"] if opcode == Opcode.REDUCE else 0)
        found["source"] = {"fill" if fields.get("fill") else "shared memory"}
        found |= {"reduction": {_reduction(op, tmap.element)}, "destination": {"tensor"}}
    return found | (_pixels(tmap, coords, offsets) if tmap.mode == Mode.IM2COL else _box(tmap, coords))


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
    found = {
        "spatial dimensions": {len(spatial)},
        "pixels outside": {_share(outside)},
        "images": {"several" if pixels[0, -1] != pixels[-1, -1] else "one"},
        "offsets": {"others" if any(offsets) else "zero"},
    }
    if not tmap.interleave:
        channels = coords[0] + np.arange(tmap.channels)
        found["channels outside"] = {_share((channels < 0) | (channels >= tmap.size[0]))}
    return found


def _share(flags):
    return "all" if flags.all() else "some" if flags.any() else "none"


def _reduction(op, element):
    return f"{op.name.lower()} {spoken(element)}" if op else "none"


def _copy(fields):
    op, element = Reduction(fields.get("reduction", 0)), Element(fields.get("element", 0))
    to_shared, size = fields["destination_space"] == Space.SHARED, fields["size"]
    found = {
        "reduction": {_reduction(op, element)},
        "destination": {"shared block" if to_shared else "global block"},
        "block source": {Space(fields["source_space"]).name.lower()},
        "block bytes": {str(size) if size <= 16 else "more"},
    }
    return found | ({"barrier": {"signals" if fields.get("signal") else "silent"}} if to_shared else {})


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
