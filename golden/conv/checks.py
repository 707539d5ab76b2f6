"""What the convolution engine refuses: the rules of a job, in the order of the page (docs/conv.md, "Checks")."""

from typing import NamedTuple

from ..spec.conv.errors import ConvError
from ..spec.conv.job import JOB, JOB_VERSION, ConvOperation, ConvOutput
from ..spec.pe.instruction import MmType
from .placement import parts_of

__all__ = ["Refused", "check_job"]

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
