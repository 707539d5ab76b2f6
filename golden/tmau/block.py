"""Copies of blocks of bytes as calls (docs/tmau.md, "Block copies")."""

import math

from ..arguments import integer, member
from ..memory import check_global, check_shared
from ..spec import BLOCK, Element, Error, Opcode, Reduction, Space
from ..spec.fields import spoken
from .calls import CommandError
from .copy import check_block, run_block

__all__ = ["block_command", "copy_block", "prefetch_block", "prefetch_block_command", "refuse_block"]

_ADDR_WIDTH = 64


def copy_block(source, destination, size, gmem=None, smem=None, source_space="global", destination_space="shared",
               reduction="none", element="u8"):  # fmt: skip
    """Copies a block of bytes within or between memories, and returns the memory that it was copied to.

    Parameters
    ----------
    source, destination : int
        Byte addresses, multiples of 16.
    size : int
        Bytes, a multiple of 16, at most the size of shared memory.
    gmem : Memory or None
        Global memory, which must be given if one of the spaces is ``"global"``.
    smem : uint8 array or None
        Shared memory, which must be given if one of the spaces is ``"shared"``.
    source_space, destination_space : Space or str
        ``"global"`` or ``"shared"``.
    reduction : Reduction or str
        What becomes of the destination.
    element : Element or str
        Of a reduction.

    Returns
    -------
    Memory or uint8 array
        ``gmem`` or ``smem``, changed in place.

    Raises
    ------
    CommandError
        If hardware would refuse the command.
    TypeError, ValueError
        If an argument is of the wrong kind, or no command could hold it.
    IndexError
        If ``gmem`` does not hold what is read.
    """
    command = block_command(source, destination, size, source_space, destination_space, reduction, element)
    spaces = {command["source_space"], command["destination_space"]}
    if Space.GLOBAL in spaces:
        check_global(gmem)
    if Space.SHARED in spaces:
        check_shared(smem, written=command["destination_space"] == Space.SHARED)
    refuse_block(command, len(smem) if Space.SHARED in spaces else math.inf)
    run_block(command, gmem, smem, _ADDR_WIDTH)
    return smem if command["destination_space"] == Space.SHARED else gmem


def prefetch_block(source, size):
    """Checks a block in global memory as a PREFETCH_BLOCK does, and moves nothing; errors are those of the copy."""
    refuse_block(prefetch_block_command(source, size), math.inf)


def block_command(source, destination, size, source_space, destination_space, reduction, element):
    """Fields of a COPY_BLOCK; ValueError or TypeError if no command has them."""
    return _addresses(source=source, destination=destination, size=size) | {
        "opcode": Opcode.COPY_BLOCK,
        "source_space": member("source_space", Space, source_space),
        "destination_space": member("destination_space", Space, destination_space),
        "reduction": member("reduction", Reduction, reduction),
        "element": member("element", Element, element),
    }


def prefetch_block_command(source, size):
    """The same of a PREFETCH_BLOCK."""
    return _addresses(source=source, size=size) | {"opcode": Opcode.PREFETCH_BLOCK}


def refuse_block(command, smem_bytes):
    """Raises ``CommandError`` if hardware with so many bytes of shared memory would refuse a call's command."""
    refusal = check_block({"signal": 0, "reduction": 0} | command, smem_bytes)
    if refusal:
        raise CommandError(refusal, BLOCK, _sentence(refusal, command, smem_bytes))


def _addresses(**values):
    return {name: integer(name, value, *BLOCK[name].range) for name, value in values.items()}


def _sentence(refusal, command, smem_bytes):
    """What is wrong with a command that is refused."""
    error = CommandError(refusal, BLOCK, "")
    value = f"{error.value:#x}"
    match error.code:
        case Error.BLOCK_ALIGNMENT:
            return f"{error.field} must be a multiple of 16, not {error.value}"
        case Error.BLOCK_RANGE:
            return f"{error.field} {value} puts the end of the block past the {smem_bytes} bytes of smem"
        case Error.OVERLAP:
            return (
                f"destination {value} must not be in the {command['size']} bytes of the source, {command['source']:#x}"
            )
        case Error.REDUCTION:
            return f"reduction {spoken(command['reduction'])} is not defined for {spoken(command['element'])}"
