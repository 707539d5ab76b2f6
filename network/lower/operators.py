"""Operators of a network as layers of the convolution engine (docs/network.md, "Operators as jobs")."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from tilewright.spec.conv import CHANNELS_AT_ONCE, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType

from ..graph import node_error
from .layers import Addition, Layer, Part

__all__ = [
    "OPERATORS", "bits", "element_type", "filled", "in_order", "refuse", "results", "same_channels", "table_of",
    "take_layer", "through", "whole_output", "with_addition", "with_channels_in_order", "with_function",
    "with_groups_together",
]  # fmt: skip

_ONE = 0x3F800000


def refuse(node, why):
    """Raises the error of a node that cannot be lowered."""
    raise node_error(node.name, node.operator or node.kind, why)


def bits(values):
    """float32 numbers as raw bits."""
    return np.asarray(values, np.float32).view(np.uint32)


def element_type(dtype, other=None):
    """The type of a job, from the types of X and K."""
    other = other or dtype
    return MmType(2 * (np.dtype(dtype) == np.uint8) + (np.dtype(other) == np.uint8))


def results(node, place, y_zero=0, minimum=None, maximum=None):
    """Fields of a part that say how results are requantised; results of int32 are the sums."""
    if place.dtype == "int32":
        return {"output": ConvOutput.RAW}
    low, high = (0, 255) if place.dtype == "uint8" else (-128, 127)
    minimum, maximum = max(low, low if minimum is None else minimum), min(high, high if maximum is None else maximum)
    if not low <= y_zero <= high:
        refuse(node, f"zero point {y_zero} is not {place.dtype}")
    output = ConvOutput.U8 if place.dtype == "uint8" else ConvOutput.S8
    return {"output": output, "y_zero": y_zero & 0xFF, "minimum": minimum & 0xFF, "maximum": maximum & 0xFF}


def whole_output(place):
    """Fields of a part for all points of an output."""
    return {"rows": (0, place.height), "columns": (0, place.width)}


def table_of(channels, scale, bias=0):
    """The table of bias and scale of each channel."""
    table = np.empty((channels, 2), np.uint32)
    table[:, 0] = np.asarray(bias, np.int64) & 0xFFFFFFFF
    table[:, 1] = scale
    return table


def _windows(node, attributes):
    """Fields of a part for the positions of windows; refused if they do not fit a job."""
    fields = {"stride": tuple(attributes.stride), "dilation": tuple(attributes.dilation)}
    for name, pair in fields.items():
        if max(pair) > 256:
            refuse(node, f"a {name} of {pair} is more than 256")
    return fields | {"origin": tuple(attributes.pad[:2])}


def _convolution(node, output, sources):
    """Conv: a job for each group, or one if each channel is a group; more if zero points of weights differ."""
    at, (place,) = node.attributes, sources
    weights = at.weight
    out_channels, deep, *kernel = weights.shape
    if max(kernel) > 256:
        refuse(node, f"a kernel of {tuple(kernel)} is more than 256")
    common = _windows(node, at) | whole_output(output) | {
        "kernel": tuple(kernel), "source": 0, "type": element_type(place.dtype, weights.dtype),
        "x_zero": at.x_zero & 0xFF,
    } | results(node, output, at.y_zero, at.minimum, at.maximum)  # fmt: skip
    table = table_of(out_channels, bits(np.ones(out_channels) if at.scale is None else at.scale), at.bias)
    raw = np.ascontiguousarray(weights.transpose(0, 2, 3, 1)).view(np.uint8)
    zeros = np.broadcast_to(at.w_zero, out_channels)
    depthwise = at.groups > 1 and deep == 1 and out_channels == at.groups
    share = out_channels if depthwise else out_channels // at.groups
    parts = []
    for group in range(out_channels // share):
        for first, last in _runs(zeros[group * share : (group + 1) * share], group * share):
            some = slice(first, last)
            chosen = (first, last - first)
            lanes = {"operation": ConvOperation.DEPTHWISE, "channels": chosen,
                     "weights": np.ascontiguousarray(raw[some].reshape(last - first, -1).T)}  # fmt: skip
            sums = {"operation": ConvOperation.CONVOLUTION, "channels": (group * deep, deep),
                    "weights": raw[some].reshape(last - first, -1)}  # fmt: skip
            parts.append(Part(out_channels=chosen, table=table[some], k_zero=int(zeros[first]) & 0xFF,
                              **(lanes if depthwise else sums), **common))  # fmt: skip
    return Layer(node.name, node.operator or node.kind, output, (place,), tuple(parts))


def _runs(values, offset):
    """Runs of equal values, as (first, end)."""
    ends = [*(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return [(first + offset, last + offset) for first, last in zip([0, *ends[:-1]], ends, strict=True)]


def same_channels(place, source, output, **fields):
    """Fields of a part for all channels of a source and of the output."""
    return {"source": source, "channels": (0, place.channels), "out_channels": (0, output.channels)} | fields


def _identity(place, **fields):
    """Fields of a part whose sum is one element, times 1, so that post-processing applies to it."""
    return {"operation": ConvOperation.SUM_POOL, "type": element_type(place.dtype),
            "table": table_of(place.channels, _ONE)} | fields  # fmt: skip


def _addition_of(node, source, output, first, second):
    """The :class:`Addition` of an Add with operands of types ``first`` and ``second``."""
    if not first == second == output.dtype:
        refuse(node, f"operands of {first} and {second} with a result of {output.dtype}: all three must be of one type")
    at = node.attributes
    ends = results(node, output, 0, at.minimum, at.maximum)
    ratio, offset = bits(at.ratio), bits(at.offset)
    if not np.isfinite([*at.ratio, at.offset]).all():
        refuse(node, f"factors {at.ratio} and {at.offset} must be finite")
    return Addition(source, (int(ratio[0]), int(ratio[1])), int(offset), ends["minimum"], ends["maximum"])


def _add(node, output, sources):
    """Add: one job, whose sums are the first operand and whose addend is the second one."""
    first, second = sources
    addition = _addition_of(node, 1, output, first.dtype, second.dtype)
    part = Part(**same_channels(first, 0, output), **_identity(first), **whole_output(output), **results(node, output),
                addition=addition)  # fmt: skip
    return Layer(node.name, node.operator or node.kind, output, sources, (part,))


def _mul(node, output, sources):
    """Mul: the second operand is a number for each channel, the weights of a DEPTHWISE job."""
    at, (place, other) = node.attributes, sources
    if (other.height, other.width) != (1, 1) or other.channels != place.channels:
        refuse(node, f"its second operand is {list(other.shape)}: only a number for each channel is supported")
    part = Part(**same_channels(place, 0, output), **whole_output(output),
                operation=ConvOperation.DEPTHWISE, weight_source=1,
                type=element_type(place.dtype, other.dtype), table=table_of(place.channels, int(bits(at.scale))),
                x_zero=at.a_zero & 0xFF, k_zero=at.b_zero & 0xFF, zero_first=True,
                **results(node, output, at.y_zero, at.minimum, at.maximum))  # fmt: skip
    return Layer(node.name, node.operator or node.kind, output, sources, (part,))


def _pool(node, output, sources):
    """Pool: one job for maxima; for averages one for each divisor."""
    at, (place,) = node.attributes, sources
    if max(at.kernel) > 256:
        refuse(node, f"a window of {tuple(at.kernel)} is more than 256")
    common = (
        same_channels(place, 0, output)
        | _windows(node, at)
        | {"kernel": tuple(at.kernel), "type": element_type(place.dtype)}
    )
    if at.kind == "max":
        parts = [Part(operation=ConvOperation.MAX_POOL, output=ConvOutput.ELEMENT, **common, **whole_output(output))]
        return Layer(node.name, node.operator or node.kind, output, sources, tuple(parts))
    common |= {"operation": ConvOperation.SUM_POOL, "x_zero": at.x_zero & 0xFF, "zero_first": at.zero_first}
    common |= results(node, output, at.y_zero, at.minimum, at.maximum)
    scale = np.broadcast_to(at.scale, (output.height, output.width)) if at.scale.size == 1 else at.scale
    parts = [
        Part(rows=rows, columns=columns, table=table_of(place.channels, bits(scale[rows[0], columns[0]])), **common)
        for rows in _equal(scale)
        for columns in _equal(scale.T)
    ]
    return Layer(node.name, node.operator or node.kind, output, sources, tuple(parts))


def _equal(scale):
    """Runs of equal rows, as (first, end)."""
    ends = [*(np.flatnonzero((np.diff(scale, axis=0) != 0).any(axis=1)) + 1).tolist(), len(scale)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _pad(node, output, sources):
    """Pad: a job with padding around the elements, and jobs with a scale of 0 for channels that are only padding."""
    at, (place,) = node.attributes, sources
    rank = len(place.shape)
    zero = at.value & 0xFF
    ends = results(node, output, at.value)
    top, left = at.before[2:] if rank == 4 else (0, 0)
    first = at.before[1]
    parts = [Part(**_identity(place, x_zero=zero), source=0, channels=(0, place.channels),
                  out_channels=(first, place.channels), origin=(top, left), **whole_output(output),
                  **ends)]  # fmt: skip
    parts += [_one_value(place, output, start, count, ends)
              for start, count in ((0, first), (first + place.channels, at.after[1])) if count]  # fmt: skip
    return Layer(node.name, node.operator or node.kind, output, sources, tuple(parts))


def _one_value(place, output, start, count, ends):
    """A part that fills channels with the zero point of its results."""
    return Part(operation=ConvOperation.SUM_POOL, source=0, channels=(0, count), out_channels=(start, count),
                table=table_of(count, 0), type=element_type(place.dtype), blind=True, **whole_output(output),
                **ends)  # fmt: skip


def filled(node, output, place):
    """A layer that fills a tensor with the value of a Pad; ``place`` is any tensor, whose contents do not matter."""
    part = _one_value(place, output, 0, output.channels, results(node, output, node.attributes.value))
    return Layer(node.name, node.operator or node.kind, output, (place,), (part,))


def _concat(node, output, sources):
    """Concat: jobs for each input, which write its channels, rows or columns of the output."""
    at = node.attributes
    rank = len(output.shape)
    alone, axis = len(sources) == 1, at.axis % rank
    parts, start = [], 0
    for number, (place, table) in enumerate(zip(sources, at.tables, strict=True)):
        end = start + place.shape[axis]
        fields = whole_output(output) | {"out_channels": (0, output.channels)}
        if axis == 1 and not alone:
            fields["out_channels"] = (start, place.channels)
        elif axis > 1 and not alone:
            fields["rows" if axis == 2 else "columns"] = (start, end)
            fields["origin"] = (start, 0) if axis == 2 else (0, start)
        parts.append(through(place, table, source=number, channels=(0, place.channels), **fields))
        start = end
    return Layer(node.name, node.operator or node.kind, output, sources, tuple(parts))


def take_layer(node, output, shape, place_of_source):
    """A Take as a layer if it takes channels, rows and columns at equal steps; otherwise None.

    ``place_of_source`` gives the place of the source. It is called only if there is a layer.
    """
    starts, steps = zip(*map(_progression, node.attributes.indices), strict=True)
    whole = len(shape) in (2, 4) and len(output.shape) == len(shape) and output.shape[0] == shape[0]
    if not whole or min(steps) < 1 or steps[:2] != (1, 1) or max(steps) > 256 or starts[0]:
        return None
    place = place_of_source()
    origin, stride = (-starts[2], -starts[3]) if len(shape) == 4 else (0, 0), steps[2:] or (1, 1)
    part = through(place, None, source=0, channels=(starts[1], output.shape[1]),
                    out_channels=(0, output.shape[1]), origin=origin, stride=stride,
                    **whole_output(output))  # fmt: skip
    return Layer(node.name, node.operator or node.kind, output, (place,), (part,))


def _progression(indices):
    """The first number and the step; a step of 0 if the numbers are not at equal steps."""
    steps = set(np.diff(indices).tolist()) or {1}
    return int(indices[0]), steps.pop() if len(steps) == 1 else 0


def through(place, table, **fields):
    """A part that leaves bytes unchanged, but for the table of a Concat."""
    return Part(operation=ConvOperation.MAX_POOL, output=ConvOutput.ELEMENT, type=element_type(place.dtype),
                function=None if table is None else table.view(np.uint8), **fields)  # fmt: skip


#: By kind of node: a function of the node, the place of its output and the places of its inputs, which returns a layer.
OPERATORS = {"Conv": _convolution, "Add": _add, "Mul": _mul, "Pool": _pool, "Pad": _pad, "Concat": _concat}


def with_addition(layer, node, output, place):
    """A convolution together with the addition of its results to a tensor, as one layer."""
    addition = _addition_of(node, 1, output, layer.output.dtype, place.dtype)
    parts = tuple(replace(part, addition=addition) for part in layer.parts)
    name = f"{layer.name} + {node.name}"
    return replace(layer, name=name, output=output, sources=(*layer.sources, place), parts=parts)


def with_function(layer, node, output):
    """A layer whose results go through the table of ``node``, whose output lies at ``output``."""
    table, parts = node.attributes.tables[0].view(np.uint8), []
    for part in layer.parts:
        parts.append(replace(part, function=table if part.function is None else table[part.function]))
    return replace(layer, name=f"{layer.name} + {node.name}", output=output, parts=tuple(parts))


def with_channels_in_order(node, output, place, order):
    """A layer whose output channel c is channel ``order[c]`` of ``place``: a convolution with one weight of 1 each."""
    weights = np.eye(place.channels, dtype=np.uint8)[order]
    part = Part(**same_channels(place, 0, output), **whole_output(output), **results(node, output), weights=weights,
                operation=ConvOperation.CONVOLUTION, type=element_type(place.dtype, "int8"),
                table=table_of(output.channels, _ONE), counted=0)  # fmt: skip
    return Layer(node.name, node.operator or node.kind, output, (place,), (part,))


def in_order(layer, output, order):
    """A convolution with its output channels in another order: one job, with zeros between groups.

    None if it is not a convolution, or if that takes more multiplications than reordering the channels afterwards.
    """
    if not layer.parts or len(layer.sources) != 1:
        return None
    (place,), first = layer.sources, layer.parts[0]
    taps, deep, count = first.kernel[0] * first.kernel[1], first.channels[1], len(order)
    plain = all(part.operation == ConvOperation.CONVOLUTION and part.k_zero == first.k_zero for part in layer.parts)
    if not plain or taps * place.channels > taps * deep + count:
        return None
    whole = _together(layer.parts)
    return replace(layer, output=output,
                   parts=(replace(whole, table=whole.table[order], weights=whole.weights[order]),))  # fmt: skip


def with_groups_together(layer, conv):
    """A layer with neighbouring groups joined to one job, with zeros between them, while a step holds the channels."""
    parts = []
    for part in layer.parts:
        several = parts and _together((parts[-1], part))
        fits = several and several.channels[1] <= conv.row_bytes
        if fits and several.out_channels[1] <= CHANNELS_AT_ONCE * conv.slaves:
            parts[-1] = several
        else:
            parts.append(part)
    return replace(layer, parts=tuple(parts))


def _together(parts):
    """Convolutions of neighbouring channels as one part, with zeros for missing weights; None if they do not match."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return first
    contiguous = all(sum(before.channels) == part.channels[0] for before, part in pairwise(parts))
    equal = all(part.operation == ConvOperation.CONVOLUTION and part.k_zero == first.k_zero
                and part.weights is not None for part in parts)  # fmt: skip
    if not contiguous or not equal:
        return None
    taps, begin, start = first.kernel[0] * first.kernel[1], first.channels[0], first.out_channels[0]
    deep, count = sum(last.channels) - begin, sum(last.out_channels) - start
    weights = np.full((count, taps, deep), first.k_zero, np.uint8)
    for part in parts:
        (channel, own), (row, rows) = part.channels, part.out_channels
        some = slice(row - start, row - start + rows), slice(None), slice(channel - begin, channel - begin + own)
        weights[some] = part.weights.reshape(rows, taps, own)
    counted = taps * last.channels[1] if first.counted is None else first.counted
    return replace(first, channels=(begin, deep), out_channels=(start, count), weights=weights.reshape(count, -1),
                   table=np.concatenate([part.table for part in parts]), counted=counted)  # fmt: skip
