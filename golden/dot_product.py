"""Dot products as the processing engine computes them (docs/pe.md, "Numbers"), many at once."""

from dataclasses import dataclass

import numpy as np

from tilewright.spec.pe import MmType, SegmentElement

from .arguments import array, member, numbers, shown

__all__ = ["WINDOW", "dot", "mm_type", "operand", "segment_elements", "values"]

#: W: places to which the terms of a sum of floats are cut.
WINDOW = 48

_NAN = 0x7FC00000
_INFINITY = 0x7F800000
#: Weight (its log2) of the last place of a subnormal fp32 number.
_LAST_PLACE = -149
#: More than any term or sum has bits; shifts by more are the same.
_FAR = 62


def dot(acc, a, b, type):  # noqa: A002 - what the instruction calls it
    """``acc`` plus the sum of ``a[e] * b[e]``.

    Parameters
    ----------
    acc : array_like of shape (...)
        Accumulators, raw 32 bits.
    a, b : array_like of shape (..., n)
        Elements, raw bits.
    type : MmType or str
        What the elements are. Integers wrap; of floats the accumulator is fp32, and the sum is rounded once.

    Returns
    -------
    ndarray of uint32, of shape (...)
    """
    kind = member("type", MmType, type)
    acc, a, b = (numbers(name, values) for name, values in (("acc", acc), ("a", a), ("b", b)))
    if not _fit(acc, a, b):
        shapes = f"{a.shape} and {b.shape} with an acc of {acc.shape}"
        raise ValueError(f"a and b must have the shape of acc and a last dimension of elements, not {shapes}")
    if not kind.is_float:
        products = _integer(a, kind.bytes, not kind & 2) * _integer(b, kind.bytes, not kind & 1)
        # A sum that wraps at 2^64 is right modulo 2^32.
        return (acc + products.sum(axis=-1) & 0xFFFFFFFF).astype(np.uint32)
    exponent, mantissa = (5, 10) if kind == MmType.F16 else (8, 7)
    a, b = (_Number.of(values, exponent, mantissa) for values in (a, b))
    return _sum(_joined(a * b, _Number.of(acc[..., np.newaxis], 8, 23)))


def _fit(acc, a, b):
    """Whether there are sums of ``a`` times ``b`` for ``acc``, where shapes are broadcast."""
    if not a.ndim or not b.ndim:
        return False
    try:
        np.broadcast_shapes(np.broadcast_shapes(a.shape, b.shape)[:-1], acc.shape)
    except ValueError:
        return False
    return True


def _integer(bits, size, signed):
    """Raw bits of ``size`` bytes as numbers."""
    sign = 1 << 8 * size - 1
    return (bits ^ sign) - sign if signed else bits


@dataclass
class _Number:
    """Numbers (-1)^negative · significand · 2^low; ``top`` is the weight of the significand's highest place."""

    negative: np.ndarray
    significand: np.ndarray
    low: np.ndarray
    top: np.ndarray
    infinite: np.ndarray
    nan: np.ndarray

    @classmethod
    def of(cls, bits, exponent_bits, mantissa_bits):
        """Numbers of a format, from raw bits."""
        mantissa = bits & (1 << mantissa_bits) - 1
        exponent = bits >> mantissa_bits & (1 << exponent_bits) - 1
        negative = (bits >> exponent_bits + mantissa_bits & 1).astype(bool)
        special = exponent == (1 << exponent_bits) - 1
        hidden = (exponent > 0) & ~special
        bias = (1 << exponent_bits - 1) - 1
        low = np.maximum(exponent, 1) - bias - mantissa_bits
        return cls(
            negative,
            np.where(special, 0, mantissa | np.where(hidden, 1 << mantissa_bits, 0)),
            low,
            low + mantissa_bits,
            special & (mantissa == 0),
            special & (mantissa != 0),
        )

    def __mul__(self, other):
        infinite = self.infinite | other.infinite
        zero = ((self.significand == 0) & ~self.infinite) | ((other.significand == 0) & ~other.infinite)
        return _Number(
            self.negative ^ other.negative,
            self.significand * other.significand,
            self.low + other.low,
            self.top + other.top + 1,
            infinite,
            self.nan | other.nan | (infinite & zero),
        )


def _joined(products, accumulator):
    """All terms of each sum along the last axis."""
    return _Number(
        *(np.concatenate([value, vars(accumulator)[name]], axis=-1) for name, value in vars(products).items())
    )


def _sum(terms):
    """Sums along the last axis, as raw fp32 bits."""
    there = terms.significand != 0
    # Where no term is there any number will do, for their sum is zero.
    highest = np.max(np.where(there, terms.top, -(1 << 20)), axis=-1, keepdims=True)
    up = terms.low - (highest - WINDOW + 1)
    left, right = np.clip(up, 0, _FAR), np.clip(-up, 0, _FAR)
    kept = np.where(there, terms.significand << np.where(there, left, 0) >> right, 0)
    lost = there & (kept << right >> left != terms.significand)
    places = 2 * kept + lost
    total = np.sum(np.where(terms.negative, -places, places), axis=-1)
    bits = _rounded(np.abs(total), highest[..., 0] - WINDOW)
    negative = (total < 0) | terms.negative.all(axis=-1)
    return _special(terms, np.where(negative, bits | 1 << 31, bits)).astype(np.uint32)


def _rounded(size, weight):
    """``size`` · 2^``weight`` to nearest even; raw fp32 bits."""
    length = np.zeros_like(size)
    rest = size
    for step in (32, 16, 8, 4, 2, 1):
        more = rest >> step != 0
        length += np.where(more, step, 0)
        rest = np.where(more, rest >> step, rest)
    # Weight of the result's last place: 24 places of which the first is a one, or that of the subnormals.
    last = np.maximum(weight + length - 23, _LAST_PLACE)
    left, right = np.clip(weight - last, 0, _FAR), np.clip(last - weight, 0, _FAR)
    exact = np.where(size != 0, size << np.where(size != 0, left, 0), 0)
    kept = exact >> right
    twice_rest = exact - (kept << right) << 1
    kept += (twice_rest > 1 << right) | ((twice_rest == 1 << right) & (kept & 1 == 1))
    # The hidden bit, and a carry out of the mantissa, count the exponent up.
    return np.where(size == 0, 0, np.minimum((last - _LAST_PLACE << 23) + kept, _INFINITY))


def _special(terms, bits):
    """What infinities and NaN among the terms make of a sum."""
    plus = (terms.infinite & ~terms.negative).any(axis=-1)
    minus = (terms.infinite & terms.negative).any(axis=-1)
    nan = terms.nan.any(axis=-1) | (plus & minus)
    infinity = np.where(minus, _INFINITY | 1 << 31, _INFINITY)
    return np.where(nan, _NAN, np.where(plus | minus, infinity, bits))


#: Names beside those of the members: both operands alike, and the usual name of half precision.
_SHORT = {"s8": MmType.S8S8, "u8": MmType.U8U8, "s16": MmType.S16S16, "u16": MmType.U16U16, "fp16": MmType.F16}
#: Names of numpy types, by those of elements.
_NUMPY = {"s8": "int8", "u8": "uint8", "s16": "int16", "u16": "uint16", "f16": "float16", "bf16": "bfloat16",
          "s32": "int32", "u32": "uint32", "f32": "float32"}  # fmt: skip


def mm_type(value):
    """The ``MmType`` of a member, its number, or its name: ``"s8s8"``, ``"u16s16"``, ``"f16"``, ``"bf16"`` …

    One letter and size stand for both operands: ``"s8"`` is ``"s8s8"``.
    """
    return member("type", MmType, value, _SHORT)


def segment_elements(kind):
    """Elements of A, B and C."""
    if kind.is_float:
        return SegmentElement[kind.name], SegmentElement[kind.name], SegmentElement.F32
    size = 8 * kind.bytes
    a, b = (SegmentElement[f"{'U' if kind & unsigned else 'S'}{size}"] for unsigned in (2, 1))
    return a, b, SegmentElement.S32 if a.name[0] == b.name[0] == "S" else SegmentElement.U32


def operand(name, values, kind, element):
    """An operand of ``element`` in native byte order; TypeError if its type is another, ValueError if it is empty.

    Unsigned integers of the element's size are raw bits, and fit every type.
    """
    array(name, values)
    own, raw = _NUMPY[element.name.lower()], f"uint{8 * element.bytes}"
    if values.dtype.name not in (own, raw):
        wanted = own if own == raw else f"{own}, or {raw} as raw bits,"
        raise TypeError(f"{name} must be an array of {wanted} for type {kind.name.lower()}, not {shown(values)}")
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def values(bits, element):
    """Raw bits as numbers of the element's type."""
    return bits.view(_NUMPY[element.name.lower()])
