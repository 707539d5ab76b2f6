"""Pixels of few channels, several of which are computed as one (docs/network.md, "Operators as jobs")."""

from dataclasses import replace

import numpy as np

from tilewright.spec.conv import ConvOperation

__all__ = ["in_wide_pixels"]


def in_wide_pixels(layer, conv):
    """A convolution of 1 × 1 whose points are several neighbouring pixels; the layer itself if that is no gain.

    The second operand is read one point a cycle, and a point of few channels is fewer than the results of a cycle. The
    weights are those of one pixel on the diagonal, with elements that are zero beside them.
    """
    if len(layer.parts) != 1 or len(layer.sources) != 1:
        return layer
    (part,), (place,), output = layer.parts, layer.sources, layer.output
    plain = part.operation == ConvOperation.CONVOLUTION and part.weights is not None
    windows = part.kernel, part.stride, part.origin
    if not plain or windows != ((1, 1), (1, 1), (0, 0)) or part.channels != (0, place.channels) or output.element > 1:
        return layer
    most = min(conv.results // output.channels, conv.row_bytes // place.channels)
    count = max((count for count in range(1, most + 1) if place.width % count == 0), default=1)
    if count == 1:
        return layer
    rows, columns = part.weights.shape
    weights = np.full((count, rows, count, columns), part.k_zero, np.uint8)
    weights[range(count), :, range(count)] = part.weights
    deep, width = part.channels[1] if part.counted is None else part.counted, output.width // count
    part = replace(part, channels=(0, count * columns), out_channels=(0, count * rows), columns=(0, width),
                   weights=weights.reshape(count * rows, -1), table=np.tile(part.table, (count, 1)),
                   counted=deep)  # fmt: skip
    place, output = (replace(each, width=width, channels=count * each.channels) for each in (place, output))
    return replace(layer, output=output, sources=(place,), parts=(part,))
