"""Workloads of layouts: swizzles, a convolution from im2col loads, and copies with interleave and traversal strides."""

from itertools import product

import numpy as np

from tilewright.golden.memory import memory_bytes
from tilewright.golden.smem import swizzle
from tilewright.golden.tmau.tile import pitch
from tilewright.spec import BANKS, CHUNK_BYTES, Swizzle

from ..report.charts import SWIZZLE_LAYOUTS
from .findings import Findings
from .mover import Box
from .photographs import PIXEL_BYTES, padded_pixels

__all__ = ["FILTERS", "LAYOUTS", "column", "direct", "patches", "play_convolution", "play_roundtrip", "play_swizzle"]

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


def play_swizzle(mover, photographs):
    """Moves patches as 64 half-precision channels once with each swizzle, and reads every column of every box."""
    array = patches(photographs[0])
    facts = []
    for channels, mode in SWIZZLE_LAYOUTS:
        cycles, read = _read_columns(mover, array, channels, mode)
        name = "without swizzle" if mode == Swizzle.NONE else f"with swizzle {mode.span}B"
        facts.append(f"rows of {2 * channels} bytes {name}: {cycles / read:.2f} cycles a column of 8 rows")
    return Findings(facts=tuple(facts))


def _read_columns(mover, array, channels, mode):
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


_CONVOLVED = (160, 240)  # height and width of the part that is convolved
_PIXELS = 128  # of one load

#: Three outputs, the same for each colour: blur, edges to the right, edges below.
FILTERS = np.array(
    [[[1, 2, 1], [2, 4, 2], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]]
)


def play_convolution(mover, photographs):
    """Loads every tap of every run of pixels and sums products; the result must equal the direct convolution."""
    photo = photographs[0][: _CONVOLVED[0], : _CONVOLVED[1]]
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


_MOVED = (96, 128)  # height and width of the part that is moved, if the photograph is so large
_TILE = (8, 2)  # width and height of a box

#: Name, bytes of a pixel, and options of the map. With interleave a pixel is a slice, and two slices make its channels.
LAYOUTS = (
    *((f"swizzle {name}", PIXEL_BYTES, {"swizzle": name}) for name in ("none", "32B", "64B", "128B")),
    ("interleave 16B", 16, {"interleave": "16B", "swizzle": "128B"}),
    ("interleave 32B", 32, {"interleave": "32B", "swizzle": "32B"}),
    ("traversal 2 and 3", PIXEL_BYTES, {"traversal": (1, 2, 3, 1)}),
    ("interleave 16B, traversal 2 and 3", 16, {"interleave": "16B", "traversal": (2, 3, 1, 1)}),
)


def play_roundtrip(mover, photographs):
    """Loads and stores the part in each layout; the copy must equal the original."""
    photo = photographs[0][: _MOVED[0], : _MOVED[1]]
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
