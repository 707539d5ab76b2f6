"""Which commands hardware without some features refuses for that (docs/tmau.md, "Features")."""

from tilewright.spec import FORMATS, LANES, Error, Opcode

from .block import check_block
from .checks import check_command
from .descriptor import check_word
from .lanes import check_lanes
from .tensor_map import TensorMap

__all__ = ["is_unsupported"]

_SMEM_BYTES = 1 << 20


def is_unsupported(fields, descriptor, features):
    """Whether hardware with these features answers a command with UNSUPPORTED, if no other rule is broken.

    Parameters
    ----------
    fields : dict
        Of the command's format, with the opcode; those left out are zero.
    descriptor : bytes or None
        Packed, of a command on a tensor.
    features : sequence of str
        Of ``spec.tmau_registers.FEATURES``.
    """
    fmt = FORMATS.get(fields["opcode"])
    if fmt is None:
        return False
    refusals = _refusals(fmt.unpack(fmt.pack(**fields)), fmt, descriptor, {"features": features})
    return any(refusal and refusal.code == Error.UNSUPPORTED for refusal in refusals)


def _refusals(command, fmt, descriptor, rest):
    yield check_command(command, None, _SMEM_BYTES, **rest)
    if command["opcode"] in (Opcode.COPY_BLOCK, Opcode.PREFETCH_BLOCK):
        yield check_block(command, _SMEM_BYTES, **rest)
    if fmt is LANES:
        yield check_lanes(command, _SMEM_BYTES, **rest)
    if descriptor:
        refusal = check_word(int.from_bytes(descriptor, "little"), rest["features"])
        yield refusal or check_command(command, TensorMap.unpack(descriptor), _SMEM_BYTES, **rest)
