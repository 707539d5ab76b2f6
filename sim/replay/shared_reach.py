"""How much shared memory the commands of a replay case ask for, and how much hardware has for them."""

from math import inf

from tilewright.golden.spec import Opcode, Space
from tilewright.golden.tmau.tile import footprint

__all__ = ["hardware_bytes", "shared_reach"]

#: The smallest shared memory of hardware.
_LEAST = 1024


def shared_reach(case):
    """First address in shared memory that no command asks for; infinite if its size decides what a command means."""
    reach = 0
    for command in case.commands:
        if command.opcode == Opcode.LANES:
            return inf
        spec = case.maps.get(command.map)
        for fields in command.issues:
            if "smem" in fields and spec.refused is None:
                reach = max(reach, fields["smem"] + footprint(spec.tmap))
            if command.opcode == Opcode.COPY_BLOCK:
                shared = [fields[side] for side in ("source", "destination") if fields[f"{side}_space"] == Space.SHARED]
                reach = max(reach, fields["size"] + max(shared, default=0))
    return reach


def hardware_bytes(case):
    """Bytes of the smallest shared memory of hardware that no command tells from the case's; if one can, the case's."""
    size = case.smem.size
    return max(1 << (size - 1).bit_length(), _LEAST) if shared_reach(case) <= size else size
