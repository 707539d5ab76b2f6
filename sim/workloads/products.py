"""Workloads of products: the 8 × 8 DCT of a photograph, every type, and threads that share a row or a product."""

import ml_dtypes
import numpy as np

from .findings import Findings

__all__ = ["MATRIX", "MERGES", "TYPES", "play_dct", "play_gemm", "play_threads", "restored", "rounded"]

_BLOCK = 8
_FRACTION = 7  # fraction bits of the matrix
_DROPPED = 2  # bits that are rounded off between the two products, so that 16 remain
_TRANSFORMED = (208, 320)  # height and width of the part that is transformed


def _cosines():
    frequency, place = np.indices((_BLOCK, _BLOCK))
    scale = np.where(frequency == 0, np.sqrt(1 / _BLOCK), np.sqrt(2 / _BLOCK))
    return scale * np.cos((2 * place + 1) * frequency * np.pi / (2 * _BLOCK))


#: The matrix of the DCT in units of 1/128.
MATRIX = np.round((1 << _FRACTION) * _cosines()).astype(np.int8)


def play_dct(multiplier, photographs):
    """Transforms the grey photograph, assuming a mean of 128, and transforms it back with the inverse of the matrix."""
    grey = photographs[0].mean(axis=2).round().astype(np.uint8)
    height, width = (min(size, limit) // _BLOCK * _BLOCK for size, limit in zip(grey.shape, _TRANSFORMED, strict=True))
    grey = grey[:height, :width]
    down, across = height // _BLOCK, width // _BLOCK
    # As many threads for each row as the engine has for eight rows.
    ka = min(max(multiplier.params.threads // _BLOCK, 1), 4)

    # Block rows side by side, as in memory: N is dimension 0.
    pixels = (grey ^ 0x80).view(np.int8).reshape(down, _BLOCK, width).transpose(1, 0, 2).reshape(_BLOCK, -1)
    columns = multiplier.product(MATRIX, pixels, case="left", transpose=1, ka=ka).view(np.int32)
    # [frequency down, block down, block across, column] to [column, block down, block across, frequency down]
    turned = rounded(columns).reshape(_BLOCK, down, across, _BLOCK).transpose(3, 1, 2, 0).reshape(_BLOCK, -1)
    both = multiplier.product(MATRIX.astype(np.int16), turned, case="right", ka=ka).view(np.int32)

    # [block down, block across, frequency down, frequency across]
    coefficients = both.reshape(_BLOCK, down, across, _BLOCK).transpose(1, 2, 3, 0)
    back = restored(coefficients).transpose(0, 2, 1, 3).reshape(height, width)
    multiplier.totals.require(back, grey, "the photograph brought back")
    return Findings(
        facts=(f"{width} x {height} pixels, {down * across:,} blocks; the inverse brings back every pixel",),
        pictures={
            "The photograph in grey": _shown(grey),
            "Magnitudes of its DCT coefficients in each block; brighter is larger": _shown(
                _brightness(coefficients).transpose(0, 2, 1, 3).reshape(height, width)
            ),
            "The photograph, brought back from the coefficients": _shown(back),
        },
        cases=multiplier.cases,
    )


def rounded(sums):
    """Sums of the first product, shortened to 16 bits: the lowest bits are rounded off."""
    return (sums + (1 << _DROPPED - 1) >> _DROPPED).astype(np.int16)


def restored(coefficients):
    """Pixels of blocks, from coefficients in units of 2^-12, by the inverse of ``MATRIX``."""
    inverse = np.linalg.inv(MATRIX.astype(float))
    blocks = inverse @ (coefficients.astype(float) * (1 << _DROPPED)) @ inverse.T
    return (blocks.round() + 128).astype(np.uint8)


def _brightness(coefficients):
    """Magnitudes on a logarithmic scale from 0 to 255."""
    size = np.log1p(np.abs(coefficients) / (1 << 2 * _FRACTION - _DROPPED))
    return (255 * size / np.log1p(128 * _BLOCK)).astype(np.uint8)


def _shown(grey):
    return np.repeat(grey[..., np.newaxis], 3, axis=2)


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


def play_gemm(multiplier, photographs):
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


#: Threads that share a row, each with columns of its own (ka), and that share a product (kb).
MERGES = ((1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (2, 2))
_MOST = 4  # threads a row
_K, _SMALL_K = 2048, 128
_PERIOD = 128  # period of B along K, in elements, so that not all of it must be in memory


def play_threads(multiplier, photographs):
    """Multiplies the same matrices with each merge, without photographs."""
    threads = multiplier.params.threads
    rows, columns, k = threads // _MOST, 4 * threads, _SMALL_K if multiplier.small else _K
    generator = np.random.default_rng(2)
    a, period = (generator.integers(-128, 128, shape, np.int8) for shape in ((rows, k), (_PERIOD, columns)))
    b = np.tile(period, (k // _PERIOD, 1))
    idle = []
    for ka, kb in MERGES:
        name = _name(ka, kb)
        multiplier.product(a, b, case=name, repeated=True, ka=ka, kb=kb)
        idle.append(f"{name} {threads - rows * ka * kb}")
    alone = multiplier.cases[_name(1, 1)].cycles
    gains = ", ".join(f"{name} {alone / totals.cycles:.2f}" for name, totals in multiplier.cases.items())
    return Findings(
        facts=(
            f"{rows} rows on {threads} threads, {columns} columns, K of {k}, s8; idle threads: {', '.join(idle)}",
            f"times as fast as ka1: {gains}",
        ),
        cases=multiplier.cases,
    )


def _name(ka, kb):
    """The merge as in the text of an instruction; a part that is 1 is left out if the other one is not."""
    return "".join(f"{name}{count}" for name, count in (("ka", ka), ("kb", kb)) if count > 1) or "ka1"
