"""Where the tensors of a job lie: shapes, spans and strides, from its fields (docs/conv.md, "Memory", "Checks")."""

from typing import NamedTuple

import numpy as np

from tilewright.spec import BARRIER
from tilewright.spec.conv import CHANNEL_BYTES, JOB, JOB_VERSION, ConvError, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType

from .shape import ConvShape

__all__ = ["Part", "Refused", "barriers_of", "check_job", "parts_of", "result_bytes", "shape_of"]

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


_RESERVED = JOB.reserved_mask
_INFINITE = 0x7F800000


class Refused(NamedTuple):
    """A rule that a job breaks: its code, and the name of the field."""

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
    refused = _check_kind(word, fields, params) or _check_values(fields, params)
    return refused or _check_places(fields, parts_of(fields), smem_bytes)


def _check_kind(word, fields, params):
    """Until it is known what the job is."""
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
    if fields["output"] not in set(ConvOutput):
        return Refused(ConvError.OUTPUT, "output")
    output = ConvOutput(fields["output"])
    maximum = fields["operation"] == ConvOperation.MAX_POOL
    unfit = output.quantised if kind.is_float else output.half
    if unfit or maximum != (output == ConvOutput.ELEMENT):
        return Refused(ConvError.OUTPUT, "output")
    return None


def _check_values(fields, params):
    """Numbers that are not places."""
    operation, output, kind = ConvOperation(fields["operation"]), ConvOutput(fields["output"]), MmType(fields["type"])
    for name in () if kind.is_float else _zero_points(operation):
        if fields[name] >> 8 * kind.bytes:
            return Refused(ConvError.ZERO, name)
    if output.quantised:
        for low, high in (("minimum", "maximum"), ("add_minimum", "add_maximum"))[: 1 + fields["add"]]:
            # The sign bit of s8 turned, so that the order is that of unsigned numbers.
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


def _check_places(fields, parts, smem_bytes):
    """Addresses and pitches of all ``parts``."""
    for name, part in parts.items():
        if part.address % part.unit:
            return Refused(ConvError.ALIGNMENT, name)
    for name in ("x", "k", "y", "addend"):
        part = parts.get(name)
        if part and any(pitch % part.unit for pitch in part.pitches):
            return Refused(ConvError.ALIGNMENT, f"{name}_pitch")
    made, room = parts["y"], parts["y"].row_bytes
    for count, pitch in zip(made.shape[-2::-1], made.pitches[::-1], strict=True):
        if count > 1 and pitch < room:
            return Refused(ConvError.PITCH, "y_pitch")
        room += (count - 1) * pitch
    for name, part in parts.items():
        if part.end > smem_bytes:
            return Refused(ConvError.RANGE, name)
    for name in ("x", "k", "table", "addend"):
        part = parts.get(name)
        in_place = name == "addend" and part == made
        if part and part.address < made.end and made.address < part.end and not in_place:
            return Refused(ConvError.OVERLAP, name)
    return None
