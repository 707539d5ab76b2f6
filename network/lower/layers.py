"""Layers of jobs of the convolution engine, before they are cut (docs/network.md, "On the engines")."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewright.spec.conv import CHANNEL_BYTES, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType

from .kernels import Kernel
from .moves import Move
from .places import Place

__all__ = ["Addition", "Layer", "Part", "reach"]


@dataclass(frozen=True, eq=False)
class Addition:
    """A second operand that is added to results: a source of the layer.

    Its batch, height and width equal the output's, or are 1: then every image, row or pixel has the same operand.
    ``ratio`` and ``offset`` are raw bits of binary32.
    """

    source: int
    ratio: tuple[int, int]
    offset: int
    minimum: int
    maximum: int


@dataclass(frozen=True, eq=False)
class Part:
    """One convolution or pooling of channels of a source, which writes channels and points of the layer's output.

    Input row of output row r and kernel row kh is r · stride - top + kh · dilation, with r counted in the whole output;
    columns follow the same formula.

    Attributes
    ----------
    operation : ConvOperation
    source : int
        Number of the source.
    channels, out_channels : (int, int)
        First channel and number of channels, of the source and of the output.
    rows, columns : (int, int)
        Points of the output: the first one and the end.
    kernel, stride, dilation, origin : (int, int)
        For rows, then for columns; ``origin`` is (top, left), of any sign.
    weights : uint8 array or None
        [Co, Kh · Kw · C], or [Kh · Kw, C] for DEPTHWISE.
    weight_source : int or None
        Number of the source that has the weights of a part of 1 × 1, in place of ``weights``: a channel for each output
        channel of a DEPTHWISE part, a row for each output channel of a CONVOLUTION.
    weight_start : (int, int)
        The first such row, and the first channel of the rows, of a CONVOLUTION.
    table : uint32 array [Co, 2] or None
        Bias, and raw bits of the scale.
    table_source : int or None
        Number of the source whose pixels of 8 bytes are the table, in place of ``table``.
    type : MmType
    output : ConvOutput
    x_zero, k_zero, y_zero, minimum, maximum : int
        Bytes as they are in memory.
    zero_first : bool
        The zero point is added before rounding.
    addition : Addition or None
    function : uint8 array or None
        What each byte of a result becomes at last, 256 bytes.
    blind : bool
        The scale is 0, so the contents of X do not matter.
    counted : int or None
        The network's multiplications for an element of the output, if some weights are zeros that the compiler added.
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
    weight_source: int | None = None
    weight_start: tuple[int, int] = (0, 0)
    table: np.ndarray | None = None
    table_source: int | None = None
    type: MmType = MmType.U8U8
    output: ConvOutput = ConvOutput.U8
    x_zero: int = 0
    k_zero: int = 0
    y_zero: int = 0
    minimum: int = 0
    maximum: int = 255
    zero_first: bool = False
    addition: Addition | None = None
    function: np.ndarray | None = None
    blind: bool = False
    counted: int | None = None

    @property
    def shape(self):
        """Everything that decides the cost of a job of the part, hashable."""
        return (self.operation, self.source, self.channels[1], self.rows, self.columns, self.kernel, self.stride,
                self.dilation, self.origin, self.blind, self.has_table, self.addition is not None,
                self.x_element)  # fmt: skip

    @property
    def x_element(self):
        """Bytes of an element of X."""
        return 2 if MmType.S16S16 <= self.type <= MmType.U16U16 else 1

    @property
    def element(self):
        """Bytes of a result."""
        return 4 if self.output == ConvOutput.RAW else 1

    @property
    def has_table(self):
        """Whether there are biases and scales."""
        return self.table is not None or self.table_source is not None

    @property
    def table_bytes(self):
        """Bytes of the table."""
        return 0 if self.table is None else CHANNEL_BYTES * len(self.table)

    @property
    def operands(self):
        """Numbers of the sources that are read beside X: weights, table and addend."""
        added = None if self.addition is None else self.addition.source
        return tuple(number for number in (self.weight_source, self.table_source, added) if number is not None)

    def renumbered(self, number, other=None):
        """The part with new numbers of sources: ``number`` maps that of X, ``other`` those of operands."""
        other = other or number
        addition = self.addition and replace(self.addition, source=other(self.addition.source))
        weights, table = (None if each is None else other(each) for each in (self.weight_source, self.table_source))
        return replace(self, source=number(self.source), weight_source=weights, table_source=table, addition=addition)

    def input_rows(self, rows, height):
        """Rows of a source of ``height`` rows that this part needs for output ``rows``; at least one."""
        first, last = max(rows[0], self.rows[0]), min(rows[1], self.rows[1])
        return reach(first, last, self.kernel[0], self.stride[0], self.dilation[0], self.origin[0], height)

    @property
    def weight_rows(self):
        """Arguments of :func:`reach` for rows of the source of weights, whatever the output rows are; or none."""
        if self.weight_source is None or self.operation.lanes:
            return ()
        return self.out_channels[1], 0, 1, -self.weight_start[0]

    def macs(self, points):
        """Multiplications of a number of output points."""
        if self.weights is None and not self.weight_rows:
            return 0
        if self.counted is not None:
            return points * self.out_channels[1] * self.counted
        taps = self.kernel[0] * self.kernel[1]
        deep = self.channels[1] if self.operation == ConvOperation.CONVOLUTION else 1
        return points * self.out_channels[1] * taps * deep


def reach(first, last, taps, step, apart, before, size):
    """Input rows, or columns, of ``size`` that outputs ``first`` to ``last`` - 1 need: first and end, at least one."""
    low = first * step - before
    high = (last - 1) * step - before + (taps - 1) * apart + 1
    low, high = min(max(low, 0), size - 1), min(max(high, 1), size)
    return (low, high) if low < high else (low, low + 1)


@dataclass(frozen=True, eq=False)
class Layer:
    """The jobs that write one tensor.

    Attributes
    ----------
    name, operator : str
        As in the model.
    output : Place
    sources : tuple of Place
    parts : tuple of Part
        Together they write every element of the output, once unless it is added to.
    moves : tuple of Move
        Instead of ``parts``.
    kernel : Kernel or None
        The same.
    first : Layer or None
        The layer that makes source 0, which then lies in shared memory alone, as many rows as are needed at a time. The
        sources of ``first`` come after source 0.
    sums : Layer or None
        A layer that adds up the output, each band while it lies in shared memory, where the sums stay.
    """

    name: str
    operator: str
    output: Place
    sources: tuple[Place, ...]
    parts: tuple[Part, ...] = ()
    moves: tuple[Move, ...] = ()
    kernel: Kernel | None = None
    first: "Layer | None" = None
    sums: "Layer | None" = None

    @cached_property
    def stages(self):
        """All parts in order, each with the layer whose sources and output it has."""
        own = tuple((self, part) for part in self.parts)
        return (*(self.first.stages if self.first else ()), *own, *(self.sums.stages if self.sums else ()))

    @property
    def rows_of_sum(self):
        """Rows of the output that a row of ``sums`` adds up."""
        (part,), (lines,) = self.sums.parts, self.sums.sources
        return part.kernel[0] * lines.width * lines.channels // (self.output.width * self.output.channels)

    @cached_property
    def kinds(self):
        """For each of ``stages`` the number of the first one whose jobs cost the same."""
        firsts = {}
        return tuple(firsts.setdefault((stage is self, stage is self.sums, *part.shape), number)
                     for number, (stage, part) in enumerate(self.stages))  # fmt: skip

    @cached_property
    def windows(self):
        """Everything that decides which rows of sources are needed: windows of the parts, and of ``first``.

        A window is (source, rows of the output), and for X the other arguments of :func:`reach`. The second element is
        (number of sources, windows) of ``first``, or None.
        """
        windows = {}
        for part in self.parts:
            if not part.blind:
                window = part.kernel[0], part.stride[0], part.dilation[0], part.origin[0]
                windows[part.source, part.rows, *window, self.sources[part.source].height] = None
            for number in part.operands:
                height = self.sources[number].height
                alone = (1, 0, 1, 0) if height == 1 < self.output.height else ()
                window = part.weight_rows if number == part.weight_source else ()
                window = window or alone
                windows[number, part.rows, *window, *((height,) if window else ())] = None
        return (*windows,), self.first and (len(self.first.sources), self.first.windows)

    @cached_property
    def made_rows(self):
        """Rows of the output that parts make, each once: whether the part is of this layer, and its rows."""
        stages = (each for each in self.stages if each[0] is not self.sums)
        return tuple(dict.fromkeys((stage is self, part.rows) for stage, part in stages))

    @property
    def computed_weights(self):
        """Sources whose rows are weights of convolutions."""
        return {self.sources[part.weight_source] for part in self.parts if part.weight_rows}

    @property
    def brought(self):
        """Sources that no other stage of the layer makes."""
        return self.sources[1:] if self.first else self.sources

    @property
    def macs(self):
        """Multiplications."""
        points = ((part, (part.rows[1] - part.rows[0]) * (part.columns[1] - part.columns[0])) for part in self.parts)
        own = self.output.batch * sum(part.macs(count) for part, count in points)
        return own + (self.first.macs if self.first else 0)
