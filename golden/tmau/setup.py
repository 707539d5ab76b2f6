"""What setup refuses: the rules of a command on a good descriptor (tmau.md section 9)."""

from ..spec import COMMAND, COMMAND_FIELD, Error, Opcode
from .descriptor import Refusal
from .tile import footprint

__all__ = ["check_command"]


def check_command(command, tmap, smem_bytes):
    """What hardware must report for a command: a :class:`Refusal`, or None if it can run.

    Parameters
    ----------
    command : dict
        Fields of ``COMMAND``, as its ``unpack`` gives them.
    tmap : TensorMap or None
        The descriptor, itself without fault. None checks only what needs none, which comes first.
    smem_bytes : int
        Size of shared memory.
    """
    for code, field, broken, value in _command_rules(command, tmap, smem_bytes):
        if broken:
            return Refusal(code, COMMAND_FIELD + COMMAND.index(field), COMMAND[field].encode(value))
    return None


def _command_rules(command, tmap, smem_bytes):
    """Yields (code, field, broken, value) in order of code."""
    opcode, descriptor = command["opcode"], command["descriptor"]
    yield Error.OPCODE, "opcode", opcode not in list(Opcode), opcode
    yield Error.DESCRIPTOR_ALIGNMENT, "descriptor", opcode != Opcode.INVALIDATE_ALL and descriptor % 64 != 0, descriptor
    if opcode != Opcode.LOAD or tmap is None:
        return
    for coord in command["coords"][tmap.rank :]:
        yield Error.COORDS, "coords", coord != 0, coord
    smem, barrier = command["smem"], command["barrier"]
    yield Error.SMEM_ALIGNMENT, "smem", smem % 128 != 0, smem
    yield Error.SMEM_RANGE, "smem", smem + footprint(tmap) > smem_bytes, smem
    if command["signal"]:
        yield Error.BARRIER_ALIGNMENT, "barrier", barrier % 8 != 0, barrier
        yield Error.BARRIER_RANGE, "barrier", barrier + 8 > smem_bytes, barrier
