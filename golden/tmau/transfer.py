"""Loads, stores and prefetches of boxes and pixels as calls, checked as hardware checks commands.

Specification: docs/tmau.md, "Tile mode" to "Stores and reductions". Sessions make their commands here too, so they
refuse the same calls with the same sentences.
"""

import math

import numpy as np

from tilewright.spec import COMMAND, COMMAND_FIELD, DESCRIPTOR, NAN_FILL, Element, Error, Fill, Mode, Opcode, Reduction
from tilewright.spec.fields import spoken

from ..arguments import integer, integers, member, shown
from ..memory import Memory, check_global, check_shared, memory_bytes
from .checks import check_command
from .descriptor import SPATIAL_BITS
from .reduce import reduce
from .tensor_map import check_map
from .tile import bounding_box, coordinates, footprint, spatial_dimensions, walk

__all__ = [
    "CommandError", "combine", "legal_offsets", "load", "load_command", "load_tile", "prefetch", "prefetch_command",
    "refuse_tensor", "round_tf32", "store", "store_command", "store_tile", "tensor_fields",
]  # fmt: skip

_RANK_MAX = COMMAND["coords"].count
_ADDRESS_MAX = COMMAND["smem"].range[1]


class CommandError(ValueError):
    """A command breaks a rule of docs/tmau.md, "Errors".

    Attributes
    ----------
    refusal : Refusal
        What hardware reports for it, without the tag, and the value.
    code : spec.Error
    field : str
        Name in the command's format or, for a rule about the map, in ``DESCRIPTOR``.
    value : int
        The offending number as stored.
    """

    def __init__(self, refusal, fmt, sentence):
        super().__init__(sentence)
        self.refusal = refusal
        self.code, number, self.value = refusal
        owner, first = (fmt, COMMAND_FIELD) if number >= COMMAND_FIELD else (DESCRIPTOR, 0)
        self.field = owner.fields[number - first].name


def load(tmap, coords, gmem=None, smem=None, address=0, offsets=(0, 0, 0)):
    """Loads the box of ``tmap`` at ``coords``, or its pixels from there, and returns the shared memory.

    Parameters
    ----------
    tmap : TensorMap
    coords : sequence of int
        Tensor coordinates of the start, innermost first. A box may lie outside the tensor.
    gmem : Memory or None
        Global memory. None: the array that the map was made from.
    smem : uint8 array or None
        Shared memory, changed in place: only bytes of elements are written. None makes one of zeros that ends with the
        last row.
    address : int
        Destination in shared memory, a multiple of 128.
    offsets : sequence of int
        Of the filter tap, W H D; im2col only.

    Returns
    -------
    uint8 array
        ``smem``, one-dimensional.

    Raises
    ------
    CommandError
        If hardware would refuse the command: a ValueError with its error record.
    TypeError, ValueError
        If an argument is of the wrong kind, or no command could hold it.
    IndexError
        If ``gmem`` lacks bytes that are read.
    """
    command = load_command(tmap, coords, address, offsets)
    gmem = _array_memory(tmap) if gmem is None else gmem
    check_global(gmem)
    if smem is None:
        refuse_tensor(command, tmap, math.inf)
        smem = np.zeros(command["smem"] + footprint(tmap), np.uint8)
    check_shared(smem)
    refuse_tensor(command, tmap, len(smem))
    load_tile(tmap, walk(tmap, coords, offsets=command["offsets"]), gmem, command["smem"], smem)
    return smem


def prefetch(tmap, coords, offsets=(0, 0, 0)):
    """Checks a load as a PREFETCH does, and moves nothing; arguments and errors as in :func:`load`."""
    refuse_tensor(prefetch_command(tmap, coords, offsets), tmap, math.inf)


def store(tmap, coords, smem, gmem=None, address=0, reduction="none", fill=False):
    """Stores the box of ``tmap`` at ``coords``, or its pixels from there, and returns the global memory.

    Parameters
    ----------
    tmap : TensorMap
    coords : sequence of int
        Tensor coordinates of the start, innermost first. Elements outside the tensor are dropped.
    smem : uint8 array or None
        Shared memory; None with ``fill``.
    gmem : Memory or None
        Global memory, changed in place. None: the array that the map was made from, which must be writable.
    address : int
        Source in shared memory, a multiple of 128.
    reduction : Reduction or str
        New value of the destination: ``"add"``, ``"min"`` …; ``"none"``: the source.
    fill : bool
        The source is the fill of the map, not shared memory.

    Returns
    -------
    Memory
        ``gmem``.

    Raises
    ------
    CommandError, TypeError, ValueError, IndexError
        As in :func:`load`.
    """
    command = store_command(tmap, coords, address, reduction, fill)
    gmem = _array_memory(tmap) if gmem is None else gmem
    check_global(gmem)
    if not fill:
        check_shared(smem, written=False)
    refuse_tensor(command, tmap, math.inf if fill else len(smem))
    store_tile(tmap, walk(tmap, coords), gmem, smem, command["smem"], command["reduction"], fill=fill)
    return gmem


def load_tile(tmap, tile, gmem, address, smem):
    """Writes the bytes of ``tile`` into ``smem``, fill included."""
    rows = _fill_bytes(tmap, tile.linear_bytes(address))
    data = gmem.at(tile.global_bytes())
    if tmap.element == Element.TF32:
        data = round_tf32(data.view("<u4")).astype("<u4").view(np.uint8)
    rows[tile.inside, tile.start : tile.stop] = data
    smem[tile.shared_bytes(address, tmap.swizzle)] = rows


def store_tile(tmap, tile, gmem, smem, address, reduction=Reduction.NONE, *, fill=False):
    """Writes the bytes of ``tile`` in the tensor, run after run; bytes outside ``gmem`` are lost."""
    targets = tile.global_bytes()
    if fill:
        source = _fill_bytes(tmap, targets)
    else:
        source = smem[tile.shared_bytes(address, tmap.swizzle)][tile.inside, tile.start : tile.stop]
    combine(gmem, targets, source, reduction, tmap.element)


def combine(gmem, targets, source, reduction, element):
    """Writes or reduces ``source`` into ``gmem`` at ``targets``, arrays of runs by bytes; bytes outside are lost.

    Runs may overlap: they are processed in order.
    """
    inside = gmem.holds(targets, 1)
    if reduction == Reduction.NONE:
        gmem.put(targets[inside], source[inside])  # of equal addresses the last one remains
        return
    elements = inside.reshape(len(targets), targets.shape[1] // element.bytes, element.bytes)
    whole = elements.all(axis=2).repeat(element.bytes, axis=1)
    distinct = len(np.unique(targets)) == targets.size
    for runs in [slice(None)] if distinct else range(len(targets)):
        addresses = targets[runs][whole[runs]]
        gmem.put(addresses, reduce(reduction, element, gmem.at(addresses), source[runs][whole[runs]]))


def _array_memory(tmap):
    """Global memory that consists of the array that the map was made from; ValueError without an array."""
    if tmap.array is None:
        raise ValueError("gmem must be given for a map that was not made from an array, not None")
    return Memory(memory_bytes(tmap.array), "the array", base=tmap.address)


def _fill_bytes(tmap, addresses):
    """The fill at each of ``addresses``, whose 32-bit pattern begins at multiples of 4: a uint8 array of this shape."""
    pattern = {Fill.ZERO: 0, Fill.NAN: NAN_FILL, Fill.CONSTANT: tmap.fill_constant}[tmap.fill]
    return np.array([pattern], "<u4").view(np.uint8)[np.asarray(addresses) % 4]


def round_tf32(bits):
    """float32 ``bits`` (uint32) rounded to nearest even to ten mantissa bits; every NaN becomes 0x7FFFE000.

    A carry out of the mantissa increments the exponent, so the largest finite numbers become infinite. Infinities
    remain.
    """
    bits = np.asarray(bits, np.uint32)
    size = bits & 0x7FFFFFFF
    odd = bits >> 13 & 1
    # No finite number overflows 32 bits here: the largest sum is 0xFF7FFFFF + 0x1000.
    rounded = np.where(size < 0x7F800000, bits, 0) + np.uint32(0xFFF) + odd & np.uint32(0xFFFFE000)
    return np.where(size < 0x7F800000, rounded, np.where(size > 0x7F800000, 0x7FFFE000, bits)).astype(np.uint32)


def load_command(tmap, coords, address=0, offsets=(0, 0, 0)):
    """Fields of the LOAD of a map; ValueError or TypeError if no command can have them."""
    return tensor_fields(tmap, coords, address, offsets) | {"opcode": Opcode.LOAD}


def prefetch_command(tmap, coords, offsets=(0, 0, 0)):
    """The same of a PREFETCH."""
    return tensor_fields(tmap, coords, 0, offsets) | {"opcode": Opcode.PREFETCH}


def store_command(tmap, coords, address=0, reduction=Reduction.NONE, fill=False):
    """The same of a STORE or, with a reduction, of a REDUCE."""
    if not isinstance(fill, (bool, np.bool_)):
        raise TypeError(f"fill must be True or False, not {shown(fill)}")
    reduction = member("reduction", Reduction, reduction)
    opcode = Opcode.REDUCE if reduction else Opcode.STORE
    fields = tensor_fields(tmap, coords, address, (0, 0, 0))
    return fields | {"opcode": opcode, "reduction": reduction, "fill": int(fill)}


def tensor_fields(tmap, coords, address, offsets):
    """Coordinates, address and offsets as fields of a command, with zeros beyond the rank."""
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
    """Raises :class:`CommandError` if hardware with ``smem_bytes`` of shared memory would refuse a call's command."""
    unused = {"signal": 0, "barrier": 0, "fill": 0, "reduction": 0}
    refusal = check_command(unused | command, tmap, smem_bytes)
    if refusal:
        raise CommandError(refusal, COMMAND, _sentence(refusal.code, command, tmap, smem_bytes))


def _sentence(code, command, tmap, smem_bytes):
    """The sentence about a command that is refused with ``code``."""
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
