"""Shapes of jobs: points, channels and windows (docs/conv.md, "Operations")."""

from dataclasses import dataclass

import numpy as np

from tilewright.spec.conv import CHANNEL_BYTES, FUNCTION_BYTES, ConvOperation

from ..arguments import integer, integers, member, pair

__all__ = ["SIZES", "ConvShape"]

#: Names of the attributes, and fields of jobs, that are sizes of X and Y.
SIZES = ("batch", "height", "width", "channels", "out_channels", "out_height", "out_width")
_MOST = 65536


@dataclass(frozen=True)
class ConvShape:
    """The shape of a convolution or pooling, without addresses and contents.

    Attributes
    ----------
    batch, height, width, channels : int
        N, H, W, C: sizes of X.
    out_channels, out_height, out_width : int
        Co, Ho, Wo.
    kernel, stride, dilation : tuple of int
        For columns, then for rows.
    padding : tuple of int
        On the left and at the top.
    operation : ConvOperation
    element_bytes, result_bytes : int
    adjoin : bool
        Pixels of X adjoin in memory.
    table, add, function : bool
        A table of channels, a second operand, and the LUT of a function are read.
    """

    batch: int
    height: int
    width: int
    channels: int
    out_channels: int
    out_height: int
    out_width: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    operation: ConvOperation = ConvOperation.CONVOLUTION
    element_bytes: int = 1
    result_bytes: int = 1
    adjoin: bool = True
    table: bool = False
    add: bool = False
    function: bool = False

    def __post_init__(self):
        for name in SIZES:
            integer(name, getattr(self, name), 1, _MOST)
        for name, low, high in (("kernel", 1, 256), ("stride", 1, 256), ("dilation", 1, 256), ("padding", 0, 255)):
            pair = integers(name, getattr(self, name))
            if len(pair) != 2 or not all(low <= value <= high for value in pair):
                raise ValueError(f"{name} must be two numbers of {low} to {high}, not {pair!r}")
            object.__setattr__(self, name, pair)
        object.__setattr__(self, "operation", member("operation", ConvOperation, self.operation))
        integer("element_bytes", self.element_bytes, 1, 2)
        integer("result_bytes", self.result_bytes, 1, 4)
        if self.operation.lanes and self.out_channels != self.channels:
            raise ValueError(f"out_channels must be channels ({self.channels}), not {self.out_channels}")

    @classmethod
    def of(cls, size, out_channels, kernel, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), **others):
        """The shape of a layer from arguments in the order of frameworks: rows, then columns.

        Parameters
        ----------
        size : tuple of int
            N, H, W, C.
        out_channels : int
        kernel, stride, dilation : tuple of int
            For rows, then for columns.
        padding : tuple of int
            Top, bottom, left, right.
        others
            Other attributes.
        """
        batch, height, width, channels = pair("size", size, 4)
        top, bottom, left, right = pair("padding", padding, 4)
        windows = {"kernel": kernel, "stride": stride, "dilation": dilation}
        kernel, stride, dilation = (pair(name, value) for name, value in windows.items())
        for name, value in zip(windows, (kernel, stride, dilation), strict=True):
            if min(value) < 1:
                raise ValueError(f"{name} must be two positive numbers, not {value}")
        out_height, out_width = (
            (extent - (taps - 1) * distance - 1) // step + 1
            for extent, taps, distance, step in zip(
                (height + top + bottom, width + left + right), kernel, dilation, stride, strict=True
            )
        )
        if out_height < 1 or out_width < 1:
            raise ValueError(f"a kernel of {kernel} does not fit {height} x {width} with its padding")
        return cls(batch, height, width, channels, out_channels, out_height, out_width, kernel[::-1],
                   stride[::-1], dilation[::-1], (left, top), **others)  # fmt: skip

    @property
    def lines(self):
        """Lines of output points of all images."""
        return self.batch * self.out_height

    @property
    def points(self):
        """Output points."""
        return self.lines * self.out_width

    @property
    def results(self):
        """Results: points × output channels."""
        return self.points * self.out_channels

    @property
    def taps(self):
        """Positions of the kernel."""
        return self.kernel[0] * self.kernel[1]

    @property
    def macs(self):
        """Multiplications, including those with padding."""
        return self.results * self.taps * (1 if self.operation.lanes else self.channels)

    def columns(self, points):
        """Input columns of output columns ``points`` (any array), also outside X; a further axis is the kernel's."""
        return self._along(0, points)

    def rows(self, points):
        """The same for rows."""
        return self._along(1, points)

    def _along(self, axis, points):
        first = np.asarray(points)[..., np.newaxis] * self.stride[axis] - self.padding[axis]
        return first + np.arange(self.kernel[axis]) * self.dilation[axis]

    @property
    def bytes_read(self):
        """The least bytes to read: each byte in a window once, weights, table, second operand, LUT."""
        extents = [
            len(np.unique(places[(places >= 0) & (places < size)]))
            for places, size in (
                (self.rows(np.arange(self.out_height)), self.height),
                (self.columns(np.arange(self.out_width)), self.width),
            )
        ]
        weights = {ConvOperation.CONVOLUTION: self.out_channels * self.channels, ConvOperation.DEPTHWISE: self.channels}
        return (
            self.batch * extents[0] * extents[1] * self.channels * self.element_bytes
            + weights.get(self.operation, 0) * self.taps * self.element_bytes
            + self.table * self.out_channels * CHANNEL_BYTES
            + self.add * self.bytes_written
            + self.function * FUNCTION_BYTES
        )

    @property
    def bytes_written(self):
        """Bytes of results."""
        return self.results * self.result_bytes
