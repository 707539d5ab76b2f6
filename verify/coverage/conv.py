"""Which combinations of features random jobs of the convolution engine have shown."""

import numpy as np

from tilewright.golden.conv.job import barriers_of, parts_of, shape_of
from tilewright.golden.conv.plan import ConvPlan
from tilewright.spec.conv import JOB, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType

from .table import Coverage, others

__all__ = ["conv_coverage", "sample_job"]

_BOTH = (False, True)
_OPERATIONS = tuple(operation.name for operation in ConvOperation)
_TYPES = tuple(kind.name for kind in MmType)
_OUTPUTS = tuple(output.name for output in ConvOutput)
_LANES = tuple(operation.name for operation in ConvOperation if operation.lanes)

_FEATURES = {
    "operation": _OPERATIONS,
    "type": _TYPES,
    "output": _OUTPUTS,
    "bias": (0, 1),
    "addition": ("none", "apart", "in place"),
    "clamp": ("whole", "narrow"),
    "arrivals": (0, 1, 2),
    "raster": (0, 1),
    "merge": ("one", "stride", "kernel", "other"),
    "fold": (1, 2, 4, 8, 16),
    "blocks": ("one", "more"),
    "block": ("whole", "ragged"),
    "kernel": ("1", "2 to 5", "6 to 11"),
    "split": _BOTH,
    "stride": (1, 2, 3, 4),
    "stride_rows": (1, 2, 3, 4),
    "dilation": (1, 2, 3),
    "dilation_rows": (1, 2, 3),
    "padding": ("none", "left", "right", "both"),
    "empty": _BOTH,
    "channels": ("1", "2 to 15", "16 to 63", "64 to 300"),
    "out_channels": ("1", "2 to 15", "16 to 100"),
    "slaves": ("whole", "ragged"),
    "points": ("whole", "ragged"),
    "line": ("whole", "ragged"),
    "batch": ("1", "more"),
    "gaps": ("none", "x", "y", "x overlaps"),
    "zeros": ("none", "x", "k", "both"),
}
_CROSSES = (
    ("operation", "type"),
    ("operation", "output"),
    ("operation", "bias"),
    ("output", "addition", "clamp"),
    ("operation", "fold", "raster"),
    ("operation", "blocks", "block"),
    ("operation", "stride", "dilation"),
    ("operation", "padding"),
    ("operation", "gaps"),
    ("merge", "fold"),
    ("merge", "stride"),
    ("merge", "kernel", "blocks"),
    ("stride_rows", "dilation_rows"),
    ("kernel", "split"),
    ("raster", "line", "points"),
    ("batch", "raster"),
    ("channels", "out_channels"),
    ("slaves",),
    ("operation", "empty"),
    ("operation", "arrivals"),
    ("operation", "zeros"),
)


def conv_coverage(params=None):
    """An empty account; with ConvParams of what an engine with their ``types`` can show."""
    features = _FEATURES if params is None else _FEATURES | _built(params)
    unquantised = tuple(output.name for output in ConvOutput if not output.quantised)
    rotation = params is None or params.rotation
    exclusions = (
        ("elements alone are the largest ones", {"operation": "MAX_POOL", "output": others(_OUTPUTS, "ELEMENT")},
         {"operation": others(_OPERATIONS, "MAX_POOL"), "output": "ELEMENT"}),
        ("a maximum has no bias", {"operation": "MAX_POOL", "bias": 1}),
        ("only 8 bits are clamped and added to", {"output": unquantised, "addition": ("apart", "in place")},
         {"output": unquantised, "clamp": "narrow"}),
        ("groups go on across lines where a row has one or two points, and slaves' rows rotate",
         {"operation": _LANES, "raster": 1, "fold": tuple(n for n in features["fold"] if n > 2 or not rotation)}),
        ("one column cannot be split", {"kernel": "1", "split": True}),
        ("one column cannot be merged with others", {"merge": "kernel", "kernel": "1"}),
        ("a stride of 1 has nothing to be removed", {"merge": "stride", "stride": 1}),
        ("a whole tile ends with whole lines of its own", {"raster": 0, "line": "whole", "points": "ragged"},
         {"raster": 0, "line": "ragged", "points": "whole"}),
        ("where lines are whole, points are", {"line": "whole", "points": "ragged"}),
        ("only weights of convolutions are told of", {"operation": _LANES, "arrivals": 2}),
        ("pooling has no K", {"operation": "SUM_POOL", "zeros": ("k", "both")}),
        ("a maximum has no zero points", {"operation": "MAX_POOL", "zeros": ("x", "k", "both")}),
    )  # fmt: skip
    return Coverage(features, _CROSSES, exclusions)


def _built(params):
    """Values of features that depend on what is built."""
    types = [kind for kind in MmType if kind.family in params.types]
    floats = any(kind.is_float for kind in types)
    return {
        "type": tuple(kind.name for kind in types),
        "output": tuple(output.name for output in ConvOutput if floats or not output.half),
        "fold": tuple(fold for fold in _FEATURES["fold"] if params.row_bytes // fold >= min(k.bytes for k in types)),
    }


def sample_job(coverage, word, params):
    """Counts a legal packed job on an engine of ``params``; returns whether a bin was empty before."""
    fields = JOB.unpack(word)
    shape, parts = shape_of(fields), parts_of(fields)
    plan = ConvPlan(shape, params, 1 << fields["granularity"], fields["merge"], bool(fields["raster"]))
    kind, output = MmType(fields["type"]), ConvOutput(fields["output"])
    samples = {
        "operation": shape.operation.name,
        "type": kind.name,
        "output": output.name,
        "bias": fields["bias"] * (shape.operation != ConvOperation.MAX_POOL),
        "addition": _addition(fields, parts),
        "clamp": "narrow" if output.quantised and _narrow(fields, output) else "whole",
        "merge": _merge(fields),
        "fold": plan.fold,
        "blocks": "one" if plan.blocks == 1 else "more",
        "block": "ragged" if plan.pixel_bytes % plan.block_bytes else "whole",
        "kernel": _range(fields["kernel"][0], (1, 5, 11)),
        "split": plan.parts > 1,
        "stride": fields["stride"][0],
        "stride_rows": fields["stride"][1],
        "dilation": fields["dilation"][0],
        "dilation_rows": fields["dilation"][1],
        "channels": _range(shape.channels, (1, 15, 63, 300)),
        "out_channels": _range(shape.out_channels, (1, 15, 100)),
        "slaves": "ragged" if shape.out_channels % params.slaves else "whole",
        "line": "ragged" if shape.out_width % plan.tile_points else "whole",
        "points": "ragged" if _points(plan) % plan.tile_points else "whole",
        "batch": "1" if shape.batch == 1 else "more",
        "zeros": _zeros(fields, kind, shape.operation),
        **_edges(shape),
        "arrivals": len(barriers_of(fields)),
        "raster": int(plan.crosses_lines),  # in lane-private mode the field does not always make a difference
    }
    return coverage.sample({name: {value} for name, value in samples.items()} | {"gaps": _gaps(fields, parts)})


def _points(plan):
    """Points that tiles, or rows in lane-private mode, are filled with one after the other."""
    shape = plan.shape
    if not plan.crosses_lines:
        return shape.out_width
    return shape.out_height * shape.out_width if shape.operation.lanes else shape.points


def _range(value, ends):
    """The one of the ranges that end with ``ends`` that holds the value, by its name."""
    first = 1
    for end in ends:
        if value <= end:
            return f"{first} to {end}" if first < end else str(end)
        first = end + 1
    return None


def _addition(fields, parts):
    if "addend" not in parts:
        return "none"
    return "in place" if fields["addend"] == fields["y"] else "apart"


def _narrow(fields, output):
    ends = (0x80, 0x7F) if output == ConvOutput.S8 else (0, 255)
    return (fields["minimum"], fields["maximum"]) != ends


def _merge(fields):
    merge = fields["merge"]
    if merge == 1:
        return "one"
    if merge == fields["stride"][0]:
        return "stride"
    return "kernel" if merge == fields["kernel"][0] else "other"


def _zeros(fields, kind, operation):
    if kind.is_float or operation == ConvOperation.MAX_POOL:
        return "none"
    x, k = fields["x_zero"] != 0, fields["k_zero"] != 0 and operation != ConvOperation.SUM_POOL
    return {(False, False): "none", (True, False): "x", (False, True): "k", (True, True): "both"}[x, k]


def _edges(shape):
    """Padding that windows meet along a line, and whether one of them has nothing else."""
    columns, rows = shape.columns(np.arange(shape.out_width)), shape.rows(np.arange(shape.out_height))
    left, right = (columns < 0).any(), (columns >= shape.width).any()
    padding = {(False, False): "none", (True, False): "left", (False, True): "right", (True, True): "both"}
    empty = [((place < 0) | (place >= size)).all(axis=1).any()
             for place, size in ((columns, shape.width), (rows, shape.height))]  # fmt: skip
    return {"padding": padding[bool(left), bool(right)], "empty": bool(any(empty))}


def _gaps(fields, parts):
    """Which tensors have gaps between their rows, as a set."""
    gaps = {"x": _has_gaps(parts["x"]), "y": _has_gaps(parts["y"])}
    x = parts["x"]
    pitches, room = x.pitches[::-1], x.row_bytes
    overlaps = pitches[0] < room and x.shape[-2] > 1
    return {name for name, there in gaps.items() if there} | ({"x overlaps"} if overlaps else set()) or {"none"}


def _has_gaps(part):
    room = part.row_bytes
    for count, pitch in zip(part.shape[-2::-1], part.pitches[::-1], strict=True):
        if count > 1 and pitch > room:
            return True
        room += (count - 1) * pitch
    return False
