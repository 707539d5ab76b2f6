"""What hardware must report for a descriptor word or a command: the lowest code, then the lowest field."""

from itertools import chain
from typing import NamedTuple

from ..spec import COMMAND, COMMAND_FIELD, DESCRIPTOR, Error, Opcode
from .rules import unsupported
from .tile import footprint
from .word import word_rules, word_values

__all__ = ["Refusal", "check_command", "check_word"]


class Refusal(NamedTuple):
    """An error record without the tag.

    Attributes
    ----------
    code : Error
    field : int
        Number in ``DESCRIPTOR``, or ``COMMAND_FIELD`` plus number in ``COMMAND``.
    value : int
        The offending number as stored, not sign-extended.
    """

    code: Error
    field: int
    value: int


def check_word(word):
    """What hardware must report for any 1024-bit descriptor word on a load: a :class:`Refusal`, or None if it is good.

    Im2col fields are not looked at, because this version refuses the mode as a whole.
    """
    broken = next(chain(word_rules(word), unsupported(word_values(word))), None)
    if broken is None:
        return None
    if broken.code == Error.RESERVED:
        return Refusal(broken.code, 0, 0)
    return Refusal(broken.code, DESCRIPTOR.index(broken.field), DESCRIPTOR[broken.field].encode(int(broken.value)))


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
