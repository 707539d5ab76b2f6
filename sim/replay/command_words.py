"""Bus words that a command must move: what its cycles are measured against."""

import math

from tilewright.golden import CommandError, limits
from tilewright.golden.spec import LaneLayout, Opcode, Space

__all__ = ["needed_words"]


def needed_words(opcode, tmap, fields, bus_bytes, addr_width):
    """Distinct bus words that a command must read and must write, as a pair; none of one that is refused.

    Parameters
    ----------
    opcode : Opcode
    tmap : TensorMap or None
        Of a command on a tensor.
    fields : dict
        Of the command; what is left out is zero.
    bus_bytes, addr_width : int
        Of the hardware.
    """
    if opcode in (Opcode.LOAD, Opcode.STORE, Opcode.REDUCE):
        offsets = fields.get("offsets", ())
        coords = fields["coords"][: tmap.rank]
        try:
            words = limits(tmap, coords, bus_bytes, fields.get("smem", 0), addr_width, offsets).words
        except CommandError:
            return 0, 0
        return words * (opcode != Opcode.STORE), words * (opcode != Opcode.LOAD)
    if opcode == Opcode.LANES:
        size = math.prod(fields["shape"]) * fields["element"].bytes
        return tuple(
            _words(fields[side], size, bus_bytes) * (fields[f"{side}_layout"] == LaneLayout.GLOBAL)
            for side in ("source", "destination")
        )
    if opcode == Opcode.COPY_BLOCK:
        reads, writes = (_span(fields, side, bus_bytes) for side in ("source", "destination"))
        return reads + writes * bool(fields.get("reduction")), writes
    return 0, 0


def _span(fields, side, bus_bytes):
    """Bus words of one side of a block: none in shared memory."""
    if fields[f"{side}_space"] == Space.SHARED or not fields["size"]:
        return 0
    return _words(fields[side], fields["size"], bus_bytes)


def _words(first, size, bus_bytes):
    return (first + size - 1) // bus_bytes - first // bus_bytes + 1
