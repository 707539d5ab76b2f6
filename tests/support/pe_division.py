"""Integer division as RISC-V's M extension defines it, from Python's numbers; and operands for it."""

import numpy as np

from tilewright.spec.arithmetic import Function

__all__ = ["INTEGERS", "divide", "integer_operands"]

INTEGERS = (Function.DIV, Function.DIVU, Function.REM, Function.REMU)

_CORNERS = sorted({0, 1, 2, 3, 5, 7, 255, 256, 1023, 1024, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x55555555, 0x7FFFFFFE,
                   0x7FFFFFFF, 0x80000000, 0x80000001, 0xAAAAAAAA, 0xFFFF0000, 0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF}
                  | {1 << bit for bit in range(32)})  # fmt: skip


def integer_operands(rng, count):
    """All pairs of corners, and ``count`` pairs of words that have any number of bits."""
    corners = np.array(_CORNERS, np.uint32)
    pairs = []
    for words in np.meshgrid(corners, corners):
        chosen = rng.integers(0, 1 << 32, count, dtype=np.uint32) >> rng.integers(0, 32, count).astype(np.uint32)
        inverted = rng.integers(0, 2, count, dtype=np.uint32) * np.uint32(0xFFFFFFFF)
        pairs.append(np.concatenate([words.reshape(-1), chosen ^ inverted]))
    return pairs


def divide(function, a, b):
    """Results of a division of each pair, as uint32."""
    return np.array([_one(function, int(x), int(y)) & 0xFFFFFFFF for x, y in zip(a, b, strict=True)], np.uint32)


def _one(function, a, b):
    if function in (Function.DIV, Function.REM):
        a, b = (word - (1 << 32) if word >> 31 else word for word in (a, b))
    remains = function in (Function.REM, Function.REMU)
    if b == 0:
        return a if remains else -1
    quotient = abs(a) // abs(b)
    if (a < 0) != (b < 0):
        quotient = -quotient
    return a - quotient * b if remains else quotient
