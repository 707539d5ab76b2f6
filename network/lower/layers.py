"""Layers of the convolution engine, before they are cut into tiles (docs/network.md, "On the engines")."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewright.spec.conv import CHANNEL_BYTES, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType

from .moves import Move
from .places import Place

__all__ = ["Addition", "Layer", "Part", "reach"]


@dataclass(frozen=True, eq=False)
class Addition:
    """A second operand that is added to results: a source of the layer with the geometry of its output.

    Without a source it is the output itself, as the parts before left it. ``ratio`` and ``offset`` are the raw bits of
    binary32.
    """

    source: int | None
    ratio: tuple[int, int]
    offset: int
    minimum: int
    maximum: int


@dataclass(frozen=True, eq=False)
class Part:
    """One convolution or pooling: of channels of a source, into channels and points of the layer's output.

    Input row of output row r and kernel row kh is r · stride - top + kh · dilation, with r counted in the whole output;
    columns likewise.

    Attributes
    ----------
    operation : ConvOperation
    source : int
        Number of the source.
    channels, out_channels : (int, int)
        First one and how many, of the source's pixels and of the output's.
    rows, columns : (int, int)
        Points of the output: first one, and the one behind the last.
    kernel, stride, dilation, origin : (int, int)
        Of rows, of columns; ``origin`` is (top, left), of any sign.
    weights : uint8 array or None
        [Co, Kh · Kw · C], or of DEPTHWISE [Kh · Kw, C].
    table : uint32 array [Co, 2] or None
        Bias and raw bits of the scale.
    type : MmType
    output : ConvOutput
    x_zero, k_zero, y_zero, minimum, maximum : int
        As they lie in memory.
    addition : Addition or None
    blind : bool
        X is not read for what it holds: any bytes will do, for the scale is 0.
    counted : int or None
        Multiplications of an element of the output that are the network's, where weights besides are zeros or choose a
        channel.
    """

    operation: ConvOperation
    source: int
    channels: tuple[int, int]
    out_channels: tuple[int, int]
    rows: tuple[int, int]
    columns: tuple[int, int]
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    origin: tuple[int, int] = (0, 0)
    weights: np.ndarray | None = None
    table: np.ndarray | None = None
    type: MmType = MmType.U8U8
    output: ConvOutput = ConvOutput.U8
    x_zero: int = 0
    k_zero: int = 0
    y_zero: int = 0
    minimum: int = 0
    maximum: int = 255
    addition: Addition | None = None
    blind: bool = False
    counted: int | None = None

    @property
    def shape(self):
        """All that decides what jobs of the part cost."""
        return (self.operation, self.source, self.channels[1], self.rows, self.columns, self.kernel, self.stride,
                self.dilation, self.origin, self.blind, self.table is not None, self.addition is not None)  # fmt: skip

    @property
    def element(self):
        """Bytes of a result."""
        return 4 if self.output == ConvOutput.RAW else 1

    @property
    def table_bytes(self):
        """Bytes of the table."""
        return 0 if self.table is None else CHANNEL_BYTES * len(self.table)

    def renumbered(self, number, added=None):
        """The part with other numbers of sources: ``number`` of each, and ``added`` of addends if theirs differ."""
        addition = self.addition
        if addition and addition.source is not None:
            addition = replace(addition, source=(added or number)(addition.source))
        return replace(self, source=number(self.source), addition=addition)

    def input_rows(self, rows, height):
        """Rows of a source of ``height`` rows that output ``rows`` of this part need; at least one."""
        first, last = max(rows[0], self.rows[0]), min(rows[1], self.rows[1])
        return reach(first, last, self.kernel[0], self.stride[0], self.dilation[0], self.origin[0], height)

    def macs(self, points):
        """Multiplications of so many output points."""
        if self.weights is None:
            return 0
        if self.counted is not None:
            return points * self.out_channels[1] * self.counted
        taps = self.kernel[0] * self.kernel[1]
        deep = self.channels[1] if self.operation == ConvOperation.CONVOLUTION else 1
        return points * self.out_channels[1] * taps * deep


def reach(first, last, taps, step, apart, before, size):
    """Which of ``size`` input rows, or columns, output ones from ``first`` to before ``last`` need; at least one."""
    low = first * step - before
    high = (last - 1) * step - before + (taps - 1) * apart + 1
    low, high = min(max(low, 0), size - 1), min(max(high, 1), size)
    return (low, high) if low < high else (low, low + 1)


@dataclass(frozen=True, eq=False)
class Layer:
    """What writes one tensor.

    Attributes
    ----------
    name, operator : str
        As in the model.
    output : Place
    sources : tuple of Place
    parts : tuple of Part
        Together they write every element of the output, once but for those that are added to.
    moves : tuple of Move
        Instead of ``parts``.
    first : Layer or None
        What makes source 0, which then lies nowhere but in shared memory, as many rows of it as are needed; behind that
        source come those of ``first``.
    """

    name: str
    operator: str
    output: Place
    sources: tuple[Place, ...]
    parts: tuple[Part, ...] = ()
    moves: tuple[Move, ...] = ()
    first: "Layer | None" = None

    @cached_property
    def stages(self):
        """All parts in the order in which they are done, each with the layer whose sources and output it has."""
        own = tuple((self, part) for part in self.parts)
        return (*self.first.stages, *own) if self.first else own

    @cached_property
    def kinds(self):
        """Of each of ``stages`` the number of the first one whose jobs cost the same."""
        firsts = {}
        return tuple(firsts.setdefault((stage is self, *part.shape), number)
                     for number, (stage, part) in enumerate(self.stages))  # fmt: skip

    @cached_property
    def windows(self):
        """All that decides which rows of sources are needed: of parts, each once, and of the layer before.

        A window is (source, rows of the output) of what is added, and otherwise has the arguments of :func:`reach`
        besides; the second element is (number of sources, windows) of ``first``, or None.
        """
        windows = {}
        for part in self.parts:
            if not part.blind:
                window = part.kernel[0], part.stride[0], part.dilation[0], part.origin[0]
                windows[part.source, part.rows, *window, self.sources[part.source].height] = None
            if part.addition and part.addition.source is not None:
                windows[part.addition.source, part.rows] = None
        return (*windows,), self.first and (len(self.first.sources), self.first.windows)

    @cached_property
    def made(self):
        """Rows that parts make, each once: whether it is a part of this layer, and the rows of the output."""
        return tuple(dict.fromkeys((stage is self, part.rows) for stage, part in self.stages))

    @property
    def brought(self):
        """Sources that lie in global memory."""
        return self.sources[1:] if self.first else self.sources

    @property
    def macs(self):
        """Multiplications."""
        points = ((part, (part.rows[1] - part.rows[0]) * (part.columns[1] - part.columns[0])) for part in self.parts)
        own = self.output.batch * sum(part.macs(count) for part, count in points)
        return own + (self.first.macs if self.first else 0)
