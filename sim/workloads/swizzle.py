"""Patches of a photograph as 64 half-precision channels, with every swizzle, read column by column."""

import numpy as np

from tilewright.golden.smem import swizzle
from tilewright.golden.tmau.tile import pitch
from tilewright.spec import BANKS, CHUNK_BYTES, Swizzle

from ..report.charts import SWIZZLE_LAYOUTS
from .findings import Findings
from .mover import Box

__all__ = ["SUMMARY", "column", "patches", "play"]

SUMMARY = "8 x 8 patches as 64 fp16 channels, every swizzle, columns read back"

_PATCH = 8  # pixels
_WIDE, _HIGH = 8, 2  # patches of a box
_LANE = CHUNK_BYTES // 2  # channels of a chunk


def patches(photo):
    """Brightness in 8 × 8 patches: rows × columns × 64 channels, fp16; patches past the edge repeat it."""
    height, width = photo.shape[:2]
    grey = photo.mean(axis=2) / 255
    grey = np.pad(grey, ((0, -height % _PATCH), (0, -width % _PATCH)), mode="edge")
    blocks = grey.reshape(grey.shape[0] // _PATCH, _PATCH, -1, _PATCH).swapaxes(1, 2)
    return np.ascontiguousarray(blocks.reshape(*blocks.shape[:2], _PATCH * _PATCH).astype(np.float16))


def column(tmap, address, first, chunk):
    """Shared-memory addresses of one chunk of eight rows of a box at ``address``, from row ``first`` on."""
    rows = range(first, first + BANKS)
    return [swizzle(address + row * pitch(tmap) + chunk * CHUNK_BYTES, tmap.swizzle) for row in rows]


def play(mover, photographs):
    """Moves the patches once in each layout, and reads every column of every box."""
    array = patches(photographs[0])
    facts = []
    for channels, mode in SWIZZLE_LAYOUTS:
        cycles, read = _play_layout(mover, array, channels, mode)
        name = "without swizzle" if mode == Swizzle.NONE else f"with swizzle {mode.span}B"
        facts.append(f"rows of {2 * channels} bytes {name}: {cycles / read:.2f} cycles a column of 8 rows")
    return Findings(facts=tuple(facts))


def _play_layout(mover, array, channels, mode):
    """Cycles and columns from the first to the last answer, batch by batch."""
    tmap = mover.tiled(array, box=(channels, _WIDE, _HIGH), swizzle=mode)
    height, width, depth = array.shape
    boxes = [
        Box(tmap, (c, x, y))
        for y in range(0, height, _HIGH)
        for x in range(0, width, _WIDE)
        for c in range(0, depth, channels)
    ]
    # Chunks past the edge have the fill, zero.
    padded = np.pad(array, ((0, _HIGH), (0, _WIDE), (0, 0)))

    def reads(box, address):
        return [column(tmap, address, _WIDE * y, c) for y in range(_HIGH) for c in range(channels // _LANE)]

    cycles = read = 0
    for batch in mover.move(boxes, reads):
        answers = iter(np.ascontiguousarray(batch.run.reads).view(np.float16))
        for box, _ in batch.boxes:
            c, x, y = box.coords
            for row in range(y, y + _HIGH):
                for first in range(c, c + channels, _LANE):
                    wanted = padded[row, x : x + _WIDE, first : first + _LANE]
                    mover.totals.require(next(answers), wanted, f"a column of patch row {row}")
        cycles += int(batch.run.read_cycles[-1] - batch.run.read_cycles[0])
        read += len(batch.run.read_cycles) - 1
    return cycles, read
