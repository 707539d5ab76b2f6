"""Windows of output points, rows of features and weights, and the order of steps (docs/conv.md)."""

from typing import NamedTuple

import numpy as np

from tilewright.spec.conv import CHANNELS_AT_ONCE

from .plan import most_steps

__all__ = [
    "LaneStep", "Rows", "Windows", "WorkStep", "cut_rows", "distances", "lane_groups", "lane_order", "numbers",
    "work_order",
]  # fmt: skip

#: Bits of an ``MmType`` that make an operand unsigned.
_UNSIGNED = {"x": 2, "k": 1}


def numbers(bits, kind, operand):
    """Integers of ``operand``, "x" or "k", as int64, from raw bits."""
    bits = np.asarray(bits, np.int64)
    sign = 1 << 8 * kind.bytes - 1
    return bits if kind & _UNSIGNED[operand] else (bits ^ sign) - sign


def distances(bits, zero, kind, operand):
    """Integers of ``operand`` less their zero point, as int64; both arguments are raw bits."""
    return numbers(bits, kind, operand) - numbers(zero, kind, operand)


class Windows:
    """The windows of a shape over an X.

    Parameters
    ----------
    shape : ConvShape
    x : array of shape (N, H, W, C)
        Of any type.
    """

    def __init__(self, shape, x):
        self.shape, self._x = shape, x

    def chunks(self, elements):
        """Numbers of points in the order n, ho, wo, in arrays for about 2^21 elements, ``elements`` for each point."""
        count = max(1, (1 << 21) // elements)
        points = self.shape.points
        return [np.arange(first, min(first + count, points)) for first in range(0, points, count)]

    def row(self, points, kernel_row, padding):
        """The elements of windows for one row of the kernel.

        Parameters
        ----------
        points : int array of one dimension
            Numbers of output points.
        kernel_row : int
            Or a line after the kernel, in the window of the next output line.
        padding
            Value of elements outside X.

        Returns
        -------
        elements : array of shape (points, Kw, C), of the type of X
        inside : bool array of shape (points, Kw)
        """
        shape = self.shape
        lines, column = np.divmod(points, shape.out_width)
        image, line = np.divmod(lines, shape.out_height)
        rows = line * shape.stride[1] - shape.padding[1] + kernel_row * shape.dilation[1]
        columns = shape.columns(column)
        rows_inside = (rows >= 0) & (rows < shape.height)
        inside = rows_inside[:, None] & (columns >= 0) & (columns < shape.width)
        elements = self._x[
            image[:, None], np.clip(rows, 0, shape.height - 1)[:, None], np.clip(columns, 0, shape.width - 1)
        ]
        if not inside.all():
            elements[~inside] = padding
        return elements, inside


def cut_rows(rows, steps, merge, elements, fill=0):
    """Kernel rows (…, Kw, C) cut into blocks: (…, blocks, steps, elements), padded with ``fill``.

    A pixel has ``merge`` columns, and a kernel row ``steps`` pixels.
    """
    *outer, columns, channels = rows.shape
    whole = [(0, 0)] * len(outer)
    pad = {"mode": "constant", "constant_values": fill}
    pixels = np.pad(rows, [*whole, (0, steps * merge - columns), (0, 0)], **pad)
    blocks = -(-merge * channels // elements)
    surplus = blocks * elements - merge * channels
    pixels = np.pad(pixels.reshape(*outer, steps, merge * channels), [*whole, (0, 0), (0, surplus)], **pad)
    return np.moveaxis(pixels.reshape(*outer, steps, blocks, elements), -3, -2)


class Rows:
    """Feature rows and weight rows of a plan.

    Parameters
    ----------
    plan : ConvPlan
    x : array of shape (N, H, W, C)
        Raw bits.
    k : array or None
        Raw bits, of shape (Co, Kh, Kw, C), in lane-private mode (Kh, Kw, C); None for pooling.
    zeros : tuple of int
        Zero points of X and K, raw, for elements that contribute nothing.
    """

    def __init__(self, plan, x, k, zeros=(0, 0)):
        self.plan, self._zeros = plan, zeros
        self._windows = Windows(plan.shape, x)
        self._elements = plan.block_bytes // plan.shape.element_bytes
        self._weights = None if k is None else self._cut(k, zeros[1])

    def points(self, tile):
        """Numbers of the points of a tile by unit and place in the row, of shape (units, fold); −1 if surplus.

        In lane-private mode a tile is one row, and there is one unit; of a line pair, these are points of the first
        line.
        """
        plan, shape = self.plan, self.plan.shape
        places = np.arange(plan.tile_points)
        if plan.crosses_lines:
            # In lane-private mode rows end with their image.
            whole = plan.lane_lines * shape.out_width if shape.operation.lanes else shape.points
            image, part = divmod(tile, -(-whole // plan.tile_points))
            points = part * plan.tile_points + places
            inside, points = points < whole, image * whole + points
        else:
            line, part = divmod(tile, -(-shape.out_width // plan.tile_points))
            columns = part * plan.tile_points + places
            points, inside = line * shape.out_width + columns, columns < shape.out_width
        if plan.line_pairs:
            line, column = np.divmod(points, shape.out_width)
            image, pair = np.divmod(line, plan.lane_lines)
            points = (image * shape.out_height + 2 * pair) * shape.out_width + column
        return np.where(inside, points, -1).reshape(-1, plan.fold)

    def second_points(self, tile):
        """The same for the second lines of pairs; −1 where there is none."""
        plan, shape, points = self.plan, self.plan.shape, self.points(tile)
        line = points // shape.out_width % shape.out_height
        second = (points >= 0) & (line + 1 < shape.out_height) & plan.line_pairs
        return np.where(second, points + shape.out_width, -1)

    def features(self, tile, kernel_row, block, step):
        """Feature rows of all units, raw bits, of shape (units, fold, elements of a block).

        Rows of surplus points are not specified; here they are those of the first point.
        """
        points = np.maximum(self.points(tile), 0)
        rows, _ = self._windows.row(points.ravel(), kernel_row, self._zeros[0])
        return self._cut(rows, self._zeros[0])[:, block, step].reshape(*points.shape, self._elements)

    def weights(self, channel, kernel_row, block, step):
        """A weight row before it is repeated, raw bits; ``channel`` is ignored in lane-private mode."""
        if self.plan.shape.operation.lanes:
            return self._weights[kernel_row, block, step]
        return self._weights[channel, kernel_row, block, step]

    def _cut(self, rows, fill):
        return cut_rows(rows, self.plan.steps, self.plan.merge, self._elements, fill)


class WorkStep(NamedTuple):
    """One cycle of the array, with one weight row in each slave.

    Attributes
    ----------
    point_tile, kernel_row, block : int
    part, step : int
        Part of the steps along kw, and step.
    channel : int
        Slave s multiplies output channel ``channel`` · NS + s.
    """

    point_tile: int
    kernel_row: int
    block: int
    part: int
    step: int
    channel: int


def work_order(plan):
    """Yields the :class:`WorkStep` of each cycle of a convolution, in order."""
    limit = most_steps(plan.params, plan.fold, plan.shape.dilation[0])
    for first in range(0, plan.slave_channels, CHANNELS_AT_ONCE):
        channels = range(first, min(first + CHANNELS_AT_ONCE, plan.slave_channels))
        for tile in range(plan.point_tiles):
            for kernel_row in range(plan.shape.kernel[1]):
                for block in range(plan.blocks):
                    for step in range(plan.steps):
                        for channel in channels:
                            yield WorkStep(tile, kernel_row, block, step // limit, step, channel)


class LaneStep(NamedTuple):
    """One cycle in lane-private mode: a row in each slave, all of one block, and one or two rows of the kernel for all.

    Attributes
    ----------
    block : int
    point_tiles : tuple of int
        The row of each slave; fewer than slaves at the end of a line, or of an image.
    line : int
        Of X, from the first line of the group, in units of dh lines.
    kernel_rows : tuple of int or None
        Rows of the kernel for points and for those of the second line of a pair; None if the line does not serve them.
    kernel_column : int
    """

    block: int
    point_tiles: tuple[int, ...]
    line: int
    kernel_rows: tuple[int | None, int | None]
    kernel_column: int


def lane_groups(plan):
    """Rows of slaves at one time in lane-private mode: a list of tuples of tiles, each of one line or one image."""
    parts, slaves = plan.shape.batch * (1 if plan.crosses_lines else plan.lane_lines), plan.params.slaves
    tiles = plan.point_tiles // parts
    return [
        tuple(range(part * tiles, (part + 1) * tiles))[first : first + slaves]
        for part in range(parts)
        for first in range(0, tiles, slaves)
    ]


def lane_order(plan):
    """Yields the :class:`LaneStep` of each cycle in lane-private mode, in order."""
    (columns, kernel_rows), (_, stride) = plan.shape.kernel, plan.shape.stride
    for block in range(plan.blocks):
        for tiles in lane_groups(plan):
            for line in range(plan.lane_rows):
                first = line if line < kernel_rows else None
                second = line - stride if plan.line_pairs and line >= stride else None
                for column in range(columns):
                    yield LaneStep(block, tiles, line, (first, second), column)
