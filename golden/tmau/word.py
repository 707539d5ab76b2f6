"""A descriptor word as hardware meets it: any 1024 bits, legal or not."""

from itertools import chain
from types import SimpleNamespace

from ..spec import DESCRIPTOR, DESCRIPTOR_VERSION, Element, Error, Fill, Interleave, L2Promotion, Mode, Swizzle
from .rules import Violation, descriptor_rules

__all__ = ["word_rules", "word_values"]

_RANKED = {"size": 0, "box": 0, "traversal": 0, "stride": 1}  # array fields and the dimension of their first element


def word_values(word):
    """The fields of a descriptor word, cut to its rank; known enumeration numbers as members, others as they are."""
    values = SimpleNamespace(**DESCRIPTOR.unpack(word))
    for name, first in _RANKED.items():
        setattr(values, name, tuple(getattr(values, name)[: max(values.rank - first, 0)]))
    for name, enum in (("element", Element), ("interleave", Interleave), ("fill", Fill), ("swizzle", Swizzle),
                       ("mode", Mode), ("l2_promotion", L2Promotion)):  # fmt: skip
        number = getattr(values, name)
        setattr(values, name, enum(number) if number <= max(enum) else number)
    spatial = max(values.rank - 2, 0)
    values.lower, values.upper = tuple(values.lower[:spatial]), tuple(values.upper[:spatial])
    return values


def word_rules(word):
    """Yields a :class:`rules.Violation` for every broken rule of a descriptor word, in order of code, then of field.

    Im2col fields are not looked at.
    """
    values = word_values(word)
    return chain(_header_rules(word, values), descriptor_rules(values), _unused_rules(word, values))


def _header_rules(word, values):
    if values.version != DESCRIPTOR_VERSION:
        sentence = f"version must be {DESCRIPTOR_VERSION}, not {values.version}"
        yield Violation(Error.VERSION, "version", values.version, sentence)
    reserved = word & DESCRIPTOR.reserved_mask
    if reserved:
        bit = (reserved & -reserved).bit_length() - 1
        yield Violation(Error.RESERVED, "reserved", reserved, f"reserved bit {bit} must be 0, not 1")


def _unused_rules(word, values):
    """Fields of dimensions that the rank does not reach; ``values`` is cut to the rank, so the word itself is asked."""
    for name, first in sorted(_RANKED.items(), key=lambda item: DESCRIPTOR.index(item[0])):
        field = DESCRIPTOR[name]
        for d, lsb in enumerate(field.lsbs, first):
            stored = word >> lsb & (1 << field.width) - 1
            if d >= values.rank and stored:
                sentence = f"{name} of dimension {d} must be stored as 0 for rank {values.rank}, not {stored}"
                yield Violation(Error.UNUSED, name, field.decode(stored), sentence)
