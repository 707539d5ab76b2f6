"""Workloads of tiles: a photograph with halos, blocks of a video, and tiles along all edges of a picture."""

import ml_dtypes
import numpy as np

from .findings import Findings
from .mover import Box
from .photographs import PIXEL_BYTES, padded_pixels

__all__ = ["ELEMENTS", "FILLS", "FRAMES", "frames", "play_borders", "play_photo", "play_video"]

_CORE, _HALO = 8, 1
_TILE = _CORE + 2 * _HALO


def play_photo(mover, photographs):
    """Moves a photograph in tiles of 8 × 8 pixels with a halo of one, as a 3 × 3 convolution reads them."""
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


#: Frames of each photograph.
FRAMES = 8
_BLOCK = (PIXEL_BYTES, 8, 4, 2, 2)  # C, W, H, T, N: both photographs at a time


def frames(pixels):
    """The frames as a view, N T H W C: each frame is a quarter as wide and high, and further to the right.

    No byte is copied: the stride of T is a few pixels, so that frames overlap in memory.
    """
    count, height, width, channels = pixels.shape
    high, wide = height // 4, width // 4
    step = (width - wide) // (FRAMES - 1)
    n, h, w, c = pixels.strides
    middle = pixels[:, (height - high) // 2 :]
    return np.lib.stride_tricks.as_strided(
        middle, (count, FRAMES, high, wide, channels), (n, step * w, h, w, c), writeable=False
    )


def play_video(mover, photographs):
    """Moves windows that pan over the photographs in blocks of five dimensions, and reassembles the frames."""
    video = frames(padded_pixels(photographs))
    tmap = mover.tiled(video, box=_BLOCK)
    boxes = [
        Box(tmap, (0, x, y, t, 0))
        for t in range(0, FRAMES, _BLOCK[3])
        for y in range(0, video.shape[2], _BLOCK[2])
        for x in range(0, video.shape[3], _BLOCK[1])
    ]
    _, wide, high, long, both = _BLOCK
    # Space for the parts of the last blocks past the edge.
    seen = np.full((both, FRAMES, video.shape[2] + high, video.shape[3] + wide, 3), 255, np.uint8)
    for batch in mover.move(boxes):
        for box, address in batch.boxes:
            _, x, y, t, _ = box.coords
            block = batch.rows(tmap, address).reshape(both, long, high, wide, PIXEL_BYTES)
            seen[:, t : t + long, y : y + high, x : x + wide] = block[..., :3]
    seen = seen[:, :, : video.shape[2], : video.shape[3]]
    mover.totals.require(seen, video[..., :3], "the video put together again")
    return Findings(
        facts=(f"2 x {FRAMES} frames of {video.shape[3]} x {video.shape[2]} pixels, each block 8 x 4 x 2 x 2 of them",),
        pictures={"Every frame of the video, from its blocks": np.vstack([np.hstack(list(film)) for film in seen])},
    )


#: Element types of the maps, and numpy types of their arrays.
ELEMENTS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32}
#: Fills of the maps. The constant is 1.0 in bf16, and 1.875 in the upper half of an f16 pair.
FILLS = ("zero", "nan", {"constant": 0x3F803F80})
_ROW_BYTES, _ROWS = 64, 16  # of a tile
_FAR = (-(1 << 31), (1 << 31) - 1)


def play_borders(mover, photographs):
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
    return Findings(facts=tuple(_move_kind(mover, kind, boxes) for kind, boxes in kinds.items()))


def _move_kind(mover, kind, boxes):
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
