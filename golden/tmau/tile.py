"""The walk of a transfer: which bytes of global memory it moves, and their places in shared memory.

Loads and stores make the same walk. Specification: docs/tmau.md, "Tile mode" and "Im2col mode".
"""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.spec import Mode

from ..arguments import integers
from ..smem import swizzle
from .tensor_map import check_map

__all__ = [
    "Tile", "bounding_box", "coordinates", "counts", "extent", "footprint", "gathers", "pitch", "pixel_coordinates",
    "row_bytes", "spatial_dimensions", "tx_bytes", "unit_bytes", "walk",
]  # fmt: skip


def unit_bytes(tmap):
    """Bytes from one index of dimension 0 to the next: of an element, or of a slice with interleave."""
    return tmap.interleave.bytes or tmap.element.bytes


def gathers(tmap):
    """Whether traversal of dimension 0 is honoured."""
    return bool(tmap.gather0 or tmap.interleave)


def counts(tmap):
    """Indices of a tile in each dimension: ceil(box / traversal), with two exceptions.

    Traversal of dimension 0 is ignored unless it gathers; with interleave a command moves one slice of C.
    """
    indices = [-(-box // step) for box, step in zip(tmap.box, tmap.traversal, strict=True)]
    if not gathers(tmap):
        indices[0] = tmap.box[0]
    if tmap.interleave:
        indices[tmap.rank - 2] = 1
    return tuple(indices)


def row_bytes(tmap):
    """Bytes of a row: dimension 0 of the box, or the channels of a pixel."""
    if tmap.mode == Mode.IM2COL:
        return tmap.channels * tmap.element.bytes
    return counts(tmap)[0] * unit_bytes(tmap)


def pitch(tmap):
    """Bytes from row to row in shared memory. Interleaved rows are contiguous with any swizzle."""
    return row_bytes(tmap) if tmap.interleave else max(row_bytes(tmap), tmap.swizzle.span)


def footprint(tmap):
    """Bytes of shared memory from the first row to the end of the last row's pitch."""
    return _rows(tmap) * pitch(tmap)


def tx_bytes(tmap):
    """Bytes that a transfer counts on its barrier: fill included, gaps not."""
    check_map(tmap)
    return _rows(tmap) * row_bytes(tmap)


def extent(tmap):
    """Bytes from the tensor's address to the end of its last element."""
    reach = sum((size - 1) * stride for size, stride in zip(tmap.size[1:], tmap.stride, strict=True))
    return reach + tmap.size[0] * unit_bytes(tmap)


def _rows(tmap):
    return tmap.pixels if tmap.mode == Mode.IM2COL else math.prod(counts(tmap)[1:])


def spatial_dimensions(tmap):
    """Numbers of the dimensions W, H, D of an im2col map: dimension 0 is C, or W with interleave."""
    first = 0 if tmap.interleave else 1
    return range(first, first + tmap.rank - 2)


def bounding_box(tmap):
    """Lower and upper corner (exclusive) of the positions of an im2col walk in W, H, D, without offset."""
    sizes = [tmap.size[d] for d in spatial_dimensions(tmap)]
    return tmap.lower, tuple(size + upper for size, upper in zip(sizes, tmap.upper, strict=True))


def coordinates(tmap, coords):
    """``coords``, an integer for each dimension of the map, as a tuple of int; TypeError or ValueError otherwise."""
    coords = integers("coords", coords)
    if len(coords) != tmap.rank:
        raise ValueError(f"coords must have {tmap.rank} entries for rank {tmap.rank}, not {len(coords)}")
    for coord in coords:
        if not -(1 << 31) <= coord < 1 << 31:
            raise ValueError(f"coords must be -2^31 to 2^31 - 1, not {coord}")
    return coords


@dataclass(frozen=True)
class Tile:
    """One transfer, run by run in the order of the walk.

    A run is contiguous in both memories: a row, or one element or slice of it if dimension 0 is gathered.

    Attributes
    ----------
    inside : bool array
        Whether a run has bytes in the tensor.
    addresses : uint64 array
        Global address of each run's first byte in the tensor; meaningless where not ``inside``.
    places : int64 array
        Bytes in shared memory from the start of the transfer to each run.
    start, stop : int
        The bytes of every inside run that lie in the tensor.
    run_bytes : int
        Bytes of a run.
    addr_width : int
        Addresses wrap modulo 2^addr_width, also in the middle of a run.
    """

    inside: np.ndarray
    addresses: np.ndarray
    places: np.ndarray
    start: int
    stop: int
    run_bytes: int
    addr_width: int

    def global_bytes(self):
        """Address of every byte in the tensor, a uint64 array of inside runs by their bytes."""
        linear = self.addresses[self.inside, None] + np.arange(self.stop - self.start, dtype=np.uint64)
        return linear & np.uint64((1 << self.addr_width) - 1)

    def linear_bytes(self, address):
        """Place of every byte in shared memory before the swizzle, an int64 array of runs by their bytes."""
        return address + self.places[:, None] + np.arange(self.run_bytes)

    def shared_bytes(self, address, mode):
        """Place of every byte in shared memory, after swizzle ``mode``."""
        return swizzle(self.linear_bytes(address), mode)


def walk(tmap, coords, addr_width=64, offsets=(0, 0, 0)):
    """The :class:`Tile` of ``tmap`` at ``coords``, innermost first; ``offsets`` (W, H, D) are those of im2col loads."""
    coords = coordinates(tmap, coords)
    runs = _pixel_runs(tmap, coords, offsets) if tmap.mode == Mode.IM2COL else _box_runs(tmap, coords)
    (first, stop, length), inside, addresses, places = runs
    unit = unit_bytes(tmap)
    # uint64 wraps, also for coordinates outside the tensor, whose addresses are not used.
    addresses = (addresses + np.uint64(first * unit) + np.uint64(tmap.address)) & np.uint64((1 << addr_width) - 1)
    return Tile(inside & (stop > first), addresses, places, first * unit, stop * unit, length * unit, addr_width)


def _box_runs(tmap, coords):
    """Interval of dimension 0 in a run; then of each run: inside, address relative to the tensor's, and place."""
    indices = counts(tmap)
    gathered = gathers(tmap) and tmap.traversal[0] > 1
    whole = (0, 1, 1) if gathered else _interval(coords[0], indices[0], tmap.size[0])
    inside = np.full(1, True)
    addresses = np.full(1, 0 if gathered else coords[0] * unit_bytes(tmap) & (1 << 64) - 1, np.uint64)
    for d in range(0 if gathered else 1, tmap.rank):
        x = coords[d] + np.arange(indices[d]) * tmap.traversal[d]
        addresses = (_distances(tmap, d, x)[:, None] + addresses).ravel()
        inside = (((x >= 0) & (x < tmap.size[d]))[:, None] & inside).ravel()
    runs = indices[0] if gathered else 1
    rows = pitch(tmap) * np.arange(len(inside) // runs)
    return whole, inside, addresses, (rows[:, None] + unit_bytes(tmap) * np.arange(runs)).ravel()


def _pixel_runs(tmap, coords, offsets):
    """The same for the pixels of an im2col transfer."""
    pixels = pixel_coordinates(tmap, coords, offsets)
    contiguous = not tmap.interleave  # dimension 0 is then C; otherwise a pixel is one slice
    whole = _interval(coords[0], tmap.channels, tmap.size[0]) if contiguous else (0, 1, 1)
    bounded = range(1 if contiguous else 0, tmap.rank)
    inside = np.all([(pixels[:, d] >= 0) & (pixels[:, d] < tmap.size[d]) for d in bounded], axis=0)
    addresses = sum(_distances(tmap, d, pixels[:, d]) for d in range(tmap.rank))
    return whole, inside, addresses, pitch(tmap) * np.arange(len(pixels))


def pixel_coordinates(tmap, coords, offsets):
    """Tensor coordinates of each pixel, an int64 array of pixels by rank.

    The walk starts at ``coords``, inside the bounding box; the channel, or slice, stays. ``offsets`` are added to W, H,
    D of every pixel.
    """
    spatial = spatial_dimensions(tmap)
    low, high = bounding_box(tmap)
    current = list(coords)
    pixels = np.empty((tmap.pixels, tmap.rank), np.int64)
    for pixel in range(tmap.pixels):
        pixels[pixel] = current
        for d, first, end in zip(spatial, low, high, strict=True):
            current[d] += tmap.traversal[d]
            if current[d] < end:
                break
            current[d] = first
        else:
            current[-1] += tmap.traversal[-1]
    pixels[:, spatial.start : spatial.stop] += np.array(offsets[: len(spatial)], np.int64)
    return pixels


def _interval(coord, length, size):
    """First and last (exclusive) of ``length`` contiguous indices from ``coord`` that are inside; and ``length``."""
    first = min(max(-coord, 0), length)
    return first, min(max(size - coord, first), length), length


def _distances(tmap, d, x):
    """Bytes from index 0 to each of ``x`` in dimension ``d``, modulo 2^64."""
    return x.astype(np.uint64) * np.uint64(tmap.stride[d - 1] if d else unit_bytes(tmap))
