"""The rules of the tensor descriptor, and what hardware must report for any descriptor word.

Specification: docs/tmau.md, "Tensor descriptor".
"""

from itertools import chain
from types import SimpleNamespace
from typing import NamedTuple

from tilewright.spec import DESCRIPTOR, DESCRIPTOR_VERSION, Element, Error, Fill, Interleave, L2Promotion, Mode, Swizzle
from tilewright.spec.fields import spoken
from tilewright.spec.tmau_registers import FEATURES

from ..arguments import packed

__all__ = [
    "SPATIAL_BITS", "Refusal", "Violation", "check_word", "descriptor_rules", "im2col_rules", "word_rules",
    "word_values",
]  # fmt: skip

#: Bits of a corner of the im2col bounding box (signed) and of an offset (unsigned), by spatial dimensions.
SPATIAL_BITS = {1: 16, 2: 8, 3: 5}

_RANKED = {"size": 0, "box": 0, "traversal": 0, "stride": 1}  # array fields and the dimension of their first element


class Violation(NamedTuple):
    """One broken rule: its code, the field and the value that break it, and a sentence that names both."""

    code: Error
    field: str
    value: int
    sentence: str


class Refusal(NamedTuple):
    """What hardware reports for a broken rule, without the tag, and the number that breaks it.

    Attributes
    ----------
    code : Error
    field : int
        Number in ``DESCRIPTOR``, or ``COMMAND_FIELD`` plus number in the format of the command.
    value : int
        The offending number as stored, not sign-extended; records do not have it.
    """

    code: Error
    field: int
    value: int


def check_word(word, features=tuple(FEATURES)):
    """What hardware must report for any 1024-bit descriptor word: a :class:`Refusal`, or None if it is legal."""
    broken = next(word_rules(packed("word", word, DESCRIPTOR.bits), features), None)
    if broken is None:
        return None
    if broken.code == Error.RESERVED:
        return Refusal(broken.code, 0, 0)
    return Refusal(broken.code, DESCRIPTOR.index(broken.field), DESCRIPTOR[broken.field].encode(int(broken.value)))


def word_values(word):
    """The fields of a descriptor word, cut to its rank; known enumeration numbers as members, others as int."""
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


def word_rules(word, features=tuple(FEATURES)):
    """Yields a :class:`Violation` for every broken rule of a descriptor word, in order of code, then of field.

    ``features`` are the hardware's. The rules of im2col fields are checked only if all others hold.
    """
    values = word_values(word)
    rules = (
        _header_rules(word, values),
        _feature_rules(DESCRIPTOR.unpack(word), features),
        descriptor_rules(values),
        _unused_rules(word, values),
    )
    legal = True
    for violation in chain(*rules):
        legal = False
        yield violation
    if legal and values.mode == Mode.IM2COL:
        yield from im2col_rules(values)


def _wrong(field, value, range_, dimension=None, shown=None):
    """The violation of a rule with the name of its ``field``, whose ``value`` must be ``range_``."""
    name = field if dimension is None else f"{field} of dimension {dimension}"
    sentence = f"{name} must be {range_}, not {value if shown is None else shown}"
    return Violation(Error[field.upper()], field, value, sentence)


def _header_rules(word, values):
    if values.version != DESCRIPTOR_VERSION:
        yield _wrong("version", values.version, DESCRIPTOR_VERSION)
    reserved = word & DESCRIPTOR.reserved_mask
    if reserved:
        bit = (reserved & -reserved).bit_length() - 1
        yield Violation(Error.RESERVED, "reserved", reserved, f"reserved bit {bit} must be 0, not 1")


def _feature_rules(fields, features):
    """Fields that need a missing feature; fields of dimensions beyond the rank need it too."""
    tile = fields["mode"] == Mode.TILE
    steps = fields["traversal"] if fields["interleave"] else fields["traversal"][1:]
    needs = (
        ("mode", "im2col", not tile),
        ("element", "tf32", fields["element"] == Element.TF32),
        ("interleave", "interleave", fields["interleave"] != Interleave.NONE),
        ("swizzle", "swizzle", fields["swizzle"] != Swizzle.NONE),
        ("unaligned", "unaligned", fields["unaligned"]),
        ("gather0", "gather", tile and fields["gather0"]),
        ("traversal", "gather", tile and any(step != 1 for step in steps)),
    )
    for field, feature, needed in needs:
        if needed and feature not in features:
            value = fields[field] if field != "traversal" else next(step for step in steps if step != 1)
            sentence = f"{field} must not be {value}: the hardware was built without {feature}"
            yield Violation(Error.UNSUPPORTED, field, value, sentence)


def _unused_rules(word, values):
    """Fields of dimensions beyond the rank; ``values`` is cut to the rank, so these are read from the word."""
    for name, first in sorted(_RANKED.items(), key=lambda item: DESCRIPTOR.index(item[0])):
        field = DESCRIPTOR[name]
        for d, lsb in enumerate(field.lsbs, first):
            stored = word >> lsb & field.mask
            if d >= values.rank and stored:
                sentence = f"{name} of dimension {d} must be stored as 0 for rank {values.rank}, not {stored}"
                yield Violation(Error.UNUSED, name, field.decode(stored), sentence)


def descriptor_rules(t):
    """Yields a :class:`Violation` for every broken rule of ``t``, in order of code, then of field, then of dimension.

    ``t`` has the attributes of a ``TensorMap``, of the dimensions up to the rank. Enumerations may be plain numbers and
    unknown. After an unknown rank, element or interleave nothing more is checked, because the other rules depend on
    them. CORNER, CHANNELS and PIXELS are left to :func:`im2col_rules`.
    """
    lowest, why = (3, " for im2col") if t.mode == Mode.IM2COL else (3, " with interleave") if t.interleave else (1, "")
    if not lowest <= t.rank <= 5:
        yield _wrong("rank", t.rank, f"{lowest} to 5{why}")
        return
    for name, enum in (("element", Element), ("interleave", Interleave)):
        if getattr(t, name) > max(enum):
            yield _wrong(name, getattr(t, name), f"0 to {max(enum):d}")
            return
    element = Element(t.element)
    yield from _address_rules(t, element)
    yield from _box_rules(t, element)


def _address_rules(t, element):
    if t.fill > max(Fill):
        yield _wrong("fill", t.fill, "0 to 2")
    elif t.fill == Fill.NAN and not element.is_float:
        yield Violation(Error.FILL, "fill", t.fill, f"fill nan needs a float element, not {spoken(element)}")
    granule = element.bytes if t.unaligned else 32 if t.interleave == Interleave.B32 else 16
    if not 0 <= t.address < 1 << 64:
        yield _wrong("address", t.address, "0 to 2^64 - 1")
    elif t.address % granule:
        yield _wrong("address", t.address, f"a multiple of {granule}", shown=f"{t.address:#x}")
    for d, size in enumerate(t.size):
        if not 1 <= size <= 1 << 32:
            yield _wrong("size", size, "1 to 2^32", d)
    for d, stride in enumerate(t.stride, 1):
        if not 0 <= stride < 1 << 40:
            yield _wrong("stride", stride, "0 to 2^40 - 1", d)
        elif stride % granule:
            yield _wrong("stride", stride, f"a multiple of {granule}", d)


def _box_rules(t, element):
    tile = t.mode == Mode.TILE  # im2col does not use the box
    for d, box in enumerate(t.box):
        if tile and not 1 <= box <= 256:
            yield _wrong("box", box, "1 to 256", d)
    row_bytes = (t.box[0] if tile else t.channels) * element.bytes
    if tile and row_bytes % 16 and not t.interleave and not t.unaligned:
        sentence = f"box of dimension 0 must make rows of a multiple of 16 bytes: {t.box[0]} elements are {row_bytes}"
        yield Violation(Error.BOX, "box", t.box[0], sentence)
    for d, step in enumerate(t.traversal):
        if not 1 <= step <= 8:
            yield _wrong("traversal", step, "1 to 8", d)
    swizzle = Swizzle(t.swizzle)
    if t.interleave == Interleave.B32 and swizzle != Swizzle.B32:
        yield _wrong("swizzle", swizzle, "32B with 32-byte interleave", shown=spoken(swizzle))
    elif swizzle and not t.interleave and row_bytes > swizzle.span:
        sentence = f"swizzle {spoken(swizzle)} takes rows of at most {swizzle.span} bytes, not {row_bytes}"
        yield Violation(Error.SWIZZLE, "swizzle", swizzle, sentence)


def im2col_rules(t):
    """Yields a :class:`Violation` for every broken rule of im2col fields, in order of code, field and dimension.

    ``t`` is as in :func:`descriptor_rules`, whose rules it must not break.
    """
    limit = 1 << SPATIAL_BITS[t.rank - 2] - 1
    sizes = t.size[: t.rank - 2] if t.interleave else t.size[1 : t.rank - 1]

    def out_of_range(field, name, corner):
        sentence = f"{field} corner in {name} must be {-limit} to {limit - 1} for rank {t.rank}, not {corner}"
        return Violation(Error.CORNER, field, corner, sentence)

    for name, lower in zip("WHD", t.lower, strict=False):
        if not -limit <= lower < limit:
            yield out_of_range("lower", name, lower)
    for name, size, lower, upper in zip("WHD", sizes, t.lower, t.upper, strict=False):
        if not -limit <= upper < limit:
            yield out_of_range("upper", name, upper)
        elif lower >= size + upper:
            left = f"a box that begins at {lower}: {upper} ends it at {size + upper}"
            yield Violation(Error.CORNER, "upper", upper, f"upper corner in {name} must leave {left}")
    yield from _channel_rules(t, Interleave(t.interleave), Element(t.element))
    if not 1 <= t.pixels <= 1024:
        yield _wrong("pixels", t.pixels, "1 to 1024")


def _channel_rules(t, interleave, element):
    row_bytes = t.channels * element.bytes
    sentence = None
    if not 1 <= t.channels <= 256:
        sentence = f"channels must be 1 to 256, not {t.channels}"
    elif interleave and row_bytes != interleave.bytes:
        sentence = f"channels must fill a slice of {interleave.bytes} bytes: {t.channels} channels are {row_bytes}"
    elif row_bytes % 16 and not interleave and not t.unaligned:
        sentence = f"channels must make rows of a multiple of 16 bytes: {t.channels} channels are {row_bytes}"
    if sentence:
        yield Violation(Error.CHANNELS, "channels", t.channels, sentence)
