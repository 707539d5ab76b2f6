"""Blocks of a video: windows that pan over the photographs, a tensor of five dimensions whose frames overlap."""

import numpy as np

from .findings import Findings
from .mover import Box
from .photographs import PIXEL_BYTES, padded_pixels

__all__ = ["FRAMES", "SUMMARY", "frames", "play"]

SUMMARY = "frames panned over both photographs, 5-D blocks (N T H W C)"

#: Frames of each photograph.
FRAMES = 8
_BOX = (PIXEL_BYTES, 8, 4, 2, 2)  # C, W, H, T, N: both photographs at a time


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


def play(mover, photographs):
    """Moves every block, and reassembles the frames."""
    video = frames(padded_pixels(photographs))
    tmap = mover.tiled(video, box=_BOX)
    boxes = [
        Box(tmap, (0, x, y, t, 0))
        for t in range(0, FRAMES, _BOX[3])
        for y in range(0, video.shape[2], _BOX[2])
        for x in range(0, video.shape[3], _BOX[1])
    ]
    _, wide, high, long, both = _BOX
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
