"""A whole photograph in 10 × 10 tiles: 8 × 8 pixels with a halo of one, as a 3 × 3 convolution reads them."""

import numpy as np

from .findings import Findings
from .mover import Box
from .photographs import PIXEL_BYTES, padded_pixels

__all__ = ["SUMMARY", "play"]

SUMMARY = "a photograph, NHWC bytes, in 10 x 10 halo tiles, reassembled"

_CORE, _HALO = 8, 1
_TILE = _CORE + 2 * _HALO


def play(mover, photographs):
    """Moves every tile of the first photograph, and reassembles the photograph from shared memory."""
    photo = photographs[0]
    height, width, _ = photo.shape
    tmap = mover.tiled(padded_pixels(photographs[:1]), box=(PIXEL_BYTES, _TILE, _TILE, 1))
    rows, columns = range(0, height, _CORE), range(0, width, _CORE)
    boxes = [Box(tmap, (0, x - _HALO, y - _HALO, 0)) for y in rows for x in columns]
    seen = np.zeros((len(rows) * _CORE, len(columns) * _CORE, 3), np.uint8)
    for batch in mover.move(boxes):
        for box, address in batch.boxes:
            tile = batch.rows(tmap, address).reshape(_TILE, _TILE, PIXEL_BYTES)
            x, y = (coord + _HALO for coord in box.coords[1:3])
            seen[y : y + _CORE, x : x + _CORE] = tile[_HALO:-_HALO, _HALO:-_HALO, :3]
    seen = seen[:height, :width]
    mover.totals.require(seen, photo, "the photograph put together again")
    return Findings(
        facts=(f"{width} x {height} pixels in {len(boxes)} tiles; a pixel is stored as 16 bytes, 3 of them colours",),
        pictures={"The photograph, put together again from the tiles in shared memory": seen},
    )
