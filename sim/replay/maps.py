"""Descriptors and windows of replay cases (docs/replay.md); descriptors may break rules of hardware."""

from dataclasses import dataclass, replace

from tilewright.errors import UsageError
from tilewright.golden import DescriptorError, TensorMap, Windows
from tilewright.spec import DESCRIPTOR, Element, Error, Fill, Interleave, L2Promotion, Mode, Swizzle
from tilewright.spec.fields import names, spoken
from tilewright.spec.tmau_registers import MOST_PROCESSORS

from .fields import REQUIRED, Fields

__all__ = ["MapSpec", "map_fields", "read_placed_map", "read_processors", "read_window", "read_windows", "with_maps"]

_ANY = (-(1 << 63), (1 << 64) - 1)  # for numbers whose range is a rule of the descriptor


@dataclass(frozen=True)
class MapSpec:
    """One descriptor of a case.

    Attributes
    ----------
    tmap : TensorMap
        Without checks of its rules, since cases may test refusals.
    word : int or None
        The packed descriptor; None if a value cannot be encoded, so that software refuses it.
    refused : Error or None
        Code of the first broken rule.
    at : int or None
        Address of the descriptor in global memory; None: anywhere.
    """

    tmap: TensorMap
    word: int | None
    refused: Error | None
    at: int | None


def _read_map(fields):
    """Reads a :class:`MapSpec`, which may break rules of the descriptor but no others."""
    mode = fields.choice("mode", list(names(Mode)), "tile")
    values = {
        "mode": mode,
        "element": fields.choice("element", list(names(Element))),
        "address": fields.integer("address", 0, (1 << 64) - 1),
        "swizzle": fields.choice("swizzle", list(names(Swizzle)), "none"),
        "interleave": fields.choice("interleave", list(names(Interleave)), "none"),
        "fill": _read_fill(fields),
        "unaligned": fields.flag("unaligned", False),
        "gather0": fields.flag("gather0", False),
    }
    promotion = fields.choice("l2_promotion", [*names(L2Promotion), 64, 128, 256], "none")
    values["l2_promotion"] = f"{promotion}B" if isinstance(promotion, int) else promotion
    for name in ("size", "stride", "box", "traversal", "lower", "upper"):
        values[name] = fields.integers(name, *_ANY, REQUIRED if name == "size" else [])
    for name in ("channels", "pixels"):
        values[name] = fields.integer(name, *_ANY, REQUIRED if mode == "im2col" else 1)
    at = fields.integer("at", 0, (1 << 32) - 1, None)
    fields.end()
    try:
        tmap = TensorMap(**values, check=False)
    except ValueError as error:
        raise UsageError(f"{fields.case}: {fields.path}.{error}") from None
    return MapSpec(tmap, _packed(tmap), _first_broken_rule(tmap), at)


def map_fields(tmap):
    """A map as in a file, without defaults."""
    im2col = ("lower", "upper", "channels", "pixels") if tmap.mode == Mode.IM2COL else ("box",)
    fields = {}
    for name in ("address", "size", "stride", "traversal", *im2col):
        value = getattr(tmap, name)
        fields[name] = list(value) if isinstance(value, tuple) else value
    fields["element"] = spoken(tmap.element)
    for name in ("mode", "swizzle", "interleave", "l2_promotion"):
        if getattr(tmap, name):
            fields[name] = spoken(getattr(tmap, name))
    for name in ("unaligned", "gather0"):
        if getattr(tmap, name):
            fields[name] = True
    if tmap.fill:
        fields["fill"] = {"constant": tmap.fill_constant} if tmap.fill == Fill.CONSTANT else spoken(tmap.fill)
    return fields


def read_windows(fields):
    """The windows of a case: the first and the last byte of each."""
    if fields is None:
        return Windows()
    limits = [read_window(fields, name, bits) for name, bits in (("global", 64), ("shared", 32))]
    fields.end()
    return Windows(*limits)


def read_processors(fields):
    """Reads the windows of each processor, ``processors``, if several share the unit."""
    entries = fields.listed("processors", [])
    if len(entries) == 1 or len(entries) > MOST_PROCESSORS:
        raise fields.wrong("processors", f"must have 2 to {MOST_PROCESSORS} entries, not {len(entries)}")
    named = enumerate(entries)
    return tuple(read_windows(Fields(entry, fields.case, f"processors[{number}]")) for number, entry in named)


def read_window(fields, name, bits):
    """Reads the first and the last byte of a window, numbers of ``bits`` bits; None if it is missing."""
    pair = fields.integers(name, 0, (1 << bits) - 1, None)
    if pair is not None and len(pair) != 2:
        raise fields.wrong(name, f"must be first and last byte, not {len(pair)} numbers")
    return pair and tuple(pair)


def read_placed_map(fields, gmem_bytes, *windows):
    """Reads a map, whose descriptor must lie in global memory if a window is checked for it."""
    spec = _read_map(fields)
    if spec.at is None:
        if any(window.global_ for window in windows):
            raise fields.wrong("at", "must be given in a case with a global window")
    elif spec.word is None:
        raise fields.wrong("at", "must be omitted for a map that cannot be encoded")
    elif spec.at + DESCRIPTOR.bytes > gmem_bytes:
        raise fields.wrong("at", f"must keep the descriptor in the {gmem_bytes} bytes of gmem, not {spec.at}")
    return spec


def with_maps(gmem, maps):
    """``gmem``, a uint8 array, with the descriptors of ``maps`` that have addresses."""
    for spec in maps.values():
        if spec.at is not None:
            gmem[spec.at : spec.at + DESCRIPTOR.bytes] = list(spec.word.to_bytes(DESCRIPTOR.bytes, "little"))
    return gmem


def _read_fill(fields):
    if not isinstance(fields.peek("fill"), dict):
        return fields.choice("fill", ["zero", "nan"], "zero")
    inner = fields.inner("fill")
    constant = inner.integer("constant", 0, (1 << 32) - 1)
    inner.end()
    return {"constant": constant}


def _packed(tmap):
    try:
        return int.from_bytes(tmap.pack(), "little")
    except ValueError:
        return None


def _first_broken_rule(tmap):
    try:
        replace(tmap, check=True)
    except DescriptorError as error:
        return error.code
    return None
