"""Tiles along all edges of a picture, half or completely outside, with every fill and four float types."""

import ml_dtypes
import numpy as np

from .findings import Findings
from .mover import Box

__all__ = ["ELEMENTS", "FILLS", "SUMMARY", "play"]

SUMMARY = "tiles half or completely outside; fill zero, NaN, constant; f16 bf16 f32 tf32"

#: Element types of the maps, and numpy types of their arrays.
ELEMENTS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32}
#: Fills of the maps. The constant is 1.0 in bf16, and 1.875 in the upper half of an f16 pair.
FILLS = ("zero", "nan", {"constant": 0x3F803F80})
_ROW_BYTES, _ROWS = 64, 16  # of a tile
_FAR = (-(1 << 31), (1 << 31) - 1)


def play(mover, photographs):
    """Moves the ring of tiles for each type and fill: first tiles completely outside, then tiles cut by each edge."""
    grey = photographs[1].mean(axis=2)
    grey = (grey - grey.mean()) / grey.std()
    kinds = {"wholly outside": [], "cut at the left or right": [], "cut at the top or bottom": []}
    for element, dtype in ELEMENTS.items():
        array = grey.astype(dtype)
        for fill in FILLS:
            tmap = mover.tiled(array, box=(_ROW_BYTES // array.itemsize, _ROWS), element=element, fill=fill)
            for start in _ring(tmap):
                kinds[_kind(tmap, start)].append(Box(tmap, start))
    return Findings(facts=tuple(_play_kind(mover, kind, boxes) for kind, boxes in kinds.items()))


def _play_kind(mover, kind, boxes):
    """Moves the boxes and returns a sentence with their rate."""
    totals = mover.totals
    cycles, limit = totals.steady_cycles, totals.steady_limit
    for _ in mover.move(boxes):
        pass
    cycles, limit = totals.steady_cycles - cycles, totals.steady_limit - limit
    return f"{len(boxes)} tiles {kind}: steady {limit / max(cycles, 1):.1%} of the limit"


def _ring(tmap):
    """Starts of the tiles that cross the edge or lie just outside, half a tile off the grid, and of four far away."""
    (wide, high), (width, height) = tmap.box, tmap.size
    for y in range(-3 * high // 2, height + high, high):
        for x in range(-3 * wide // 2, width + wide, wide):
            if not (0 <= x <= width - wide and 0 <= y <= height - high):
                yield x, y
    yield from ((x, y) for x in _FAR for y in _FAR)


def _kind(tmap, start):
    """The position of a box: completely outside, or cut by which edges; if whole rows are outside, top or bottom."""
    (x, y), (wide, high), (width, height) = start, tmap.box, tmap.size
    if x + wide <= 0 or x >= width or y + high <= 0 or y >= height:
        return "wholly outside"
    return "cut at the left or right" if 0 <= y <= height - high else "cut at the top or bottom"
