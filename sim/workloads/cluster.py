"""A photograph on four cores: each loads its part, multiplies it by filters of a multicast, and stores the sums."""

import numpy as np

from tilewright.golden import ClusterGemm

from .findings import Findings
from .photographs import PIXEL_BYTES, padded_pixels

__all__ = ["BANK", "SUMMARY", "direct", "play"]

SUMMARY = "a photograph filtered by programs on four cores; one core loads the filters for all by multicast"

_PART = (48, 96)  # height and width of the part that is filtered

_LINES = np.array([[1, 2, 1], [-1, 0, 1], [-1, 2, -1]])  # level, edge, spot
#: Filters, each of 3 × 3: the product of a column and a row.
BANK = np.array([np.outer(down, across) for down in _LINES for across in _LINES])
#: Divisor of a sum of three colours in the picture, so that most sums fit in a byte.
_SCALES = np.array([48] + [12] * (len(BANK) - 1))


def play(crew, photographs):
    """Filters the photograph by programs on all cores; the stored sums must equal the direct result."""
    photo = photographs[0][: _PART[0], : _PART[1]]
    height, width, colours = photo.shape
    params = crew.params
    gemm = ClusterGemm(
        padded_pixels([photo]), _kernel(), "u8s8", params.cores, padding=(1, 1, 1, 1), sizes=params.core.pe,
        smem_bytes=params.smem.size_bytes,
    )  # fmt: skip
    (sums,) = crew.convolve(gemm, height * width * BANK.size * colours)
    crew.totals.require(sums, direct(photo), "the filtered photograph in global memory")
    return Findings(
        facts=(
            f"{width} x {height} pixels, {len(BANK)} filters, {gemm.plan.tiles} tiles of {gemm.plan.gemm.m} pixels on "
            f"{params.cores} cores; {PIXEL_BYTES - colours} of {PIXEL_BYTES} channels are zeros and give no MACs",
            *crew.facts(),
        ),
        pictures={"Nine filters, as four cores stored their sums": _sheet(sums)},
        charts={"When each core loaded (in), stored (out) and multiplied (engine)": crew.activity().svg()},
    )


def direct(photo):
    """Sums of the filters, height × width × filters, computed from shifted pictures with zeros around them."""
    height, width, _ = photo.shape
    around = np.pad(photo.sum(axis=2, dtype=np.int64), 1)
    return sum(around[y : y + height, x : x + width, None] * BANK[:, y, x] for y in range(3) for x in range(3))


def _kernel():
    """The bank as a kernel: filters × rows × columns × channels, int8; all colours have the same weight."""
    kernel = np.zeros((*BANK.shape, PIXEL_BYTES), np.int8)
    kernel[..., :3] = BANK[..., None]
    return kernel


def _sheet(sums):
    """Pictures of all filters, three in a line."""
    height, width, _ = sums.shape
    maps = np.clip(np.abs(sums) // _SCALES, 0, 255).astype(np.uint8)
    sheet = maps.reshape(height, width, 3, 3).transpose(2, 0, 3, 1).reshape(3 * height, 3 * width)
    return np.repeat(sheet[..., None], 3, 2)
