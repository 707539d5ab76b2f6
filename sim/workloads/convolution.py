"""A 3 × 3 convolution of a photograph: nine im2col loads for each run of pixels, one a tap; products in numpy."""

import numpy as np

from .findings import Findings
from .mover import Box
from .photographs import PIXEL_BYTES, padded_pixels

__all__ = ["FILTERS", "SUMMARY", "direct", "play"]

SUMMARY = "a 3 x 3 convolution by im2col loads, one for each tap, compared with a direct one"

_PART = (160, 240)  # height and width of the part that is convolved
_PIXELS = 128  # of one load

#: Three outputs, the same for each colour: blur, edges to the right, edges below.
FILTERS = np.array(
    [[[1, 2, 1], [2, 4, 2], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]]
)


def play(mover, photographs):
    """Loads every tap of every run of pixels and sums products; the result must equal the direct convolution."""
    photo = photographs[0][: _PART[0], : _PART[1]]
    height, width, _ = photo.shape
    tmap = mover.tiled(
        padded_pixels([photo]), box=(), mode="im2col", lower=(-1, -1), upper=(-1, -1), channels=PIXEL_BYTES,
        pixels=_PIXELS
    )  # fmt: skip
    firsts = range(0, height * width, _PIXELS)
    taps = [(x, y) for y in range(3) for x in range(3)]
    boxes = [Box(tmap, (0, first % width - 1, first // width - 1, 0), tap) for first in firsts for tap in taps]
    sums = np.zeros((len(firsts) * _PIXELS, len(FILTERS)), np.int64)
    for batch in mover.move(boxes):
        for box, address in batch.boxes:
            colours = batch.rows(tmap, address)[:, :3].sum(axis=1, dtype=np.int64)
            first = (box.coords[2] + 1) * width + box.coords[1] + 1
            x, y = box.offsets
            sums[first : first + _PIXELS] += colours[:, None] * FILTERS[:, y, x]
    seen = sums[: height * width].reshape(height, width, len(FILTERS))
    mover.totals.require(seen, direct(photo), "the convolution")
    edges = np.clip(np.abs(seen[..., 1:]).sum(axis=2) // 12, 0, 255).astype(np.uint8)
    return Findings(
        facts=(f"{width} x {height} pixels, {len(taps)} taps, {len(boxes)} im2col loads of {_PIXELS} pixels",),
        pictures={"Edges of the photograph, from pixels of im2col loads": np.repeat(edges[..., None], 3, 2)},
    )


def direct(photo):
    """The same convolution with zeros around the picture, by shifted sums."""
    height, width, _ = photo.shape
    around = np.pad(photo.sum(axis=2, dtype=np.int64), 1)
    return sum(around[y : y + height, x : x + width, None] * FILTERS[:, y, x] for y in range(3) for x in range(3))
