"""Transposed convolutions and interpolation as parts, one for each phase of the output (docs/network.md, "Phases").

Rows of an output that are ``down`` rows apart are made by one part, columns that are ``right`` apart too. In the place
of the output, ``down`` rows are one, and ``right`` pixels are one: phases are ranges of its columns and channels.
"""

from dataclasses import replace
from itertools import product

import numpy as np

from tilewright.spec.conv import ConvOperation

from ..arithmetic import joint_weights
from ..attributes import Conv
from .layers import Layer, Part
from .operators import OPERATORS, bits, element_type, refuse, results, table_of

__all__ = ["elements_of_phases", "phases_of", "step_of"]

#: Most runs of rows, or columns, that are interpolated in one way.
_MOST = 32
#: Most rows, or columns, of a stride.
_MOST_APART = 256


def step_of(node, size, made):
    """Rows, and columns, from one element of a phase to the next; ``size`` of them become ``made``."""
    if node.kind == "ConvTranspose":
        return tuple(node.attributes.stride)
    return tuple(after // before if after % before == 0 else 1 for before, after in zip(size, made, strict=True))


def elements_of_phases(shape, step):
    """Indices of the elements of an output [N, C, Ho, Wo] in the tensor of its phases.

    That tensor is [N, right · C, rows, down · columns].
    """
    _, channels, _, width = shape
    columns = -(-width // step[1])
    image, channel, row, column = np.ogrid[tuple(slice(size) for size in shape)]
    return (image, column % step[1] * channels + channel, row // step[0],
            row % step[0] * columns + column // step[1])  # fmt: skip


def phases_of(node, output, place, step, made):
    """The layer of a ConvTranspose or Linear.

    Parameters
    ----------
    node : Node
    output, place : Place
        ``output`` is the tensor of phases.
    step, made : (int, int)
        Rows and columns of each phase, and of the output.
    """
    columns, channels = output.width // step[0], output.channels // step[1]
    one = replace(output, width=columns, channels=channels)
    parts = []
    for phase in product(*map(range, step)):
        of_phase = _transposed if node.kind == "ConvTranspose" else _interpolated
        for part in of_phase(node, one, place, phase, step, made):
            column = phase[0] * columns
            first, count = part.out_channels
            parts.append(replace(
                part, out_channels=(phase[1] * channels + first, count),
                columns=tuple(end + column for end in part.columns),
                origin=(part.origin[0], part.origin[1] + column * part.stride[1]),
            ))  # fmt: skip
    return Layer(node.name, node.operator or node.kind, output, (place,), tuple(parts))


def _transposed(node, output, place, phase, step, _made):
    """A phase of a ConvTranspose: a convolution with those weights of the kernel that meet its elements, in reverse."""
    at = node.attributes
    channels, share, *kernel = at.weight.shape
    deep = channels // at.groups
    weights = np.moveaxis(at.weight.reshape(at.groups, deep, share, *kernel), 2, 1).reshape(-1, deep, *kernel)
    before = []
    for axis in range(2):
        # Element m · step + phase takes weight k of element m - j of x where k · dilation = phase + pad + j · step.
        start = phase[axis] + at.pad[axis]
        pairs = [(k, (k * at.dilation[axis] - start) // step[axis]) for k in range(kernel[axis])
                 if (k * at.dilation[axis] - start) % step[axis] == 0]  # fmt: skip
        low, high = (min(j for _, j in pairs), max(j for _, j in pairs)) if pairs else (0, 0)
        shape = list(weights.shape)
        shape[axis + 2] = high - low + 1
        taps = np.empty(shape, at.weight.dtype)
        taps[...] = at.w_zero.astype(at.weight.dtype).reshape(-1, 1, 1, 1)
        for k, j in pairs:
            np.moveaxis(taps, axis + 2, 0)[high - j] = np.moveaxis(weights, axis + 2, 0)[k]
        weights = taps
        before.append(high)
    conv = Conv(
        weight=weights, x_zero=at.x_zero, w_zero=at.w_zero, bias=at.bias, scale=at.scale, y_zero=at.y_zero,
        groups=at.groups, minimum=at.minimum, maximum=at.maximum,
    )  # fmt: skip
    layer = OPERATORS["Conv"](replace(node, attributes=conv), output, (place,))
    return [replace(part, origin=tuple(before)) for part in layer.parts]


def _interpolated(node, output, place, phase, step, made):
    """A phase of a Linear: a part for each run of rows and of columns with the same weights."""
    at, channels = node.attributes, place.channels
    runs = []
    for axis in range(2):
        some = slice(phase[axis], made[axis], step[axis])
        runs.append(list(_runs(at.first[axis][some], at.weights[axis][some])))
        if len(runs[axis]) > _MOST:
            refuse(node, f"it interpolates in {len(runs[axis])} ways, and at most {_MOST} are supported")
    for (rows, row_weights, *row), (columns, column_weights, *column) in product(*runs):
        weights, divisor = joint_weights(row_weights, column_weights, at.bias)
        table = table_of(channels, int(bits(at.scale * np.float32(divisor))), at.bias // divisor)
        yield Part(
            operation=ConvOperation.DEPTHWISE, source=0, channels=(0, channels), out_channels=(0, channels),
            rows=rows, columns=columns, kernel=weights.shape, stride=(row[0], column[0]), origin=(row[1], column[1]),
            weights=np.repeat(weights.reshape(-1, 1), channels, axis=1), table=table,
            type=element_type(place.dtype, "uint8"), x_zero=at.x_zero & 0xFF,
            **results(node, output, at.y_zero, at.minimum, at.maximum),
        )  # fmt: skip


def _runs(first, weights):
    """Runs of elements at equal steps with the same weights: (first, end), weights, step, origin."""
    start = 0
    while start < len(first):
        end, step = start + 1, 1
        while end < len(first) and (weights[end] == weights[start]).all():
            apart = int(first[end] - first[end - 1])
            if not 1 <= apart <= _MOST_APART or (end > start + 1 and apart != step):
                break
            step, end = apart, end + 1
        own = weights[start] if weights[start][1] else weights[start][:1]
        yield (start, end), own, step, start * step - int(first[start])
        start = end
