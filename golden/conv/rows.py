"""What the windows of output points hold (docs/conv.md, "Operations")."""

from typing import NamedTuple

import numpy as np

from tilewright.spec.conv import CHANNELS_AT_ONCE

from .plan import most_steps

__all__ = ["LaneStep", "Rows", "Windows", "WorkStep", "cut_rows", "distances", "lane_groups", "lane_order", "numbers",
           "work_order"]  # fmt: skip

#: Bits of an ``MmType`` that say that an operand is unsigned.
_UNSIGNED = {"x": 2, "k": 1}


def numbers(bits, kind, operand):
    """Raw bits of integers of ``operand``, "x" or "k", as int64."""
    bits = np.asarray(bits, np.int64)
    sign = 1 << 8 * kind.bytes - 1
    return bits if kind & _UNSIGNED[operand] else (bits ^ sign) - sign


def distances(bits, zero, kind, operand):
    """Raw bits of integers of ``operand`` less their zero point, also raw, as int64."""
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
        """Points by their numbers in the order n, ho, wo, as arrays, so many that ``elements`` each make about 2^21."""
        count = max(1, (1 << 21) // elements)
        points = self.shape.points
        return [np.arange(first, min(first + count, points)) for first in range(0, points, count)]

    def row(self, points, kernel_row, padding):
        """The part of windows that one row of the kernel takes.

        Parameters
        ----------
        points : int array of one dimension
            Numbers of output points.
        kernel_row : int
            Or a line further down, which a window of the next output line has.
        padding
            What stands for an element outside of X.

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
        there = (rows >= 0) & (rows < shape.height)
        inside = there[:, None] & (columns >= 0) & (columns < shape.width)
        taken = self._x[
            image[:, None], np.clip(rows, 0, shape.height - 1)[:, None], np.clip(columns, 0, shape.width - 1)
        ]
        if not inside.all():
            taken[~inside] = padding
        return taken, inside


def cut_rows(rows, steps, merge, many, fill=0):
    """Kernel rows (…, Kw, C) as (…, blocks, steps, ``many`` elements), filled up with ``fill``.

    ``merge`` columns are taken as one pixel, of which a kernel row has ``steps``.
    """
    *outer, columns, channels = rows.shape
    whole = [(0, 0)] * len(outer)
    pad = {"mode": "constant", "constant_values": fill}
    pixels = np.pad(rows, [*whole, (0, steps * merge - columns), (0, 0)], **pad)
    blocks = -(-merge * channels // many)
    surplus = blocks * many - merge * channels
    pixels = np.pad(pixels.reshape(*outer, steps, merge * channels), [*whole, (0, 0), (0, surplus)], **pad)
    return np.moveaxis(pixels.reshape(*outer, steps, blocks, many), -3, -2)


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
        What stands for elements that contribute nothing: zero points of X and K, raw.
    """

    def __init__(self, plan, x, k, zeros=(0, 0)):
        self.plan, self._zeros = plan, zeros
        self._windows = Windows(plan.shape, x)
        self._many = plan.block_bytes // plan.shape.element_bytes
        self._weights = None if k is None else self._cut(k, zeros[1])

    def points(self, tile):
        """Numbers of the points of a tile by unit and place in the row, of shape (units, fold); −1 where surplus.

        In lane-private mode a tile is one row, and there is one unit. Of two lines at once these are the first one's.
        """
        plan, shape = self.plan, self.plan.shape
        places = np.arange(plan.tile_points)
        if plan.crosses_lines:
            # In lane-private mode rows end with their image.
            whole = plan.lane_lines * shape.out_width if shape.operation.lanes else shape.points
            image, part = divmod(tile, -(-whole // plan.tile_points))
            points = part * plan.tile_points + places
            there, points = points < whole, image * whole + points
        else:
            line, part = divmod(tile, -(-shape.out_width // plan.tile_points))
            columns = part * plan.tile_points + places
            points, there = line * shape.out_width + columns, columns < shape.out_width
        if plan.line_pairs:
            line, column = np.divmod(points, shape.out_width)
            image, pair = np.divmod(line, plan.lane_lines)
            points = (image * shape.out_height + 2 * pair) * shape.out_width + column
        return np.where(there, points, -1).reshape(-1, plan.fold)

    def second_points(self, tile):
        """The same of the lines below, which are computed at once; −1 where there is none."""
        plan, shape, points = self.plan, self.plan.shape, self.points(tile)
        line = points // shape.out_width % shape.out_height
        there = (points >= 0) & (line + 1 < shape.out_height) & plan.line_pairs
        return np.where(there, points + shape.out_width, -1)

    def features(self, tile, kernel_row, block, step):
        """Feature rows of all units, raw bits, of shape (units, fold, elements of a block).

        What surplus points have is not specified; here it is that of the first point.
        """
        points = np.maximum(self.points(tile), 0)
        rows, _ = self._windows.row(points.ravel(), kernel_row, self._zeros[0])
        return self._cut(rows, self._zeros[0])[:, block, step].reshape(*points.shape, self._many)

    def weights(self, channel, kernel_row, block, step):
        """A weight row before it is repeated, raw bits; ``channel`` is ignored in lane-private mode."""
        if self.plan.shape.operation.lanes:
            return self._weights[kernel_row, block, step]
        return self._weights[channel, kernel_row, block, step]

    def _cut(self, rows, fill):
        return cut_rows(rows, self.plan.steps, self.plan.merge, self._many, fill)


class WorkStep(NamedTuple):
    """One cycle of the array: one weight row in each slave.

    Attributes
    ----------
    point_tile, kernel_row, block : int
    part, step : int
        Part of the steps along kw, and step.
    channel : int
        Of a slave: slave s multiplies output channel ``channel`` · NS + s.
    """

    point_tile: int
    kernel_row: int
    block: int
    part: int
    step: int
    channel: int


def work_order(plan):
    """Yields the :class:`WorkStep` of every cycle of a convolution, in order."""
    most = most_steps(plan.params, plan.fold, plan.shape.dilation[0])
    for first in range(0, plan.slave_channels, CHANNELS_AT_ONCE):
        channels = range(first, min(first + CHANNELS_AT_ONCE, plan.slave_channels))
        for tile in range(plan.point_tiles):
            for kernel_row in range(plan.shape.kernel[1]):
                for block in range(plan.blocks):
                    for step in range(plan.steps):
                        for channel in channels:
                            yield WorkStep(tile, kernel_row, block, step // most, step, channel)


class LaneStep(NamedTuple):
    """One cycle in lane-private mode: a row in each slave, all of one block, and one row of the kernel for all of them,
    or two if two lines are computed at once.

    Attributes
    ----------
    block : int
    point_tiles : tuple of int
        The row of each slave; fewer than slaves at the end of a line, or of an image.
    line : int
        Of X, counted from the first one that the group needs, dh lines at once.
    kernel_rows : tuple of int or None
        What that line is multiplied with, for points and for those of the line below; None: nothing.
    kernel_column : int
    """

    block: int
    point_tiles: tuple[int, ...]
    line: int
    kernel_rows: tuple[int | None, int | None]
    kernel_column: int


def lane_groups(plan):
    """The rows that slaves have at once in lane-private mode: a list of tuples of tiles, of a line or an image each."""
    parts, slaves = plan.shape.batch * (1 if plan.crosses_lines else plan.lane_lines), plan.params.slaves
    each = plan.point_tiles // parts
    return [
        tuple(range(part * each, (part + 1) * each))[first : first + slaves]
        for part in range(parts)
        for first in range(0, each, slaves)
    ]


def lane_order(plan):
    """Yields the :class:`LaneStep` of every cycle in lane-private mode, in order."""
    (columns, kernel_rows), (_, stride) = plan.shape.kernel, plan.shape.stride
    for block in range(plan.blocks):
        for tiles in lane_groups(plan):
            for line in range(plan.lane_rows):
                first = line if line < kernel_rows else None
                second = line - stride if plan.line_pairs and line >= stride else None
                for column in range(columns):
                    yield LaneStep(block, tiles, line, (first, second), column)
