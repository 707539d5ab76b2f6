"""Jobs of the convolution engine: tensors in shared memory, and the rules of docs/conv.md ("Memory", "Checks")."""

from typing import NamedTuple

import numpy as np

from tilewright.spec import BARRIER
from tilewright.spec.conv import (
    CHANNEL_BYTES,
    FUNCTION_ALIGNMENT,
    FUNCTION_BYTES,
    JOB,
    JOB_VERSION,
    ConvError,
    ConvOperation,
    ConvOutput,
)
from tilewright.spec.pe import MmType

from .shape import SIZES, ConvShape

__all__ = ["Part", "Refused", "barriers_of", "check_job", "parts_of", "result_bytes", "shape_of"]

_RESULT_BYTES = {ConvOutput.RAW: 4, ConvOutput.U8: 1, ConvOutput.S8: 1, ConvOutput.F16: 2, ConvOutput.BF16: 2}
_RESERVED = JOB.reserved_mask
_INFINITE = 0x7F800000


class Part(NamedTuple):
    """A tensor in shared memory; dimensions begin with the outermost, and elements of the innermost adjoin.

    Attributes
    ----------
    address : int
    unit : int
        Addresses and pitches must be multiples of it.
    shape, pitches : tuple of int
        Indices of each dimension, and bytes between two of them.
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
        """Bytes from the first to the last."""
        outer = zip(self.shape[:-1], self.pitches, strict=True)
        return self.row_bytes + sum((count - 1) * pitch for count, pitch in outer)

    @property
    def end(self):
        """Address after the last byte."""
        return self.address + self.span

    def view(self, smem, dtype):
        """The tensor in ``smem`` as an array of ``dtype``, without a copy."""
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
        **{name: fields[name] for name in SIZES},
        **{name: tuple(fields[name]) for name in ("kernel", "stride", "dilation", "padding")},
        operation=ConvOperation(fields["operation"]),
        element_bytes=element,
        result_bytes=result_bytes(fields),
        adjoin=fields["x_pitch"][0] == fields["channels"] * element,
        table="table" in parts_of(fields),
        add="addend" in parts_of(fields),
        function="function_table" in parts_of(fields),
    )


def barriers_of(fields):
    """Addresses of the barriers at which a job arrives: at its end, and when its K has been read."""
    early = fields["early"] and fields["operation"] == ConvOperation.CONVOLUTION
    return tuple(fields["barrier"] + BARRIER.bytes * number for number in range(1 + early)) if fields["signal"] else ()


def parts_of(fields):
    """The shared memory of a job: a :class:`Part` for each field with an address, in the order of checks."""
    operation, output = ConvOperation(fields["operation"]), ConvOutput(fields["output"])
    element, result = MmType(fields["type"]).bytes, result_bytes(fields)
    batch, channels, out_channels = fields["batch"], fields["channels"], fields["out_channels"]
    taps = fields["kernel"][0] * fields["kernel"][1]
    result_shape = (batch, fields["out_height"], fields["out_width"], out_channels)
    parts = {}
    if barriers := barriers_of(fields):
        parts["barrier"] = Part(barriers[0], BARRIER.bytes, (len(barriers),), (), BARRIER.bytes)
    x_shape = (batch, fields["height"], fields["width"], channels)
    parts["x"] = Part(fields["x"], element, x_shape, tuple(fields["x_pitch"][::-1]), element)
    if operation == ConvOperation.CONVOLUTION:
        shape = (out_channels, taps * channels)
        parts["k"] = Part(fields["k"], element, shape, (fields["k_pitch"],), element)
    elif operation == ConvOperation.DEPTHWISE:
        parts["k"] = Part(fields["k"], element, (taps, channels), (fields["k_pitch"],), element)
    if output.quantised or (fields["bias"] and operation != ConvOperation.MAX_POOL):
        parts["table"] = Part(fields["table"], CHANNEL_BYTES, (2 * out_channels,), (), CHANNEL_BYTES // 2)
    results = ("y", "addend") if output.quantised and fields["add"] else ("y",)
    for name in results:
        parts[name] = Part(fields[name], result, result_shape, tuple(fields[f"{name}_pitch"][::-1]), result)
    if fields["function"]:
        parts["function_table"] = Part(fields["function_table"], FUNCTION_ALIGNMENT, (FUNCTION_BYTES,), (), 1)
    return parts


class Refused(NamedTuple):
    """A broken rule: its code, and the name of the field."""

    code: ConvError
    field: str


def check_job(word, params, smem_bytes):
    """The first rule that a packed job breaks, as a :class:`Refused`, or None.

    Parameters
    ----------
    word : int
    params : ConvParams
    smem_bytes : int
        Bytes of shared memory.
    """
    fields = JOB.unpack(word)
    return (
        _check_kind(word, fields, params)
        or _check_values(fields, params)
        or _check_places(parts_of(fields), smem_bytes)
    )


def _check_kind(word, fields, params):
    """Rules on the fields that decide the meaning of the others."""
    if fields["version"] != JOB_VERSION:
        return Refused(ConvError.VERSION, "version")
    if word & _RESERVED:
        return Refused(ConvError.RESERVED, JOB.fields[0].name)
    if fields["operation"] not in set(ConvOperation):
        return Refused(ConvError.OPERATION, "operation")
    if fields["type"] not in set(MmType):
        return Refused(ConvError.TYPE, "type")
    kind = MmType(fields["type"])
    if kind.family not in params.types:
        return Refused(ConvError.UNSUPPORTED, "type")
    for name, built in (("function", params.function_table), ("zero_first", params.zero_first)):
        if fields[name] and not built:
            return Refused(ConvError.UNSUPPORTED, name)
    if fields["output"] not in set(ConvOutput):
        return Refused(ConvError.OUTPUT, "output")
    output = ConvOutput(fields["output"])
    maximum = fields["operation"] == ConvOperation.MAX_POOL
    misfit = output.quantised if kind.is_float else output.half
    if misfit or maximum != (output == ConvOutput.ELEMENT):
        return Refused(ConvError.OUTPUT, "output")
    if fields["function"] and not (output.quantised or (maximum and kind.bytes == 1)):
        return Refused(ConvError.OUTPUT, "function")
    return None


def _check_values(fields, params):
    """Rules on all numbers but addresses and pitches."""
    operation, output, kind = ConvOperation(fields["operation"]), ConvOutput(fields["output"]), MmType(fields["type"])
    for name in () if kind.is_float else _zero_points(operation):
        if fields[name] >> 8 * kind.bytes:
            return Refused(ConvError.ZERO, name)
    if output.quantised:
        for low, high in (("minimum", "maximum"), ("add_minimum", "add_maximum"))[: 1 + fields["add"]]:
            # With an inverted sign bit, s8 has the order of unsigned numbers.
            sign = 0x80 if output == ConvOutput.S8 else 0
            if fields[low] ^ sign > fields[high] ^ sign:
                return Refused(ConvError.CLAMP, low)
        factors = [("ratio", value) for value in fields["ratio"]] + [("offset", fields["offset"])]
        for name, bits in factors if fields["add"] else ():
            if bits & _INFINITE == _INFINITE:
                return Refused(ConvError.FACTOR, name)
    adjoin = fields["x_pitch"][0] == fields["channels"] * kind.bytes
    if fields["merge"] != 1 and (operation.lanes or fields["dilation"][0] != 1 or not adjoin):
        return Refused(ConvError.MERGE, "merge")
    block = 1 << fields["granularity"]
    if not max(params.row_bytes // 16, kind.bytes) <= block <= params.row_bytes:
        return Refused(ConvError.GRANULARITY, "granularity")
    if operation.lanes and fields["out_channels"] != fields["channels"]:
        return Refused(ConvError.CHANNELS, "out_channels")
    return None


def _zero_points(operation):
    if operation == ConvOperation.MAX_POOL:
        return ()
    return ("x_zero",) if operation == ConvOperation.SUM_POOL else ("x_zero", "k_zero")


def _check_places(parts, smem_bytes):
    """Rules on addresses and pitches."""
    for name, part in parts.items():
        if part.address % part.unit:
            return Refused(ConvError.ALIGNMENT, name)
    for name in ("x", "k", "y", "addend"):
        part = parts.get(name)
        if part and any(pitch % part.unit for pitch in part.pitches):
            return Refused(ConvError.ALIGNMENT, f"{name}_pitch")
    y, room = parts["y"], parts["y"].row_bytes
    for count, pitch in zip(y.shape[-2::-1], y.pitches[::-1], strict=True):
        if count > 1 and pitch < room:
            return Refused(ConvError.PITCH, "y_pitch")
        room += (count - 1) * pitch
    for name, part in parts.items():
        if part.end > smem_bytes:
            return Refused(ConvError.RANGE, name)
    for name in ("x", "k", "table", "addend", "function_table"):
        part = parts.get(name)
        in_place = name == "addend" and part == y
        if part and part.address < y.end and y.address < part.end and not in_place:
            return Refused(ConvError.OVERLAP, name)
    return None
