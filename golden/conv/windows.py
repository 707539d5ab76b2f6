"""What the windows of output points hold (docs/conv.md, "Operations")."""

import numpy as np

__all__ = ["Windows", "distances", "numbers"]

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
