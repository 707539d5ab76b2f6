"""Random tile loads, weighted to where errors live: edges of tensors, pages, bus words and lines."""

import math

from tilewright.golden import TensorMap
from tilewright.golden.spec import Element, Fill, Swizzle
from tilewright.golden.tmau.tile import counts, footprint

__all__ = ["OUT_OF_BOUNDS", "random_load", "random_place"]

#: Where a box lies in one dimension of its tensor, seen from the tensor.
OUT_OF_BOUNDS = ("inside", "low part", "high part", "both ends", "below", "above")

_PAGE = 4096
_LONGEST_ROW = 2048  # bytes: 256 elements of 8
_MAX_ROWS = 4096


def random_load(rng, *, gmem_bytes, smem_bytes, max_bytes=None):
    """A random legal tile load.

    Parameters
    ----------
    rng : random.Random
    gmem_bytes, smem_bytes : int
        Sizes of the memories: every byte that is needed lies in global memory, the box fits shared memory.
    max_bytes : int or None
        Largest footprint; None: all of shared memory.

    Returns
    -------
    tmap : TensorMap
    coords : list of int
    smem : int
        Destination, a multiple of 128.
    """
    limit = min(max_bytes or smem_bytes, smem_bytes)
    # Drawn once: small ones fit more often, and would crowd out the others if they were drawn in every attempt.
    rank, element, swizzle = rng.randint(1, 5), rng.choice(list(Element)), rng.choice(list(Swizzle))
    while True:
        shape = rng.choices([_any_box, _long_box, _block], [7, 3, 2])[0]
        drawn = _draw(rng, rank, element, swizzle, shape, gmem_bytes, limit)
        if drawn:
            tmap, coords = drawn
            slack = (smem_bytes - footprint(tmap)) // 128
            return tmap, coords, 128 * rng.choice([0, slack, rng.randint(0, slack), rng.randint(0, slack)])


def random_place(rng, tmap):
    """Coordinates of another box of the same map, as a list; biased to the inside and to the edges."""
    return [
        rng.choice([0, max(size - box, 0), rng.randint(0, size - 1), rng.randint(-box, size)])
        for size, box in zip(tmap.size, tmap.box, strict=True)
    ]


def _draw(rng, rank, element, swizzle, shape, gmem_bytes, limit):
    """One attempt; None if it does not fit."""
    box, traversal = shape(rng, rank, element, swizzle, limit)
    packed = shape is _block
    kinds = [rng.choices(OUT_OF_BOUNDS, [8, 2, 2, 1, 0.4, 0.4])[0] for _ in box]
    size, coords = zip(*(_extent(rng, extent, kind) for extent, kind in zip(box, kinds, strict=True)), strict=True)
    if packed:
        size, coords = box, [rng.choice([0, 0, -1, 1]) if d == rank - 1 else 0 for d in range(rank)]
    stride, end = _strides(rng, size, element, packed)
    if end > gmem_bytes:
        return None
    tmap = TensorMap(
        element=element,
        address=_address(rng, (gmem_bytes - end) // 16),
        size=size,
        stride=stride,
        box=box,
        traversal=traversal,
        swizzle=swizzle,
        fill=rng.choice(list(Fill) if element.is_float else [Fill.ZERO, Fill.CONSTANT]),
        fill_constant=rng.getrandbits(32),
    )
    rows = math.prod(counts(tmap)[1:])
    return (tmap, list(coords)) if footprint(tmap) <= limit and rows <= _MAX_ROWS else None


def _row(rng, element, swizzle):
    """Elements of a legal row."""
    longest = min(swizzle.span or _LONGEST_ROW, 256 * element.bytes) // 16
    chunks = min(rng.choice([1, 2, 3, 4, 8, longest, rng.randint(1, longest)]), longest)
    return 16 * chunks // element.bytes


def _any_box(rng, rank, element, swizzle, limit):
    box, traversal = [_row(rng, element, swizzle)], [rng.choice([1, rng.randint(1, 8)])]
    for _ in range(rank - 1):
        box.append(rng.choice([1, 2, rng.randint(1, 8), rng.randint(1, 16), rng.choice([16, 16, 31, 32])]))
        traversal.append(rng.choice([1, 1, 1, 2, rng.randint(1, 8)]))
    return box, traversal


def _long_box(rng, rank, element, swizzle, limit):
    """Many indices in one dimension, at most two in the others."""
    long = rng.randint(min(rank - 1, 1), rank - 1)
    box = [_row(rng, element, swizzle) if d == 0 else rng.choice([1, 1, 2]) for d in range(rank)]
    traversal = [rng.choice([1, 2, rng.randint(1, 8)]) for _ in range(rank)]
    if long:
        box[long] = rng.choice([256, 256, 256, rng.randint(17, 255)])
        traversal[long] = rng.choice([1, 2, 4, 8, rng.randint(1, 8)])
    return box, traversal


def _block(rng, rank, element, swizzle, limit):
    """A large block whose rows adjoin in memory."""
    box = [_row(rng, element, swizzle)] + [1] * (rank - 1)
    room = limit // max(box[0] * element.bytes, swizzle.span)
    for d in rng.sample(range(1, rank), rank - 1):
        box[d] = max(min(room, rng.choice([256, 64, 8])), 1)
        room //= box[d]
    return box, [1] * rank


def _extent(rng, box, kind):
    """A size and a start coordinate for a box of this extent that lies like ``kind``."""
    if kind == "both ends":
        size = rng.randint(1, max(box - 2, 1))
        return size, -rng.randint(1, max(box - size - 1, 1))
    size = rng.randint(box, box + rng.choice([0, 1, 8]))
    coord = {
        "inside": lambda: rng.choice([0, size - box, rng.randint(0, size - box)]),
        "low part": lambda: -rng.randint(1, max(box - 1, 1)),
        "high part": lambda: size - rng.randint(1, max(box - 1, 1)),
        "below": lambda: -box - rng.choice([0, 1, 1000, (1 << 31) - 300]),
        "above": lambda: size + rng.choice([0, 1, 1000, (1 << 31) - 1000]),
    }[kind]()
    return size, max(min(coord, (1 << 31) - 1), -(1 << 31))


def _strides(rng, size, element, packed):
    """Strides of the dimensions from 1 on, and the bytes from the tensor's first to its last."""
    stride, end = [], size[0] * element.bytes
    for elements in size[1:]:
        adjoining = -(-end // 16) * 16
        # Adjoining, padded a little, or apart by a power of two (same banks and pages).
        step = rng.choice(
            [adjoining, adjoining, adjoining + 16 * rng.randint(1, 8), 1 << max(adjoining - 1, 15).bit_length()]
        )
        if packed:
            step = adjoining
        elif elements == 1 and rng.random() < 0.3:
            step = rng.choice([16 * rng.randrange(1 << 36), (1 << 40) - 16])  # no index is ever multiplied with it
        elif rng.random() < 0.05:
            step = 16 * rng.randint(0, 4)  # overlapping
        stride.append(step)
        end += step * (elements - 1)
    return stride, end


def _address(rng, room):
    """A multiple of 16 up to 16 times ``room``: anywhere, at the ends, or beside the beginning of a page."""
    page = _PAGE // 16 * rng.randint(0, room * 16 // _PAGE)
    chunk = rng.choice([0, room, rng.randint(0, room), page, page + 1, page - 1])
    return 16 * min(max(chunk, 0), room)
