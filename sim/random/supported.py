"""Which commands hardware without some features refuses for that (docs/tmau.md, "Features")."""

from tilewright.golden import TensorMap
from tilewright.golden.spec import COMMAND, FORMATS, LANES, Error, Opcode
from tilewright.golden.tmau.copy import check_block
from tilewright.golden.tmau.descriptor import check_word
from tilewright.golden.tmau.lanes import check_lanes
from tilewright.golden.tmau.setup import check_command

__all__ = ["is_unsupported"]

_SMEM_BYTES = 1 << 20


def is_unsupported(order, features):
    """Whether hardware with these features answers an ``Order`` with UNSUPPORTED."""
    return any(refusal and refusal.code == Error.UNSUPPORTED for refusal in _refusals(order, features))


def _refusals(order, features):
    fmt = FORMATS.get(order.fields["opcode"], COMMAND)
    command = fmt.unpack(fmt.pack(**order.fields))
    rest = {"features": features}
    yield check_command(command, None, _SMEM_BYTES, **rest)
    if command["opcode"] in (Opcode.COPY_BLOCK, Opcode.PREFETCH_BLOCK):
        yield check_block(command, _SMEM_BYTES, **rest)
    if fmt is LANES:
        yield check_lanes(command, _SMEM_BYTES, **rest)
    descriptor = order.descriptor(0)
    if descriptor:
        refusal = check_word(int.from_bytes(descriptor, "little"), features)
        yield refusal or check_command(command, TensorMap.unpack(descriptor), _SMEM_BYTES, **rest)
