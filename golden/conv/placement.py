"""Where the tensors of a job lie: shapes, spans and strides, from its fields (docs/conv.md, "Memory", "Checks")."""

from typing import NamedTuple

import numpy as np

from ..spec import BARRIER
from ..spec.conv.job import CHANNEL_BYTES, ConvOperation, ConvOutput
from ..spec.pe.instruction import MmType
from .shape import ConvShape

__all__ = ["Part", "barriers_of", "parts_of", "result_bytes", "shape_of"]

_RESULT_BYTES = {ConvOutput.RAW: 4, ConvOutput.U8: 1, ConvOutput.S8: 1, ConvOutput.F16: 2, ConvOutput.BF16: 2}


class Part(NamedTuple):
    """A tensor in shared memory; dimensions from the outermost to the innermost, whose elements adjoin.

    Attributes
    ----------
    address : int
    unit : int
        What addresses and pitches must be multiples of.
    shape, pitches : tuple of int
        Indices of each dimension, and bytes from one to the next.
    item : int
        Bytes of an element.
    """

    address: int
    unit: int
    shape: tuple[int, ...]
    pitches: tuple[int, ...]
    item: int

    @property
    def row_bytes(self):
        """Bytes of the innermost dimension."""
        return self.shape[-1] * self.item

    @property
    def span(self):
        """Bytes from the first to the last one."""
        outer = zip(self.shape[:-1], self.pitches, strict=True)
        return self.row_bytes + sum((count - 1) * pitch for count, pitch in outer)

    @property
    def end(self):
        """Address behind the last byte."""
        return self.address + self.span

    def view(self, smem, dtype):
        """The tensor as an array of ``dtype``, in the place where it lies."""
        strides = (*self.pitches, self.item)
        return np.ndarray(self.shape, dtype, smem, self.address, strides)


def result_bytes(fields):
    """Bytes of a result."""
    output = ConvOutput(fields["output"])
    return MmType(fields["type"]).bytes if output == ConvOutput.ELEMENT else _RESULT_BYTES[output]


def shape_of(fields):
    """The :class:`ConvShape` of a job that has passed its checks."""
    element = MmType(fields["type"]).bytes
    return ConvShape(
        **{name: fields[name] for name in ("batch", "height", "width", "channels")},
        **{name: fields[name] for name in ("out_channels", "out_height", "out_width")},
        **{name: tuple(fields[name]) for name in ("kernel", "stride", "dilation", "padding")},
        operation=ConvOperation(fields["operation"]),
        element_bytes=element,
        result_bytes=result_bytes(fields),
        adjoin=fields["x_pitch"][0] == fields["channels"] * element,
        table="table" in parts_of(fields),
        add="addend" in parts_of(fields),
    )


def barriers_of(fields):
    """Addresses of the barriers that a job arrives at: when it ends, and when its K has been read."""
    early = fields["early"] and fields["operation"] == ConvOperation.CONVOLUTION
    return tuple(fields["barrier"] + BARRIER.bytes * number for number in range(1 + early)) if fields["signal"] else ()


def parts_of(fields):
    """What a job uses of shared memory: a :class:`Part` for each field with an address, in the order of checks."""
    operation, output = ConvOperation(fields["operation"]), ConvOutput(fields["output"])
    element, result = MmType(fields["type"]).bytes, result_bytes(fields)
    batch, channels, out_channels = fields["batch"], fields["channels"], fields["out_channels"]
    taps = fields["kernel"][0] * fields["kernel"][1]
    made = (batch, fields["out_height"], fields["out_width"], out_channels)
    parts = {}
    if barriers := barriers_of(fields):
        parts["barrier"] = Part(barriers[0], BARRIER.bytes, (len(barriers),), (), BARRIER.bytes)
    given = (batch, fields["height"], fields["width"], channels)
    parts["x"] = Part(fields["x"], element, given, tuple(fields["x_pitch"][::-1]), element)
    if operation == ConvOperation.CONVOLUTION:
        shape = (out_channels, taps * channels)
        parts["k"] = Part(fields["k"], element, shape, (fields["k_pitch"],), element)
    elif operation == ConvOperation.DEPTHWISE:
        parts["k"] = Part(fields["k"], element, (taps, channels), (fields["k_pitch"],), element)
    if output.quantised or (fields["bias"] and operation != ConvOperation.MAX_POOL):
        parts["table"] = Part(fields["table"], CHANNEL_BYTES, (2 * out_channels,), (), CHANNEL_BYTES // 2)
    parts["y"] = Part(fields["y"], result, made, tuple(fields["y_pitch"][::-1]), result)
    if output.quantised and fields["add"]:
        parts["addend"] = Part(fields["addend"], result, made, tuple(fields["addend_pitch"][::-1]), result)
    return parts
