"""The rules of the tensor descriptor (tmau.md section 2), and what hardware must report for any descriptor word."""

from itertools import chain
from types import SimpleNamespace
from typing import NamedTuple

from ..spec import DESCRIPTOR, DESCRIPTOR_VERSION, Element, Error, Fill, Interleave, L2Promotion, Mode, Swizzle

__all__ = [
    "Refusal",
    "Violation",
    "check_word",
    "descriptor_rules",
    "im2col_rules",
    "spoken",
    "unsupported",
    "word_rules",
    "word_values",
]

#: Range of the corners of the im2col bounding box, by rank: 16, 8 or 5 bits a dimension.
_CORNER_BITS = {3: 16, 4: 8, 5: 5}
_RESERVED = DESCRIPTOR.reserved_mask
_RANKED = {"size": 0, "box": 0, "traversal": 0, "stride": 1}  # array fields and the dimension of their first element


class Violation(NamedTuple):
    """One broken rule: its code, the field and the value that break it, and a sentence that names both."""

    code: Error
    field: str
    value: int
    sentence: str


class Refusal(NamedTuple):
    """An error record without the tag.

    Attributes
    ----------
    code : Error
    field : int
        Number in ``DESCRIPTOR``, or ``COMMAND_FIELD`` plus number in ``COMMAND``.
    value : int
        The offending number as stored, not sign-extended.
    """

    code: Error
    field: int
    value: int


def check_word(word):
    """What hardware must report for any 1024-bit descriptor word on a load: a :class:`Refusal`, or None if it is good.

    Im2col fields are not looked at, because this version refuses the mode as a whole.
    """
    broken = next(chain(word_rules(word), unsupported(word_values(word))), None)
    if broken is None:
        return None
    if broken.code == Error.RESERVED:
        return Refusal(broken.code, 0, 0)
    return Refusal(broken.code, DESCRIPTOR.index(broken.field), DESCRIPTOR[broken.field].encode(int(broken.value)))


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
    """Yields a :class:`Violation` for every broken rule of a descriptor word, in order of code, then of field.

    Im2col fields are not looked at.
    """
    values = word_values(word)
    return chain(_header_rules(word, values), descriptor_rules(values), _unused_rules(word, values))


def _header_rules(word, values):
    if values.version != DESCRIPTOR_VERSION:
        sentence = f"version must be {DESCRIPTOR_VERSION}, not {values.version}"
        yield Violation(Error.VERSION, "version", values.version, sentence)
    reserved = word & _RESERVED
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


def descriptor_rules(t):
    """Yields a :class:`Violation` for every broken rule of ``t``, in order of code, then of field, then of dimension.

    ``t`` has the attributes of a ``TensorMap``, of the dimensions that the rank reaches. Enumerations may be plain
    numbers and unknown. After an unknown rank, element or interleave nothing more is looked at, because the other
    rules depend on them.
    """
    lowest, why = (3, " for im2col") if t.mode == Mode.IM2COL else (3, " with interleave") if t.interleave else (1, "")
    if not lowest <= t.rank <= 5:
        yield Violation(Error.RANK, "rank", t.rank, f"rank must be {lowest} to 5{why}, not {t.rank}")
        return
    if t.element > max(Element):
        yield Violation(Error.ELEMENT, "element", t.element, f"element must be 0 to {max(Element):d}, not {t.element}")
        return
    if t.interleave > max(Interleave):
        yield Violation(Error.INTERLEAVE, "interleave", t.interleave, f"interleave must be 0 to 2, not {t.interleave}")
        return
    element = Element(t.element)
    yield from _fill_rules(t, element)
    yield from _address_rules(t, element)
    yield from _box_rules(t, element)


def _fill_rules(t, element):
    if t.fill > max(Fill):
        yield Violation(Error.FILL, "fill", t.fill, f"fill must be 0 to 2, not {t.fill}")
    elif t.fill == Fill.NAN and not element.is_float:
        yield Violation(Error.FILL, "fill", t.fill, f"fill nan needs a float element, not {element.name.lower()}")


def _address_rules(t, element):
    granule = element.bytes if t.unaligned else 32 if t.interleave == Interleave.B32 else 16
    if not 0 <= t.address < 1 << 64:
        yield Violation(Error.ADDRESS, "address", t.address, f"address must be 0 to 2^64 - 1, not {t.address}")
    elif t.address % granule:
        sentence = f"address must be a multiple of {granule}, not {t.address:#x}"
        yield Violation(Error.ADDRESS, "address", t.address, sentence)
    for d, size in enumerate(t.size):
        if not 1 <= size <= 1 << 32:
            yield Violation(Error.SIZE, "size", size, f"size of dimension {d} must be 1 to 2^32, not {size}")
    for d, stride in enumerate(t.stride, 1):
        if not 0 <= stride < 1 << 40:
            yield Violation(
                Error.STRIDE, "stride", stride, f"stride of dimension {d} must be 0 to 2^40 - 1, not {stride}"
            )
        elif stride % granule:
            sentence = f"stride of dimension {d} must be a multiple of {granule}, not {stride}"
            yield Violation(Error.STRIDE, "stride", stride, sentence)


def _box_rules(t, element):
    tile = t.mode == Mode.TILE  # im2col does not use the box
    for d, box in enumerate(t.box):
        if tile and not 1 <= box <= 256:
            yield Violation(Error.BOX, "box", box, f"box of dimension {d} must be 1 to 256, not {box}")
    row_bytes = t.box[0] * element.bytes if tile else 0
    if row_bytes % 16 and not t.interleave and not t.unaligned:
        sentence = f"box of dimension 0 must make rows of a multiple of 16 bytes: {t.box[0]} elements are {row_bytes}"
        yield Violation(Error.BOX, "box", t.box[0], sentence)
    for d, step in enumerate(t.traversal):
        if not 1 <= step <= 8:
            yield Violation(
                Error.TRAVERSAL, "traversal", step, f"traversal of dimension {d} must be 1 to 8, not {step}"
            )
    swizzle = Swizzle(t.swizzle)
    if t.interleave == Interleave.B32 and swizzle != Swizzle.B32:
        yield Violation(
            Error.SWIZZLE, "swizzle", swizzle, f"swizzle must be 32B with 32-byte interleave, not {spoken(swizzle)}"
        )
    elif swizzle and not t.interleave:
        yield from _swizzle_rule(swizzle, row_bytes)


def _swizzle_rule(swizzle, row_bytes):
    """The inner row of a swizzled tensor fits the span."""
    if row_bytes > swizzle.span:
        sentence = f"swizzle {spoken(swizzle)} takes rows of at most {swizzle.span} bytes, not {row_bytes}"
        yield Violation(Error.SWIZZLE, "swizzle", swizzle, sentence)


def im2col_rules(t):
    """Yields a :class:`Violation` for every broken im2col rule of ``t``, in order of code; the rank is legal."""
    row_bytes = t.channels * t.element.bytes
    if t.swizzle and not t.interleave:
        yield from _swizzle_rule(t.swizzle, row_bytes)
    limit = 1 << _CORNER_BITS[t.rank] - 1
    for field in ("lower", "upper"):
        for name, corner in zip("WHD", getattr(t, field), strict=False):
            if not -limit <= corner < limit:
                sentence = f"{field} corner in {name} must be {-limit} to {limit - 1} for rank {t.rank}, not {corner}"
                yield Violation(Error.CORNER, field, corner, sentence)
    for name, size, lower, upper in zip("WHD", t.size[1:], t.lower, t.upper, strict=False):
        if lower >= size + upper:
            sentence = (
                f"upper corner in {name} must leave a box that begins at {lower}: {upper} ends it at {size + upper}"
            )
            yield Violation(Error.CORNER, "upper", upper, sentence)
    if not 1 <= t.channels <= 256:
        yield Violation(Error.CHANNELS, "channels", t.channels, f"channels must be 1 to 256, not {t.channels}")
    elif row_bytes % 16 and not t.interleave and not t.unaligned:
        sentence = f"channels must make rows of a multiple of 16 bytes: {t.channels} channels are {row_bytes}"
        yield Violation(Error.CHANNELS, "channels", t.channels, sentence)
    if not 1 <= t.pixels <= 1024:
        yield Violation(Error.PIXELS, "pixels", t.pixels, f"pixels must be 1 to 1024, not {t.pixels}")


def unsupported(t):
    """Yields a violation for each field of ``t`` that is legal but not built yet."""
    for field in ("mode", "interleave", "unaligned", "gather0"):
        value = getattr(t, field)
        if value:
            name = field if field in ("unaligned", "gather0") else f"{field} {spoken(value)}"
            yield Violation(Error.UNSUPPORTED, field, value, f"{name} is not supported yet")


def spoken(member):
    """The name of an enumeration member as users write it: ``f16``, ``none``, ``128B``."""
    return f"{member.name[1:]}B" if member.name[0] == "B" and member.name[1:].isdigit() else member.name.lower()
