"""The 8 × 8 DCT of a photograph: blocks are multiplied by a matrix of cosines from the left and from the right."""

import numpy as np

from .findings import Findings

__all__ = ["MATRIX", "SUMMARY", "play", "restored", "rounded"]

SUMMARY = "8 x 8 DCT of a photograph in integers, and its inverse"

_BLOCK = 8
_FRACTION = 7  # fraction bits of the matrix
_DROPPED = 2  # bits that are rounded off between the two products, so that 16 remain
_PART = (208, 320)  # height and width of the part that is transformed


def _cosines():
    frequency, place = np.indices((_BLOCK, _BLOCK))
    scale = np.where(frequency == 0, np.sqrt(1 / _BLOCK), np.sqrt(2 / _BLOCK))
    return scale * np.cos((2 * place + 1) * frequency * np.pi / (2 * _BLOCK))


#: The matrix of the DCT in units of 1/128.
MATRIX = np.round((1 << _FRACTION) * _cosines()).astype(np.int8)


def play(multiplier, photographs):
    """Transforms the grey photograph, assuming a mean of 128, and transforms it back with the inverse of the matrix."""
    grey = photographs[0].mean(axis=2).round().astype(np.uint8)
    height, width = (min(size, limit) // _BLOCK * _BLOCK for size, limit in zip(grey.shape, _PART, strict=True))
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
