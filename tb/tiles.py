"""Random tile loads for testbenches: small, legal, and often where bugs live."""

from typing import NamedTuple

from tilewright.golden import TensorMap
from tilewright.golden.spec import Element, Fill, Swizzle
from tilewright.golden.tmau.tile import footprint

__all__ = ["PAGE", "TileLoad", "random_tile"]

PAGE = 4096

#: Bytes of a row that a tile may have: whole and broken bus words, lines and spans.
_ROW_BYTES = (16, 32, 48, 64, 96, 128, 208, 256)


class TileLoad(NamedTuple):
    """A load as software would ask for it: descriptor, start of the box, destination in shared memory."""

    tmap: TensorMap
    coords: tuple
    smem: int


def random_tile(rng, *, memory_bytes, smem_bytes):
    """A random :class:`TileLoad` that stays in the first ``memory_bytes`` and ``smem_bytes`` of the two memories.

    Half of the tensors begin within a few chunks of the end of a 4 KiB page; half of the boxes reach over an edge.
    """
    while True:
        tmap = _random_map(rng, memory_bytes)
        room = smem_bytes - footprint(tmap)
        if room >= 0:
            coords = tuple(_random_start(rng, size, box) for size, box in zip(tmap.size, tmap.box, strict=True))
            return TileLoad(tmap, coords, 128 * rng.randrange(room // 128 + 1))


def _random_start(rng, size, box):
    if rng.random() < 0.7:
        return rng.randrange(max(size - box, 0) + 1)
    return rng.randint(-box, size)


def _random_map(rng, memory_bytes):
    """A legal map whose tensor ends before ``memory_bytes``."""
    rank = rng.randint(1, 5)
    element = rng.choice(list(Element))
    row = rng.choice([row for row in _ROW_BYTES if row <= 256 * element.bytes])
    box = [row // element.bytes] + [rng.choice((1, 2, 3, 5)) for _ in range(rank - 1)]
    size = [rng.randint(1, 2 * box[0])] + [rng.randint(1, 2 * extent) for extent in box[1:]]
    pitch, stride = -(-size[0] * element.bytes // 16) * 16, []
    for extent in size[1:]:
        stride.append(pitch if rng.random() < 0.6 else 16 * rng.randrange(20))
        pitch = max(stride[-1] * extent, 16)
    reach = size[0] * element.bytes + sum(step * (extent - 1) for step, extent in zip(stride, size[1:], strict=True))
    if reach > memory_bytes - PAGE:
        return _random_map(rng, memory_bytes)
    address = 16 * rng.randrange((memory_bytes - reach) // 16)
    if rng.random() < 0.5:
        address = PAGE * rng.randint(1, max((memory_bytes - reach) // PAGE, 1)) - 16 * rng.randrange(8)
    spans = [swizzle for swizzle in Swizzle if not swizzle.span or row <= swizzle.span]
    return TensorMap(
        element=element,
        size=size,
        stride=stride,
        box=box,
        address=min(address, (memory_bytes - reach) // 16 * 16),
        traversal=[1] + [rng.choice((1, 1, 2, 3)) for _ in range(rank - 1)],
        swizzle=rng.choice(spans),
        fill=rng.choice(list(Fill) if element.is_float else [Fill.ZERO, Fill.CONSTANT]),
        fill_constant=rng.getrandbits(32),
    )
