"""Copies of blocks of bytes, without a descriptor (docs/tmau.md, "Block copies"): their rules, and as calls."""

import math

import numpy as np

from tilewright.spec import BLOCK, Element, Error, Opcode, Reduction, Space
from tilewright.spec.fields import spoken
from tilewright.spec.tmau_registers import FEATURES, FLOAT_SUMS

from ..arguments import integer, member
from ..memory import check_global, check_shared
from .checks import Windows, barrier_rules, first_refusal
from .reduce import is_legal, reduce
from .transfer import CommandError, combine

__all__ = [
    "block_bytes", "block_command", "block_source", "check_block", "copy_block", "land_block", "prefetch_block",
    "prefetch_block_command", "refuse_block", "run_block",
]  # fmt: skip

_GRANULE = 16
_ADDR_WIDTH = 64  # of calls


def copy_block(source, destination, size, gmem=None, smem=None, source_space="global", destination_space="shared",
               reduction="none", element="u8"):  # fmt: skip
    """Copies a block of bytes within or between memories, and returns the destination memory.

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
        New value of the destination.
    element : Element or str
        Of a reduction.

    Returns
    -------
    Memory or uint8 array
        ``gmem`` or ``smem``, changed in place.

    Raises
    ------
    CommandError, TypeError, ValueError, IndexError
        As in :func:`golden.load`.
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
    """Checks a block in global memory as a PREFETCH_BLOCK does, and moves nothing; errors as in :func:`copy_block`."""
    refuse_block(prefetch_block_command(source, size), math.inf)


def block_command(source, destination, size, source_space, destination_space, reduction, element):
    """Fields of a COPY_BLOCK; ValueError or TypeError if no command can have them."""
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


def _addresses(**values):
    return {name: integer(name, value, *BLOCK[name].range) for name, value in values.items()}


def refuse_block(command, smem_bytes):
    """Raises ``CommandError`` if hardware with ``smem_bytes`` of shared memory would refuse a call's command."""
    refusal = check_block({"signal": 0, "reduction": 0} | command, smem_bytes)
    if refusal:
        raise CommandError(refusal, BLOCK, _sentence(refusal, command, smem_bytes))


def _sentence(refusal, command, smem_bytes):
    """The sentence about a refused command."""
    error = CommandError(refusal, BLOCK, "")
    value = f"{error.value:#x}"
    match error.code:
        case Error.BLOCK_ALIGNMENT:
            return f"{error.field} must be a multiple of 16, not {error.value}"
        case Error.BLOCK_RANGE:
            return f"{error.field} {value} puts the end of the block past the {smem_bytes} bytes of smem"
        case Error.OVERLAP:
            source = f"{command['source']:#x}"
            return f"destination {value} must not be in the {command['size']} bytes of the source, {source}"
        case Error.REDUCTION:
            return f"reduction {spoken(command['reduction'])} is not defined for {spoken(command['element'])}"


def block_bytes(address, size, addr_width):
    """Global address of every byte of a block, modulo 2^addr_width; uint64."""
    mask = np.uint64((1 << addr_width) - 1)
    return np.uint64(address & int(mask)) + np.arange(size, dtype=np.uint64) & mask


def run_block(command, gmem, smem, addr_width):
    """Executes a legal COPY_BLOCK; its global source must lie in ``gmem``, its destination need not."""
    data = block_source(command, gmem, smem, addr_width)
    if command["destination_space"] == Space.SHARED:
        land_block(command, data, smem)
        return
    targets = block_bytes(command["destination"], command["size"], addr_width)
    combine(gmem, targets[None], data[None], *_reduction(command))


def block_source(command, gmem, smem, addr_width):
    """The bytes that a legal COPY_BLOCK reads, as a new array."""
    if command["source_space"] == Space.SHARED:
        return smem[command["source"] : command["source"] + command["size"]].copy()
    return gmem.at(block_bytes(command["source"], command["size"], addr_width))


def land_block(command, data, smem):
    """Writes or reduces ``data`` into shared memory."""
    target = smem[command["destination"] : command["destination"] + command["size"]]
    reduction, element = _reduction(command)
    target[:] = reduce(reduction, element, target, data) if reduction else data


def _reduction(command):
    reduction = Reduction(command["reduction"])
    return reduction, Element(command["element"]) if reduction else None


def check_block(command, smem_bytes, windows=None, addr_width=64, features=tuple(FEATURES), *, apart=False):
    """What hardware must report for a COPY_BLOCK or PREFETCH_BLOCK, as ``BLOCK.unpack`` gives it; or None.

    ``apart``: source and destination lie in different shared memories, and may overlap. Other arguments as in
    ``check_command``.
    """
    return first_refusal(command, _rules(command, smem_bytes, windows or Windows(), addr_width, features, apart))


def _rules(command, smem_bytes, windows, addr_width, features, apart):
    """Yields code, field, whether it is broken, and value, in order of code."""
    size = command["size"]
    prefetch = command["opcode"] == Opcode.PREFETCH_BLOCK
    # Name of the field, and the memory that it is an address in.
    sides = [("source", Space.GLOBAL if prefetch else command["source_space"])]
    if not prefetch:
        sides.append(("destination", command["destination_space"]))
    signals = not prefetch and command["signal"] and command["destination_space"] == Space.SHARED
    if not prefetch:
        yield from _feature_rules(command, features)
    if signals:
        yield from barrier_rules(command, smem_bytes)
    reduction = command["reduction"]
    if not prefetch and reduction != Reduction.NONE:
        yield Error.REDUCTION, "reduction", not is_legal(reduction, command["element"]), reduction
    for name in ["size", *(name for name, _ in sides)]:
        yield Error.BLOCK_ALIGNMENT, name, command[name] % _GRANULE != 0, command[name]
    if not prefetch:
        yield Error.BLOCK_RANGE, "size", size > smem_bytes, size
        for name, space in sides:
            past = space == Space.SHARED and command[name] + size > smem_bytes
            yield Error.BLOCK_RANGE, name, past, command[name]
        overlaps = not apart and _overlaps(command, addr_width)
        yield Error.OVERLAP, "destination", overlaps, command["destination"]
    if signals:
        inside = windows.hold_shared(command["barrier"], 8)
        yield Error.WINDOW, "barrier", not inside, command["barrier"]
    for name, space in sides:
        if space == Space.SHARED:
            inside = windows.hold_shared(command[name], size)
        else:
            inside = not size or windows.hold_global(command[name], size, addr_width)
        yield Error.WINDOW, name, not inside, command[name]


def _feature_rules(command, features):
    """Fields of a copy that need a missing feature."""
    source, destination = command["source_space"], command["destination_space"]
    reduction, element = command["reduction"], command["element"]
    into = "global" if destination == Space.GLOBAL else "shared"
    lacks_copy = (destination == Space.GLOBAL and "stores" not in features) or (
        source == destination and "local_copies" not in features
    )
    reduces = reduction != Reduction.NONE
    rules = {
        "destination_space": (lacks_copy, destination),
        "reduction": (reduces and f"reductions_{into}" not in features, reduction),
        "element": (reduces and element in FLOAT_SUMS and "reductions_float" not in features, element),
    }
    for field in sorted(rules, key=BLOCK.index):
        yield Error.UNSUPPORTED, field, *rules[field]


def _overlaps(command, addr_width):
    """Whether both ranges share a byte of one memory."""
    distance = (command["destination"] - command["source"]) % (1 << addr_width)
    near = distance < command["size"] or (1 << addr_width) - distance < command["size"]
    return near and command["source_space"] == command["destination_space"]
