"""Random tile loads, weighted to where errors live: edges of tensors, pages, bus words and lines."""

import math

from tilewright.golden import TensorMap
from tilewright.golden.spec import Element, Fill, Swizzle
from tilewright.golden.tmau.tile import counts, footprint

__all__ = ["OUT_OF_BOUNDS", "random_load"]

#: Where a box lies in one dimension of its tensor, seen from the tensor.
OUT_OF_BOUNDS = ("inside", "low part", "high part", "both ends", "below", "above")


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
    while True:
        drawn = _draw(rng, gmem_bytes, limit)
        if drawn:
            tmap, coords = drawn
            slack = (smem_bytes - footprint(tmap)) // 128
            return tmap, coords, 128 * rng.choice([0, slack, rng.randint(0, slack)])


def _draw(rng, gmem_bytes, limit):
    """One attempt; None if it does not fit."""
    element, swizzle = rng.choice(list(Element)), rng.choice(list(Swizzle))
    rank = rng.randint(1, 5)
    longest = min(swizzle.span or 2048, 256 * element.bytes) // 16
    chunks = min(rng.choice([1, 2, 4, longest, rng.randint(1, longest)]), longest)
    box = [min(16 * chunks, 256 * element.bytes) // element.bytes]
    traversal = [rng.choice([1, rng.randint(1, 8)])]
    for _ in range(rank - 1):
        box.append(rng.choice([1, 2, rng.randint(1, 8), rng.randint(1, 16), rng.choice([16, 31, 32, 255, 256])]))
        traversal.append(rng.choice([1, 1, 1, 2, rng.randint(1, 8)]))
    kinds = [rng.choices(OUT_OF_BOUNDS, [8, 2, 2, 1, 0.4, 0.4])[0] for _ in box]
    size, coords = zip(*(_extent(rng, extent, kind) for extent, kind in zip(box, kinds, strict=True)), strict=True)

    stride, end = [], size[0] * element.bytes
    for elements in size[1:]:
        # Packed, padded a little, apart by a power of two (same banks and pages), or overlapping.
        packed = -(-end // 16) * 16
        step = rng.choice([packed, packed, packed + 16 * rng.randint(1, 8), 1 << max(packed - 1, 15).bit_length()])
        if rng.random() < 0.05:
            step = 16 * rng.randint(0, 4)
        stride.append(step)
        end = end + step * (elements - 1)
    if end > gmem_bytes:
        return None
    room = (gmem_bytes - end) // 16
    page = 4096 // 16
    places = [0, room, rng.randint(0, room), page * rng.randint(0, room // page) + rng.choice([-1, 0, 1])]
    tmap = TensorMap(
        element=element,
        address=16 * min(max(rng.choice(places), 0), room),
        size=size,
        stride=stride,
        box=box,
        traversal=traversal,
        swizzle=swizzle,
        fill=rng.choice(list(Fill) if element.is_float else [Fill.ZERO, Fill.CONSTANT]),
        fill_constant=rng.getrandbits(32),
    )
    rows = math.prod(counts(tmap)[1:])
    return (tmap, list(coords)) if footprint(tmap) <= limit and rows <= 4096 else None


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
