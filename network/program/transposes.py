"""Transposes as products: what changes its place is the weights, and X the identity (docs/network.md, "Moves")."""

from itertools import product
from math import prod

import numpy as np

from tilewright.spec.conv import CHANNEL_BYTES, ConvOperation, ConvOutput

from ..lower.layers import Part
from ..plan.costs import plan_part

__all__ = ["Identity", "product_jobs"]

#: Output channels of a job at most: so many entries has the table.
_MOST = 256


class Identity:
    """What such products have besides their tensors, as an ``Image``: X, as long as a row of the engine, and the table.

    Parameters
    ----------
    conv : ConvParams

    Attributes
    ----------
    table : int
        Byte offset of the table, whose scales are 1.
    size : int
        Bytes of both.
    """

    def __init__(self, conv):
        self._row = conv.row_bytes
        self.table = conv.row_bytes**2
        self.size = self.table + CHANNEL_BYTES * _MOST

    def data(self):
        """The bytes."""
        table = np.tile(np.array([0, np.float32(1).view(np.uint32)], np.uint32), _MOST)
        return np.concatenate((np.eye(self._row, dtype=np.uint8).ravel(), table.view(np.uint8)))


def product_jobs(move, conv, most, identity, spot, target):
    """Jobs that do a :class:`Move`, as fields, and their cycles; None if it is no transpose, or takes ``most`` or more.

    Bytes that adjoin in the source become pixels of the output, those that adjoin in the output its channels: the
    weights of channel c are what becomes channel c of as many pixels as the identity has.

    Parameters
    ----------
    move : Move
    conv : ConvParams
    most : int
    identity : int
        Address of an :class:`Identity` in shared memory.
    spot, target : int
        Addresses in shared memory of offset 0 of source and output.
    """
    channels = next((loop for loop in move.loops if loop[2] == 1 and loop[1] > 1), None)
    pixels = next((loop for loop in move.loops if loop[1] == 1 and loop[2] > 1), None)
    if channels is None or pixels is None:
        return None
    others = [loop for loop in move.loops if loop not in (channels, pixels)]
    blocks = list(product(_cut(channels[0], _MOST), _cut(pixels[0], conv.row_bytes)))
    parts = [_job(pixel[1], channel[1], conv, identity) for channel, pixel in blocks]
    cycles = prod(size for size, *_ in others) * sum(cycles for _, cycles in parts)
    if cycles >= most:
        return None
    jobs = []
    for index in product(*(range(size) for size, *_ in others)):
        k, y = (begin + start + sum(i * loop[side] for i, loop in zip(index, others, strict=True))
                for side, begin, start in zip((1, 2), (spot, target), move.start, strict=True))  # fmt: skip
        jobs += [
            fields | {"k": k + channel * channels[1] + pixel, "k_pitch": channels[1],
                      "y": y + channel + pixel * pixels[2], "y_pitch": (pixels[2],) * 3}
            for ((channel, _), (pixel, _)), (fields, _) in zip(blocks, parts, strict=True)
        ]  # fmt: skip
    return jobs, cycles


def _cut(size, most):
    """Pieces of ``most`` at most: the first one's index, and how many there are."""
    return [(first, min(size - first, most)) for first in range(0, size, most)]


def _job(pixels, channels, conv, identity):
    """Fields of a job of so many pixels and output channels but for where weights and results lie; its cycles."""
    part = Part(operation=ConvOperation.CONVOLUTION, source=0, channels=(0, pixels), out_channels=(0, channels),
                rows=(0, 1), columns=(0, pixels), table=np.empty((channels, 2)))  # fmt: skip
    plan, cost = plan_part(part, channels, 1, pixels, conv.row_bytes, conv)
    fields = {
        "operation": ConvOperation.CONVOLUTION, "type": "u8u8", "output": ConvOutput.U8, "minimum": 0, "maximum": 255,
        "raster": plan.raster, "granularity": plan.block_bytes.bit_length() - 1, "merge": plan.merge,
        "channels": pixels, "out_channels": channels, "width": pixels, "height": 1, "out_width": pixels,
        "out_height": 1, "x": identity, "x_pitch": (conv.row_bytes,) * 3, "table": identity + Identity(conv).table,
    }  # fmt: skip
    return fields, cost.cycles
