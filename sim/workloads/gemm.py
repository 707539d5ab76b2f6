"""A product of square matrices in each type of the processing engine, split into programs that fit shared memory."""

import ml_dtypes
import numpy as np

from .findings import Findings

__all__ = ["SUMMARY", "TYPES", "play"]

SUMMARY = "256 x 256 x 256 products in each type, split by rows, columns and K"

#: Types of A and B, by name of the row.
TYPES = {
    "s8": (np.int8, np.int8),
    "u8": (np.uint8, np.uint8),
    "s8u8": (np.int8, np.uint8),
    "u8s8": (np.uint8, np.int8),
    "s16": (np.int16, np.int16),
    "f16": (np.float16, np.float16),
    "bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
}
_SHAPE = (256, 256, 256)  # M, N and K
_SMALL_SHAPE = (16, 16, 32)


def play(multiplier, photographs):
    """Multiplies random matrices, without photographs."""
    m, n, k = _SMALL_SHAPE if multiplier.small else _SHAPE
    generator = np.random.default_rng(1)
    for name, (first, second) in TYPES.items():
        if not multiplier.takes(first, second):
            continue
        a, b = _matrix(generator, (m, k), first), _matrix(generator, (k, n), second)
        multiplier.product(a, b, case=name)
    programs = ", ".join(f"{name} {totals.parts}" for name, totals in multiplier.cases.items())
    return Findings(
        facts=(f"{m} x {n} x {k} in each type that there is; programs: {programs}",), cases=multiplier.cases
    )


def _matrix(generator, shape, dtype):
    """Random integers of the whole range, or normally distributed floats."""
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return generator.integers(info.min, info.max, shape, dtype, endpoint=True)
    return generator.standard_normal(shape).astype(dtype)
