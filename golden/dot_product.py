"""Dot products as the processing engine computes them (docs/pe.md, "Numbers"), many at once."""

from dataclasses import dataclass

import numpy as np

from tilewright.spec.pe import MmType, SegmentElement

from .arguments import array, member, numbers, shown

__all__ = ["WINDOW", "dot", "mm_type", "operand", "segment_elements", "values"]

#: W: bits that the terms of a sum of floats are truncated to.
WINDOW = 48

_NAN = 0x7FC00000
_INFINITY = 0x7F800000
#: Log2 of the weight of the last place of a subnormal fp32 number.
_LAST_PLACE = -149
#: Largest shift: no term or sum has more bits.
_FAR = 62


def dot(acc, a, b, type):  # noqa: A002 - the name in the instruction
    """``acc`` plus the sum of ``a[e] * b[e]``.

    Parameters
    ----------
    acc : array_like of shape (...)
        Accumulators, raw 32 bits.
    a, b : array_like of shape (..., n)
        Elements, raw bits.
    type : MmType or str
        Of the elements. Integers wrap; floats have an fp32 accumulator, and the sum is rounded once.

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
        # A sum that wraps at 2^64 is correct modulo 2^32.
        return (acc + products.sum(axis=-1) & 0xFFFFFFFF).astype(np.uint32)
    exponent, mantissa = (5, 10) if kind == MmType.F16 else (8, 7)
    products = _Number.of(a, exponent, mantissa) * _Number.of(b, exponent, mantissa)
    accumulators = vars(_Number.of(acc[..., np.newaxis], 8, 23))
    terms = {name: np.concatenate([value, accumulators[name]], axis=-1) for name, value in vars(products).items()}
    return _sum(_Number(**terms))


def _fit(acc, a, b):
    """Whether the shapes can be broadcast: sums of ``a`` times ``b`` to ``acc``."""
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


def _sum(terms):
    """Sums along the last axis, as raw fp32 bits."""
    nonzero = terms.significand != 0
    # If all terms are zero, ``highest`` does not matter: their sum is zero.
    highest = np.max(np.where(nonzero, terms.top, -(1 << 20)), axis=-1, keepdims=True)
    up = terms.low - (highest - WINDOW + 1)
    left, right = np.clip(up, 0, _FAR), np.clip(-up, 0, _FAR)
    truncated = np.where(nonzero, terms.significand << np.where(nonzero, left, 0) >> right, 0)
    inexact = nonzero & (truncated << right >> left != terms.significand)
    size = 2 * truncated + inexact
    total = np.sum(np.where(terms.negative, -size, size), axis=-1)
    bits = _rounded(np.abs(total), highest[..., 0] - WINDOW)
    negative = (total < 0) | terms.negative.all(axis=-1)
    return _special(terms, np.where(negative, bits | 1 << 31, bits)).astype(np.uint32)


def _rounded(size, weight):
    """``size`` · 2^``weight`` rounded to nearest even; raw fp32 bits."""
    # The exponent of a float64 of a large ``size`` may be rounded up.
    length = np.frexp(size.astype(np.float64))[1].astype(np.int64) - 1
    length -= size < 1 << np.maximum(length, 0)
    # Weight of the result's last place: 23 places below the leading one, or the last place of subnormals.
    last = np.maximum(weight + length - 23, _LAST_PLACE)
    left, right = np.clip(weight - last, 0, _FAR), np.clip(last - weight, 0, _FAR)
    exact = np.where(size != 0, size << np.where(size != 0, left, 0), 0)
    mantissa = exact >> right
    twice_rest = exact - (mantissa << right) << 1
    mantissa += (twice_rest > 1 << right) | ((twice_rest == 1 << right) & (mantissa & 1 == 1))
    # The hidden bit, and a carry out of the mantissa, increment the exponent.
    return np.where(size == 0, 0, np.minimum((last - _LAST_PLACE << 23) + mantissa, _INFINITY))


def _special(terms, bits):
    """The sums ``bits``, but infinite or NaN where terms are."""
    plus = (terms.infinite & ~terms.negative).any(axis=-1)
    minus = (terms.infinite & terms.negative).any(axis=-1)
    nan = terms.nan.any(axis=-1) | (plus & minus)
    infinity = np.where(minus, _INFINITY | 1 << 31, _INFINITY)
    return np.where(nan, _NAN, np.where(plus | minus, infinity, bits))


#: Further names of members: one name for two equal operand types, and the usual name of half precision.
_SHORT = {"s8": MmType.S8S8, "u8": MmType.U8U8, "s16": MmType.S16S16, "u16": MmType.U16U16, "fp16": MmType.F16}
#: Names of numpy types by names of elements.
_NUMPY = {"s8": "int8", "u8": "uint8", "s16": "int16", "u16": "uint16", "f16": "float16", "bf16": "bfloat16",
          "s32": "int32", "u32": "uint32", "f32": "float32"}  # fmt: skip


def mm_type(value):
    """The ``MmType`` of a member, its number, or its name: ``"s8s8"``, ``"u16s16"``, ``"f16"`` …

    A single type stands for both operands: ``"s8"`` is ``"s8s8"``.
    """
    return member("type", MmType, value, _SHORT)


def segment_elements(kind):
    """Element types of A, B and C."""
    if kind.is_float:
        return SegmentElement[kind.name], SegmentElement[kind.name], SegmentElement.F32
    size = 8 * kind.bytes
    a, b = (SegmentElement[f"{'U' if kind & unsigned else 'S'}{size}"] for unsigned in (2, 1))
    return a, b, SegmentElement.S32 if a.name[0] == b.name[0] == "S" else SegmentElement.U32


def operand(name, values, kind, element):
    """An operand of type ``element`` in native byte order; TypeError for another type, ValueError if it is empty.

    Unsigned integers of the element's size are raw bits of any type.
    """
    array(name, values)
    exact, raw = _NUMPY[element.name.lower()], f"uint{8 * element.bytes}"
    if values.dtype.name not in (exact, raw):
        types = exact if exact == raw else f"{exact}, or {raw} as raw bits,"
        raise TypeError(f"{name} must be an array of {types} for type {kind.name.lower()}, not {shown(values)}")
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def values(bits, element):
    """Raw bits as numbers of the element's type."""
    return bits.view(_NUMPY[element.name.lower()])
