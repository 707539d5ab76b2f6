"""Bit-field tables: the one description that hardware layouts, golden packers, documentation and C headers share.

A :class:`Format` is a named word of fixed width; a :class:`Field` is a bit range in it, or ``count`` equal ranges for
the dimensions of a tensor. Bit 0 is the least significant bit of byte 0, so a packed word is stored little-endian.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property

__all__ = ["Field", "Format", "names", "one_line", "spoken"]


@dataclass(frozen=True)
class Field:
    """One bit field, or one field for each of ``count`` dimensions.

    Attributes
    ----------
    name : str
        Name in every product of the table.
    lsb, width : int
        First bit and number of bits (of element 0).
    doc : str
        One sentence on meaning, unit and legal values.
    count, pitch : int
        Number of elements, and bits from one element to the next. A scalar has count 0.
    signed : bool
        Two's complement.
    bias : int
        The value is the stored number plus ``bias``: 1 for counts that are never zero ("minus one" encoding).
    enum : type or None
        The enumeration of the stored numbers.
    """

    name: str
    lsb: int
    width: int
    doc: str
    count: int = 0
    pitch: int = 0
    signed: bool = False
    bias: int = 0
    enum: type[IntEnum] | None = None

    # Computed once: models and generators pack and unpack words by the million.

    @cached_property
    def lsbs(self):
        """First bit of every element."""
        return tuple(self.lsb + i * self.pitch for i in range(self.count or 1))

    @cached_property
    def mask(self):
        """Ones in as many low bits as an element has."""
        return (1 << self.width) - 1

    @cached_property
    def range(self):
        """Lowest and highest value that can be encoded, both inclusive."""
        low = -(1 << self.width - 1) if self.signed else 0
        return low + self.bias, low + self.mask + self.bias

    def encode(self, value):
        """Stored number of one ``value``; ValueError if it cannot be encoded."""
        low, high = self.range
        if not low <= value <= high:
            raise ValueError(f"{self.name} must be {low} to {high}, not {value!r}")
        return (int(value) - self.bias) & self.mask

    def decode(self, stored):
        """Value of one ``stored`` number."""
        if self.signed and stored >> self.width - 1:
            stored -= 1 << self.width
        return stored + self.bias


@dataclass(frozen=True)
class Format:
    """A word of ``bits`` bits made of ``fields``; all other bits are reserved and zero."""

    name: str
    bits: int
    doc: str
    fields: tuple[Field, ...]

    def __post_init__(self):
        used = 0
        for field in self.fields:
            for lsb in field.lsbs:
                if used & field.mask << lsb or lsb + field.width > self.bits:
                    raise ValueError(f"{self.name}.{field.name} overlaps another field or leaves the {self.bits} bits")
                used |= field.mask << lsb

    def __getitem__(self, name):
        return self.fields[self.index(name)]

    def index(self, name):
        """Position of the field called ``name``: the field number in error records."""
        if name not in self._positions:
            raise KeyError(f"{self.name} has no field {name!r}")
        return self._positions[name]

    @cached_property
    def names(self):
        """The set of the fields' names."""
        return set(self._positions)

    @cached_property
    def _positions(self):
        return {field.name: position for position, field in enumerate(self.fields)}

    @property
    def bytes(self):
        return self.bits // 8

    @cached_property
    def reserved_mask(self):
        """Ones in all bits that no field has."""
        used = sum(field.mask << lsb for field in self.fields for lsb in field.lsbs)
        return (1 << self.bits) - 1 & ~used

    def pack(self, **values):
        """Packs values (sequences for array fields) to an int; fields and elements left out are stored as zero."""
        word = 0
        for name, value in values.items():
            field = self[name]
            elements = value if field.count else [value]
            if len(elements) > len(field.lsbs):
                raise ValueError(f"{self.name}.{name} has {field.count} elements, not {len(elements)}")
            for lsb, element in zip(field.lsbs, elements, strict=False):
                word |= field.encode(element) << lsb
        return word

    def unpack(self, word):
        """Dictionary of all values of ``word``; array fields as lists."""
        return {
            name: [((word >> lsb & mask) ^ sign) - sign + bias for lsb in lsbs]
            if several
            else ((word >> lsbs[0] & mask) ^ sign) - sign + bias
            for name, lsbs, several, mask, sign, bias in self._decoders
        }

    @cached_property
    def _decoders(self):
        """What :meth:`Field.decode` needs of each field; the sign bit is 0 if the field has none."""
        return [
            (each.name, each.lsbs, bool(each.count), each.mask, each.signed << each.width - 1, each.bias)
            for each in self.fields
        ]


def one_line(value):
    """The ``repr`` of any value on one line: an array's may have several."""
    return " ".join(repr(value).split())


def spoken(member):
    """The name of an enumeration member as users write it: ``f16``, ``none``, ``128B``."""
    return f"{member.name[1:]}B" if member.name[0] == "B" and member.name[1:].isdigit() else member.name.lower()


@cache
def names(enum):
    """The members of an enumeration by the names that users write; the same dictionary at each call."""
    return {spoken(member): member for member in enum}
