"""Rules of commands: what hardware refuses before a transfer, and the windows that confine commands.

Specification: docs/tmau.md, "Errors" and "Windows".
"""

from dataclasses import dataclass

from tilewright.spec import COMMAND_FIELD, DESCRIPTOR, FORMATS, TENSOR_OPCODES, Error, Mode, Opcode
from tilewright.spec.tmau_registers import FEATURES, FLOAT_SUMS

from .descriptor import SPATIAL_BITS, Refusal
from .reduce import is_legal
from .tile import bounding_box, extent, footprint, spatial_dimensions

__all__ = ["Windows", "barrier_rules", "check_command", "check_features", "first_refusal"]

_PAGE_BITS, _LINE_BITS = 12, 7
_WRITES = (Opcode.STORE, Opcode.REDUCE)

#: Operations that need a feature.
_FEATURES = {
    Opcode.STORE: "stores",
    Opcode.REDUCE: "reductions_global",
    Opcode.REPLACE: "reductions_global",
    Opcode.LANES: "lanes",
}


@dataclass(frozen=True)
class Windows:
    """First and last byte that commands may access, in each memory; None: all of it.

    As in the registers, a global window consists of whole pages of 4096 bytes and a shared one of lines of 128: the low
    bits of a first byte count as zeros, the low bits of a last byte as ones.

    Attributes
    ----------
    global_, shared : (int, int) or None
    """

    global_: tuple[int, int] | None = None
    shared: tuple[int, int] | None = None

    def within(self, others):
        """The intersection with ``others``."""
        return Windows(_intersection(self.global_, others.global_), _intersection(self.shared, others.shared))

    def registers(self, processor=None):
        """Values of the registers of these windows, by name: of the unit, or of one of its processors."""
        if processor is not None:
            return {f"{name}_{processor}": value for name, value in self.registers().items()}
        (base, limit), (first, last) = self.global_ or (0, 0), self.shared or (0, 0)
        return {
            "global_base_lo": base & 0xFFFF_FFFF,
            "global_base_hi": base >> 32,
            "global_limit_lo": limit & 0xFFFF_FFFF,
            "global_limit_hi": limit >> 32,
            "shared_base": first,
            "shared_limit": last,
            "windows": (self.global_ is not None) | (self.shared is not None) << 1,
        }

    def hold_global(self, address, count, addr_width):
        """Whether ``count`` bytes from ``address``, without wrapping, exist and lie in the global window."""
        return self.global_ is None or (
            address + count <= 1 << addr_width and _inside(address, count, self.global_, _PAGE_BITS)
        )

    def hold_shared(self, address, count):
        """Whether ``count`` bytes from ``address`` lie in the shared window."""
        return self.shared is None or _inside(address, count, self.shared, _LINE_BITS)


def _intersection(window, other):
    """Bytes in both windows; an empty one may end before it begins."""
    if window is None or other is None:
        return window or other
    return max(window[0], other[0]), min(window[1], other[1])


def _inside(address, count, window, bits):
    """Whether the range lies in the window; a range of no bytes always does."""
    first, last = window
    return not count or (first >> bits <= address >> bits and address + count - 1 >> bits <= last >> bits)


def check_features(command, features):
    """A :class:`Refusal` if hardware with ``features`` lacks the operation, otherwise None."""
    opcode = command["opcode"]
    if opcode in _FEATURES and _FEATURES[opcode] not in features:
        return Refusal(Error.UNSUPPORTED, COMMAND_FIELD + FORMATS[opcode].index("opcode"), opcode)
    return None


def check_command(command, tmap, smem_bytes, windows=None, addr_width=64, features=tuple(FEATURES)):
    """What hardware must report for a command on a descriptor: a :class:`Refusal`, or None if it can run.

    Parameters
    ----------
    command : dict
        Fields as ``unpack`` of its format gives them, of one of the formats ``COMMAND``, ``GROUP`` and ``REPLACE``.
    tmap : TensorMap or None
        The descriptor, which is legal. None: only the rules that need no descriptor, which come first.
    smem_bytes : int
        Size of shared memory.
    windows : Windows or None
        Which confine the command.
    addr_width : int
        Bits of global addresses.
    features : sequence of str
        Of the hardware.
    """
    opcode = command["opcode"]
    if opcode not in FORMATS:
        return Refusal(Error.OPCODE, COMMAND_FIELD, opcode)
    windows = windows or Windows()
    if tmap is None:
        rules = _fetch_rules(command, windows, addr_width, features)
    else:
        rules = _tensor_rules(command, tmap, smem_bytes, windows, addr_width, features)
    return first_refusal(command, rules)


def first_refusal(command, rules):
    """The first broken one of ``rules``, tuples of code, field, whether it is broken, and value, as a Refusal or None.

    A field belongs to the command or, with the prefix ``DESCRIPTOR.``, to the descriptor.
    """
    for code, name, broken, value in rules:
        if broken:
            of_descriptor = name.startswith("DESCRIPTOR.")
            fmt, first = (DESCRIPTOR, 0) if of_descriptor else (FORMATS[command["opcode"]], COMMAND_FIELD)
            name = name.removeprefix("DESCRIPTOR.")
            return Refusal(code, first + fmt.index(name), fmt[name].encode(value))
    return None


def barrier_rules(command, smem_bytes):
    """Rules of the barrier of a command that writes shared memory."""
    barrier = command["barrier"]
    yield Error.BARRIER_ALIGNMENT, "barrier", barrier % 8 != 0, barrier
    yield Error.BARRIER_RANGE, "barrier", barrier + 8 > smem_bytes, barrier


def _fetch_rules(command, windows, addr_width, features):
    """Rules that need no descriptor, in order of code."""
    opcode = command["opcode"]
    missing = check_features(command, features) is not None
    if "descriptor" not in command:
        yield Error.UNSUPPORTED, "opcode", missing, opcode
        return
    descriptor = command["descriptor"]
    yield Error.DESCRIPTOR_ALIGNMENT, "descriptor", descriptor % 64 != 0, descriptor
    yield Error.UNSUPPORTED, "opcode", missing, opcode
    if opcode == Opcode.REPLACE:
        yield from _field_rules(command)
    if opcode != Opcode.INVALIDATE:
        inside = windows.hold_global(descriptor, DESCRIPTOR.bytes, addr_width)
        yield Error.WINDOW, "descriptor", not inside, descriptor


def _field_rules(command):
    """Rules of the field that a REPLACE changes."""
    number, index, value = command["field"], command["index"], command["value"]
    known = number < len(DESCRIPTOR.fields)
    yield Error.FIELD, "field", not known, number
    if known:
        field = DESCRIPTOR.fields[number]
        yield Error.FIELD, "index", index >= len(field.lsbs), index
        yield Error.FIELD, "value", value > field.mask, value


def _tensor_rules(command, tmap, smem_bytes, windows, addr_width, features):
    """Rules of a command with its descriptor, in order of code."""
    opcode = command["opcode"]
    if opcode not in TENSOR_OPCODES:
        return
    writes, im2col = opcode in _WRITES, tmap.mode == Mode.IM2COL
    uses_shared = opcode != Opcode.PREFETCH and not (writes and command["fill"])
    signals = opcode == Opcode.LOAD and command["signal"]
    smem, barrier, reduction = command["smem"], command["barrier"], command["reduction"]
    if opcode == Opcode.REDUCE:
        floats = "reductions_float" not in features and tmap.element in FLOAT_SUMS
        yield Error.UNSUPPORTED, "DESCRIPTOR.element", floats, tmap.element
    if writes and im2col:
        yield from ((Error.CORNER, "DESCRIPTOR.lower", corner < 0, corner) for corner in tmap.lower)
        yield from ((Error.CORNER, "DESCRIPTOR.upper", corner > 0, corner) for corner in tmap.upper)
    for d, coord in enumerate(command["coords"]):
        yield Error.COORDS, "coords", coord != 0 if d >= tmap.rank else writes and coord < 0, coord
    if im2col:
        starts = [command["coords"][d] for d in spatial_dimensions(tmap)]
        for coord, low, high in zip(starts, *bounding_box(tmap), strict=True):
            yield Error.START, "coords", not low <= coord < high, coord
    if uses_shared:
        yield Error.SMEM_ALIGNMENT, "smem", smem % 128 != 0, smem
    if opcode != Opcode.PREFETCH:
        # A transfer is never larger than shared memory, even if it does not use it.
        end = (smem if uses_shared else 0) + footprint(tmap)
        yield Error.SMEM_RANGE, "smem", end > smem_bytes, smem
    if signals:
        yield from barrier_rules(command, smem_bytes)
    offset_bits = SPATIAL_BITS[tmap.rank - 2] if im2col and not writes else 0
    for k, offset in enumerate(command["offsets"]):
        yield Error.OFFSETS, "offsets", offset >> (offset_bits if k < tmap.rank - 2 else 0) != 0, offset
    if opcode == Opcode.REDUCE:
        yield Error.REDUCTION, "reduction", not is_legal(reduction, tmap.element), reduction
    inside = windows.hold_global(tmap.address, extent(tmap), addr_width)
    yield Error.WINDOW, "DESCRIPTOR.address", not inside, tmap.address
    if uses_shared:
        yield Error.WINDOW, "smem", not windows.hold_shared(smem, footprint(tmap)), smem
    if signals:
        yield Error.WINDOW, "barrier", not windows.hold_shared(barrier, 8), barrier
