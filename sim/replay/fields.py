"""Strict reading of replay cases: JSON objects, and the memories, operands and texts in them (docs/replay.md).

Each value must have its kind and range, and no member of an object may remain.
"""

import reprlib
from dataclasses import dataclass

import numpy as np

from tilewright.errors import UsageError
from tilewright.golden.memory import fill_pattern, hex_pattern, mix_pattern
from tilewright.spec.names import suggestion
from tilewright.spec.pe import MmType

__all__ = [
    "REQUIRED", "Fields", "MemoryImage", "read_image", "read_init", "read_operand", "read_spots", "read_text",
    "read_type", "whole_words",
]  # fmt: skip

#: Default of a required field.
REQUIRED = object()


class Fields:
    """The members of one JSON object, read one by one; each error is a UsageError that names the case and the field.

    Parameters
    ----------
    value
        The object, or another value, which is an error.
    case : str
        Beginning of errors: ``case 'x'`` or the name of a file.
    path : str
        Name of the object within the case, empty for the case itself.
    """

    def __init__(self, value, case, path=""):
        self.case, self.path = case, path
        if not isinstance(value, dict):
            raise self.wrong("", f"must be an object, not {reprlib.repr(value)}")
        self._members = dict(value)
        self._known = []

    def name(self, field):
        """Full name of a member for errors."""
        return ".".join(part for part in (self.path, field) if part)

    def wrong(self, field, rule):
        """The error for a ``field`` that breaks a rule."""
        return UsageError(f"{self.case}: {self.name(field) or 'it'} {rule}")

    def __contains__(self, field):
        return field in self._members

    def peek(self, field):
        """The raw value of a member, which remains to be read; None if it is missing."""
        return self._members.get(field)

    def raw(self, field, default=REQUIRED):
        """Reads the raw value of a member."""
        self._known.append(field)
        if field not in self._members and default is REQUIRED:
            raise self.wrong(field, "is missing")
        return self._members.pop(field, default)

    def integer(self, field, low, high, default=REQUIRED):
        """Reads an integer from ``low`` to ``high``."""
        value = self.raw(field, default)
        if value is not default:
            self.check_integer(field, value, low, high)
        return value

    def check_integer(self, field, value, low, high):
        """Raises unless ``value`` is an integer from ``low`` to ``high``."""
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(field, f"must be an integer from {low} to {high}, not {reprlib.repr(value)}")

    def integers(self, field, low, high, default=REQUIRED):
        """Reads a list of integers from ``low`` to ``high``."""
        value = self.listed(field, default)
        if value is not default:
            for index, entry in enumerate(value):
                self.check_integer(f"{field}[{index}]", entry, low, high)
        return value

    def listed(self, field, default=REQUIRED):
        """Reads a list."""
        return self._kind(field, default, list, "a list")

    def text(self, field, default=REQUIRED):
        """Reads a string."""
        return self._kind(field, default, str, "a string")

    def flag(self, field, default=REQUIRED):
        """Reads true or false."""
        return self._kind(field, default, bool, "true or false")

    def choice(self, field, names, default=REQUIRED):
        """Reads one of ``names``."""
        value = self.raw(field, default)
        if value is not default and value not in names:
            sentence = f"must be one of {', '.join(map(str, names))}, not {reprlib.repr(value)}"
            raise self.wrong(field, sentence + suggestion(value, names))
        return value

    def inner(self, field, default=REQUIRED):
        """Reads an object; returns its :class:`Fields`."""
        value = self.raw(field, default)
        return value if value is default else Fields(value, self.case, self.name(field))

    def remaining(self):
        """Names of members that have not been read."""
        return list(self._members)

    def end(self):
        """Raises an error if members remain."""
        for field in self._members:
            others = [name for name in self._known if name != field]
            raise self.wrong(field, f"is not a known field{suggestion(field, others)}")

    def _kind(self, field, default, kind, description):
        value = self.raw(field, default)
        if value is not default and not isinstance(value, kind):
            raise self.wrong(field, f"must be {description}, not {reprlib.repr(value)}")
        return value


_TYPES = {
    "s8": MmType.S8S8, "u8": MmType.U8U8, "s8u8": MmType.S8U8, "u8s8": MmType.U8S8, "s16": MmType.S16S16,
    "u16": MmType.U16U16, "s16u16": MmType.S16U16, "u16s16": MmType.U16S16, "f16": MmType.F16, "bf16": MmType.BF16,
}  # fmt: skip


@dataclass(frozen=True)
class MemoryImage:
    """``size`` bytes from address 0, which the functions ``layers`` write one after another."""

    size: int
    layers: tuple

    def contents(self):
        """A new uint8 array."""
        memory = np.zeros(self.size, np.uint8)
        for layer in self.layers:
            layer(memory)
        return memory


def whole_words(contents, bus_bytes):
    """A copy of the contents of global memory, padded with zeros to whole bus words."""
    memory = np.zeros(-(-len(contents) // bus_bytes) * bus_bytes, np.uint8)
    memory[: len(contents)] = contents
    return memory


def read_image(fields, limit, default, folder):
    """Reads a memory of at most ``limit`` bytes, with ``default`` contents, and files from ``folder``."""
    size = fields.integer("bytes", 1, limit)
    init = fields.inner("init", None)
    fields.end()
    if init is None:
        return MemoryImage(size, (_whole(*default),))
    return read_init(init, size, folder)


def read_init(fields, size, folder):
    """Reads contents of ``size`` bytes, with files from ``folder``."""
    return MemoryImage(size, tuple(_read_layers(fields, size, folder)))


def read_spots(fields, field, size):
    """Reads a list of pairs of an address and hex digits within ``size`` bytes; returns addresses and uint8 arrays."""
    return [_read_spot(fields, f"{field}[{index}]", spot, size) for index, spot in enumerate(fields.listed(field))]


def _read_layers(fields, size, folder):
    """Functions that each write a layer of the contents, in order."""
    if "set" in fields:
        spots = read_spots(fields, "set", size)
        layers = [*_read_layers(fields.inner("over"), size, folder), *(_spot(*spot) for spot in spots)]
    elif "npy" in fields:
        layers = [_spot(0, _read_npy(fields, size, folder))]
    elif "hex" in fields:
        digits = fields.text("hex")
        _check_hex(fields, "hex", digits, size)
        layers = [_whole(hex_pattern, digits)]
    elif "mix" in fields:
        layers = [_whole(mix_pattern, fields.integer("mix", 0, (1 << 32) - 1))]
    elif "fill" in fields:
        layers = [_whole(fill_pattern, fields.integer("fill", 0, 255))]
    else:
        raise fields.wrong("", "must have one of fill, mix, hex, npy, set")
    fields.end()
    return layers


def _whole(pattern, argument):
    """A layer that fills the memory with a pattern."""
    return lambda memory: memory.__setitem__(slice(None), pattern(len(memory), argument))


def _spot(address, data):
    """A layer that writes ``data`` at ``address``."""
    return lambda memory: memory.__setitem__(slice(address, address + len(data)), data)


def _read_spot(fields, name, spot, size):
    if not isinstance(spot, list) or len(spot) != 2:
        raise fields.wrong(name, "must be a pair of an address and hex digits")
    fields.check_integer(f"{name}[0]", spot[0], 0, size)
    data = _check_hex(fields, f"{name}[1]", spot[1], size - spot[0])
    return spot[0], np.frombuffer(data, np.uint8)


def _check_hex(fields, name, digits, room):
    try:
        data = bytes.fromhex(digits)
    except (TypeError, ValueError):
        raise fields.wrong(name, "must be pairs of hex digits") from None
    if len(data) > room:
        raise fields.wrong(name, f"must be at most {room} bytes, not {len(data)}")
    return data


def _read_npy(fields, size, folder):
    file = folder / fields.text("npy")
    try:
        data = np.frombuffer(np.load(file, allow_pickle=False).tobytes(), np.uint8)
    except (OSError, ValueError, EOFError):
        raise fields.wrong("npy", f"must name a readable array, not {file.name}") from None
    if len(data) > size:
        raise fields.wrong("npy", f"must be at most {size} bytes, not the {len(data)} of {file.name}")
    return data


def read_type(fields):
    """Reads the member ``type``, for the elements of both operands; returns an ``MmType``."""
    return _TYPES[fields.choice("type", list(_TYPES))]


def read_operand(fields, name, shape, kind, folder):
    """Reads the raw bits of an operand: contents as of a memory, or normally distributed numbers."""
    init = fields.inner(name)
    size = int(np.prod(shape))
    if "normal" in init:
        if not kind.is_float:
            raise init.wrong("normal", "needs elements that are floating-point numbers")
        generator = np.random.Generator(np.random.PCG64(init.integer("normal", 0, (1 << 64) - 1)))
        init.end()
        return _rounded(generator.standard_normal(size), kind).reshape(shape)
    contents = read_init(init, size * kind.bytes, folder).contents()
    return contents.view(f"<u{kind.bytes}").reshape(shape)


def _rounded(numbers, kind):
    """Raw bits of float64 ``numbers``, rounded once to fp16 or, if they are normal numbers, to bf16."""
    if kind == MmType.F16:
        return numbers.astype(np.float16).view(np.uint16)
    bits = numbers.view(np.uint64)
    dropped = np.uint64(52 - 7)
    odd = bits >> dropped & np.uint64(1)
    rounded = (bits + odd + np.uint64((1 << 52 - 8) - 1)) >> dropped << dropped
    # A bfloat16 is the upper half of a float32, which holds the rounded number exactly.
    return (rounded.view(np.float64).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def read_text(fields, name, assemble):
    """Reads text, a string or a list of lines; returns the words of ``assemble``, a tuple."""
    text = fields.raw(name)
    lines = text if isinstance(text, list) else [text]
    if not all(isinstance(line, str) for line in lines):
        raise fields.wrong(name, "must be a string, or a list of strings")
    try:
        return tuple(assemble("\n".join(lines)))
    except UsageError as error:
        raise fields.wrong(name, str(error)) from None
