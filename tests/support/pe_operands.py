"""Operands for blocks of the processing engine: a model of its register file, and rows for dot products."""

import numpy as np
from amaranth.hdl import Value

from tilewright.hw.pe.layouts import LANE_READ_LATENCY
from tilewright.hw.pe.params import LANES
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.streams import set_together, unpacker

__all__ = ["STYLES", "dot_rows", "join_elements", "lane_registers"]


def lane_registers(port, words, rng, *, busy=0.0):
    """A background testbench that answers exactly when it must; in all other cycles the data are random.

    Parameters
    ----------
    port : interface of LaneReadSignature
    words : function of register, group
        Returns the words of all lanes.
    rng : random.Random
    busy : float
        Probability that no read is accepted in a cycle.
    """

    async def answer(ctx):
        requests, reads = port.requests, [None] * LANE_READ_LATENCY
        ctx.set(requests.ready, 1)
        signals = (requests.valid, requests.ready, Value.cast(requests.payload))
        unpack = unpacker(requests.payload.shape())
        async for _, _, valid, ready, bits in ctx.tick().sample(*signals):
            read = unpack(bits)
            reads = [*reads[1:], (read.register, read.group) if valid and ready else None]
            row = words(*reads[0]) if reads[0] else [rng.getrandbits(32) for _ in range(LANES)]
            set_together(ctx, (port.data, row), (requests.ready, rng.random() >= busy))

    return answer


_FP32 = (8, 23)
_FORMATS = {MmType.F16: (5, 10), MmType.BF16: (8, 7)}


def dot_rows(rng, kind, count, elements):
    """Random rows, in every style that the type has in turn.

    Parameters
    ----------
    rng : numpy Generator
    kind : MmType
    count, elements : int
        Rows, and elements of each factor in a row.

    Returns
    -------
    accumulators : ndarray of uint32, of shape (count,)
    a, b : ndarray of uint8 or uint16, of shape (count, elements)
        Raw bits.
    """
    styles = STYLES if kind.is_float else (_corner_integers, _any_bits)
    parts = []
    for number, style in enumerate(styles):
        size = len(range(number, count, len(styles)))
        parts.append([np.asarray(values) for values in style(rng, kind, size, elements)])
    accumulators, a, b = (np.concatenate(column) for column in zip(*parts, strict=True))
    element = f"u{kind.bytes}"
    return accumulators.astype("u4"), a.astype(element), b.astype(element)


def join_elements(elements):
    """Rows of elements as rows of bytes, the first element first."""
    return np.ascontiguousarray(elements.astype(elements.dtype.newbyteorder("<"))).view(np.uint8)


def _any_bits(rng, kind, count, elements):
    """Any bits at all."""
    a, b = rng.integers(0, 1 << 8 * kind.bytes, (2, count, elements))
    return rng.integers(0, 1 << 32, count), a, b


def _corner_integers(rng, kind, count, elements):
    """The least and largest numbers, signed or not, and those beside them and zero."""
    bits = 8 * kind.bytes
    corners = np.array([0, 1, 2, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits - 1) + 1, (1 << bits) - 1])
    a, b = rng.choice(corners, (2, count, elements))
    return rng.choice([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], count), a, b


def _pack(negative, exponent, mantissa, fmt):
    exponent_bits, mantissa_bits = fmt
    return np.asarray(negative) << exponent_bits + mantissa_bits | np.asarray(exponent) << mantissa_bits | mantissa


def _corners(fmt):
    """Zero, the ends of the subnormal and the normal numbers, one, and what is beside them; of either sign."""
    exponent_bits, mantissa_bits = fmt
    exponents = (0, 1, (1 << exponent_bits - 1) - 1, (1 << exponent_bits) - 2)
    mantissas = (0, 1, (1 << mantissa_bits) - 1, 1 << mantissa_bits - 1)
    return np.array([_pack(sign, e, mantissa, fmt) for sign in (0, 1) for e in exponents for mantissa in mantissas])


def _classes(fmt):
    """Zero, a subnormal number, one, and infinity, of either sign; and a NaN."""
    one, top = (1 << fmt[0] - 1) - 1, (1 << fmt[0]) - 1
    numbers = [_pack(sign, exponent, 0, fmt) for sign in (0, 1) for exponent in (0, one, top)]
    return np.array([*numbers, 1, _pack(1, 0, 1, fmt), _pack(0, top, 1, fmt)])


def _special(rng, kind, count, elements):
    """Infinities and NaN, in about half the accumulators and one element of a row or two."""
    fmt = _FORMATS[kind]
    a, b = rng.choice(_classes(fmt), (2, count, elements))
    # With more of them hardly a row would not be NaN.
    usual = rng.random(a.shape) > 1 / elements
    a[usual] = rng.choice([0, 1], np.count_nonzero(usual)) << sum(fmt)
    b[usual] = rng.choice(_corners(fmt), np.count_nonzero(usual))
    return rng.choice(_classes(_FP32), count), a, b


def _corner_floats(rng, kind, count, elements):
    """Ends of the subnormal and normal numbers: overflow, and the least numbers there are."""
    a, b = rng.choice(_corners(_FORMATS[kind]), (2, count, elements))
    return rng.choice(_corners(_FP32), count), a, b


def _signed_zeros(rng, kind, count, elements):
    """Products that are zeros; in half the rows all are negative, in the other half one or none is not."""
    fmt = _FORMATS[kind]
    a = rng.choice(_corners(fmt), (count, elements))
    zero = (a >> sum(fmt) & 1 ^ 1) << sum(fmt)
    odd = (np.arange(elements) == rng.integers(0, elements, (count, 1))) & (rng.random((count, 1)) < 0.5)
    return rng.choice([0x80000000, 0x80000000, 0, 1], count), a, zero ^ odd.astype(int) << sum(fmt)


def _near(rng, kind, count, elements, spread):
    """Finite numbers; exponents of products, and of the accumulator, lie within ``spread`` of one another."""
    exponent_bits, mantissa_bits = _FORMATS[kind]
    top = (1 << exponent_bits) - 2
    bias = (1 << exponent_bits - 1) - 1
    middle = rng.integers(1, top + 1, (count, 1))
    a_exponent = np.clip(middle + rng.integers(-spread // 2, spread // 2 + 1, (count, elements)), 0, top)
    b_exponent = np.clip(middle + rng.integers(-spread // 2, spread // 2 + 1, (count, elements)), 0, top)
    signs = rng.integers(0, 2, (2, count, elements))
    # Few ones in many mantissas: sums that are ties.
    mantissas = rng.integers(0, 1 << mantissa_bits, (2, count, elements)) & -(1 << mantissa_bits >> 1) >> rng.integers(
        0, mantissa_bits, (2, count, elements)
    )
    a = _pack(signs[0], a_exponent, mantissas[0], (exponent_bits, mantissa_bits))
    b = _pack(signs[1], b_exponent, mantissas[1], (exponent_bits, mantissa_bits))
    exponent = 2 * (middle[:, 0] - bias) + 127 + rng.integers(-spread, spread + 1, count)
    mantissa = rng.integers(0, 1 << 23, count) & -1 << rng.integers(0, 24, count)
    return _pack(rng.integers(0, 2, count), np.clip(exponent, 0, 254), mantissa, _FP32), a, b


def _close(rng, kind, count, elements):
    """Terms of which most have places in common."""
    return _near(rng, kind, count, elements, 12)


def _far(rng, kind, count, elements):
    """Terms that reach past the window's end."""
    return _near(rng, kind, count, elements, 64)


def _cancelling(rng, kind, count, elements):
    """The second half of a row cancels the terms of the first, sometimes except the last place of one term."""
    accumulators, a, b = _near(rng, kind, count, elements, 24)
    half = elements // 2
    sign = 1 << sum(_FORMATS[kind])
    a[:, half : 2 * half] = a[:, :half] ^ sign
    b[:, half : 2 * half] = b[:, :half] ^ rng.integers(0, 2, (count, half)) * (rng.random((count, half)) < 1 / elements)
    small = rng.choice(_corners(_FP32), count)
    return np.where(rng.random(count) < 0.5, accumulators, small), a, b


def _ties(rng, kind, count, elements):
    """An accumulator, half of its last place, and something much smaller or nothing, of any sign."""
    fmt = _FORMATS[kind]
    bias = (1 << fmt[0] - 1) - 1
    # Products of powers of two: 2^(2 - 2 bias) to 2^bias or so; the accumulator is 24 places above one of them,
    # or a subnormal number beside the least.
    low = 2 - 2 * bias + 2
    place = rng.integers(max(low, -150), 20 if kind == MmType.F16 else 103, count)
    a, b = np.zeros((2, count, elements), np.int64)
    half, tiny = rng.integers(0, elements, (2, count))
    for index, weight in ((tiny, np.maximum(place - rng.integers(1, 70, count), low)), (half, place)):
        first = np.clip(weight // 2, 1 - bias, bias)
        second = np.clip(weight - first, 1 - bias, bias)
        rows = np.arange(count)
        a[rows, index] = _pack(rng.integers(0, 2, count), first + bias, 0, fmt)
        b[rows, index] = _pack(rng.integers(0, 2, count), second + bias, 0, fmt)
    nothing = rng.random(count) < 0.3
    a[nothing, tiny[nothing]] *= (tiny == half)[nothing]
    exponent = place + 24 + 127
    exponent = np.where(exponent == 1, rng.integers(0, 2, count), exponent)
    mantissa = rng.choice([0, 1, 2, 3, (1 << 23) - 1, (1 << 23) - 2], count)
    return _pack(rng.integers(0, 2, count), exponent, mantissa, _FP32), a, b


#: Styles of rows of floats that :func:`dot_rows` makes.
STYLES = (_any_bits, _special, _corner_floats, _signed_zeros, _close, _far, _cancelling, _ties)
