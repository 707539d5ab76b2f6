"""How much shared memory the commands of a replay case ask for, and how much hardware has for them."""

from math import inf

from tilewright.golden import TensorMap
from tilewright.golden.spec import DESCRIPTOR, Opcode, Space
from tilewright.golden.spec.tmau.features import FEATURES
from tilewright.golden.tmau.descriptor import check_word
from tilewright.golden.tmau.tile import footprint

__all__ = ["hardware_bytes", "shared_reach"]

#: The smallest shared memory of hardware.
_LEAST = 1024


def shared_reach(case):
    """First address in shared memory that no command asks for; infinite if its size decides what a command means."""
    reach, words = 0, {name: spec.word for name, spec in case.maps.items()}
    for command in case.commands:
        if command.opcode == Opcode.LANES:
            return inf
        for fields in command.issues:
            if command.opcode == Opcode.REPLACE:
                words[command.map] = _replaced(words[command.map], **fields)
            wanted = _footprint(words[command.map]) if "smem" in fields else None
            if wanted is not None:
                reach = max(reach, fields["smem"] + wanted)
            if command.opcode == Opcode.COPY_BLOCK:
                shared = [fields[side] for side in ("source", "destination") if fields[f"{side}_space"] == Space.SHARED]
                reach = max(reach, fields["size"] + max(shared, default=0))
    return reach


def _replaced(word, field, index, value, **_):
    """A descriptor, an int, with another value in a field; as it is if there is no such field."""
    if field >= len(DESCRIPTOR.fields) or index >= len(DESCRIPTOR.fields[field].lsbs):
        return word
    lsb, width = DESCRIPTOR.fields[field].lsbs[index], DESCRIPTOR.fields[field].width
    return word if value >> width else word & ~((1 << width) - 1 << lsb) | value << lsb


def _footprint(word):
    """Bytes that a command on a descriptor asks for; None if it is refused."""
    if word is None or check_word(word, tuple(FEATURES)):
        return None
    return footprint(TensorMap.unpack(word.to_bytes(DESCRIPTOR.bytes, "little")))


def hardware_bytes(case):
    """Bytes of the smallest shared memory of hardware that no command tells from the case's; if one can, the case's."""
    size = case.smem.size
    return max(1 << (size - 1).bit_length(), _LEAST) if shared_reach(case) <= size else size
