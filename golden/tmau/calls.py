"""Transfers as calls: the command that a call with coordinates stands for, checked as hardware checks it.

The golden model and the sessions make their commands here, and so refuse the same with the same words.
"""

import math

import numpy as np

from ..arguments import integer, integers, member, shown
from ..spec import COMMAND, COMMAND_FIELD, DESCRIPTOR, Error, Mode, Opcode, Reduction
from ..spec.fields import spoken
from .descriptor import SPATIAL_BITS
from .im2col import bounding_box, spatial_dimensions
from .setup import check_command
from .tensor_map import check_map
from .tile import coordinates, footprint

__all__ = [
    "CommandError",
    "legal_offsets",
    "load_command",
    "prefetch_command",
    "refuse_tensor",
    "store_command",
    "tensor_fields",
]

_RANK_MAX = COMMAND["coords"].count
_ADDRESS_MAX = COMMAND["smem"].range[1]


class CommandError(ValueError):
    """A command breaks a rule of docs/tmau.md, "Errors".

    Attributes
    ----------
    refusal : Refusal
        What hardware reports for it, without the tag, and the value.
    code : golden.spec.Error
    field : str
        Name in the command's format or, of a rule about the map, in ``golden.spec.DESCRIPTOR``.
    value : int
        The offending number as stored.
    """

    def __init__(self, refusal, fmt, sentence):
        super().__init__(sentence)
        self.refusal = refusal
        self.code, number, self.value = refusal
        owner, first = (fmt, COMMAND_FIELD) if number >= COMMAND_FIELD else (DESCRIPTOR, 0)
        self.field = owner.fields[number - first].name


def load_command(tmap, coords, address=0, offsets=(0, 0, 0)):
    """Fields of the LOAD of a map; ValueError or TypeError if no command has them."""
    return tensor_fields(tmap, coords, address, offsets) | {"opcode": Opcode.LOAD}


def prefetch_command(tmap, coords, offsets=(0, 0, 0)):
    """The same of a PREFETCH."""
    return tensor_fields(tmap, coords, 0, offsets) | {"opcode": Opcode.PREFETCH}


def store_command(tmap, coords, address=0, reduction=Reduction.NONE, fill=False):
    """The same of a STORE, or with a reduction of a REDUCE."""
    if not isinstance(fill, (bool, np.bool_)):
        raise TypeError(f"fill must be True or False, not {shown(fill)}")
    reduction = member("reduction", Reduction, reduction)
    opcode = Opcode.REDUCE if reduction else Opcode.STORE
    fields = tensor_fields(tmap, coords, address, (0, 0, 0))
    return fields | {"opcode": opcode, "reduction": reduction, "fill": int(fill)}


def tensor_fields(tmap, coords, address, offsets):
    """Coordinates, address and offsets as a command has them, one for each place in it."""
    check_map(tmap)
    coords = coordinates(tmap, coords)
    offsets = integers("offsets", offsets)
    places = COMMAND["offsets"].count
    if len(offsets) > places:
        raise ValueError(f"offsets must have at most {places} entries, W H D, not {len(offsets)}")
    low, high = COMMAND["offsets"].range
    for offset in offsets:
        integer("offsets", offset, low, high)
    return {
        "coords": coords + (0,) * (_RANK_MAX - len(coords)),
        "smem": integer("address", address, 0, _ADDRESS_MAX),
        "offsets": offsets + (0,) * (places - len(offsets)),
    }


def legal_offsets(tmap, offsets):
    """``offsets`` for W, H and D, if a load of ``tmap`` can have them; :class:`CommandError` otherwise."""
    check_map(tmap)
    start = [0] * tmap.rank
    if tmap.mode == Mode.IM2COL:
        for d, low in zip(spatial_dimensions(tmap), tmap.lower, strict=True):
            start[d] = low
    command = prefetch_command(tmap, start, offsets)
    refuse_tensor(command, tmap, math.inf)
    return command["offsets"]


def refuse_tensor(command, tmap, smem_bytes):
    """Raises :class:`CommandError` if hardware with so many bytes of shared memory would refuse a call's command."""
    unused = {"signal": 0, "barrier": 0, "fill": 0, "reduction": 0}
    refusal = check_command(unused | command, tmap, smem_bytes)
    if refusal:
        raise CommandError(refusal, COMMAND, _sentence(refusal.code, command, tmap, smem_bytes))


def _sentence(code, command, tmap, smem_bytes):
    """What is wrong with a command that is refused for ``code``."""
    coords, address, offsets = command["coords"][: tmap.rank], command["smem"], command["offsets"]
    match code:
        case Error.CORNER:
            corners = f"not {tmap.lower} and {tmap.upper}"
            return f"the map of a store must have lower corners from 0 up and upper ones from 0 down, {corners}"
        case Error.COORDS:
            return f"coords must not be negative in a store, as in {coords}"
        case Error.START:
            low, high = bounding_box(tmap)
            start = tuple(coords[d] for d in spatial_dimensions(tmap))
            return f"coords must start the walk inside its bounding box, from {low} to before {high}, not at {start}"
        case Error.SMEM_ALIGNMENT:
            return f"address must be a multiple of 128, not {address}"
        case Error.SMEM_RANGE:
            end = (0 if command.get("fill") else address) + footprint(tmap)
            return f"address {address} puts the end of the box at {end}, past the {smem_bytes} bytes of smem"
        case Error.OFFSETS if tmap.mode == Mode.TILE:
            return f"offsets must be zero in tile mode, not {offsets}"
        case Error.OFFSETS:
            spatial = tmap.rank - 2
            most = (1 << SPATIAL_BITS[spatial]) - 1
            return f"offsets must be 0 to {most} in {' '.join('WHD'[:spatial])}, and no more than these, not {offsets}"
        case Error.REDUCTION:
            return f"reduction {spoken(command['reduction'])} is not defined for {spoken(tmap.element)}"
