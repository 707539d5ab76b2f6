"""A photograph loaded, and stored to another address, with every swizzle and interleave, and with traversal strides."""

from itertools import product

import numpy as np

from tilewright.golden.memory import memory_bytes

from .findings import Findings
from .photographs import PIXEL_BYTES, padded_pixels

__all__ = ["LAYOUTS", "SUMMARY", "play"]

SUMMARY = "a photograph loaded and stored again: swizzles, interleaves, traversals"

_PART = (96, 128)  # height and width of the part that is moved, if the photograph is so large
_TILE = (8, 2)  # width and height of a box

#: Name, bytes of a pixel, and options of the map. With interleave a pixel is a slice, and two slices make its channels.
LAYOUTS = (
    *((f"swizzle {name}", PIXEL_BYTES, {"swizzle": name}) for name in ("none", "32B", "64B", "128B")),
    ("interleave 16B", 16, {"interleave": "16B", "swizzle": "128B"}),
    ("interleave 32B", 32, {"interleave": "32B", "swizzle": "32B"}),
    ("traversal 2 and 3", PIXEL_BYTES, {"traversal": (1, 2, 3, 1)}),
    ("interleave 16B, traversal 2 and 3", 16, {"interleave": "16B", "traversal": (2, 3, 1, 1)}),
)


def play(mover, photographs):
    """Loads and stores the part in each layout; the copy must equal the original."""
    photo = photographs[0][: _PART[0], : _PART[1]]
    pixels = padded_pixels([photo])
    facts, back = [], None
    for name, pixel_bytes, options in LAYOUTS:
        before = mover.totals.cycles
        array, tmap, starts = _layout(mover, pixels, pixel_bytes, options)
        copy = mover.store_back(tmap, starts)
        original = memory_bytes(array)
        mover.totals.require(copy, original, f"the copy with {name}")
        facts.append(f"{name}: {2 * len(original)} bytes in {mover.totals.cycles - before} cycles there and back")
        if back is None:  # the first layout is the photograph's
            back = np.ascontiguousarray(copy.reshape(pixels.shape[1:])[..., :3])
            mover.totals.require(back, photo, "the photograph")
    return Findings(facts=tuple(facts), pictures={"The photograph, loaded and stored again": back})


def _layout(mover, pixels, pixel_bytes, options):
    """The array of a layout, its map, and starts of the boxes that cover it."""
    _, height, width, _ = pixels.shape
    if "interleave" not in options:
        box, array = (PIXEL_BYTES, *_TILE, 1), pixels
        steps, sizes = options.get("traversal", (1,) * 4)[1:3], (width, height)
        starts = [(0, x, y, 0) for x, y in _starts(steps, sizes)]
        return array, mover.tiled(array, box=box, **options), starts
    # Memory order: N, slice of C, H, W, and the bytes of a slice.
    slices = np.stack([np.resize(pixels[0], (height, width, pixel_bytes)), np.resize(~pixels[0], (height, width,
                       pixel_bytes))])  # fmt: skip
    array = np.ascontiguousarray(slices[None])
    steps = options.get("traversal", (1,) * 4)[:2]
    starts = [(x, y, c, 0) for x, y in _starts(steps, (width, height)) for c in range(2)]
    return array, mover.sliced(array, box=(*_TILE, 1, 1), **options), starts


def _starts(steps, sizes):
    """Starts in W and H that cover every position, for each phase of the traversal strides separately."""
    axes = []
    for step, size, extent in zip(steps, sizes, _TILE, strict=True):
        reach = -(-extent // step) * step
        axes.append([first + phase for first in range(0, size, reach) for phase in range(step)])
    return product(*axes)
