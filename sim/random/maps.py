"""Random tensor maps of every mode, with a start that a load or a store may have."""

import math
from dataclasses import dataclass

from tilewright.golden import TensorMap
from tilewright.golden.spec import Element, Fill, Interleave, Mode, Swizzle
from tilewright.golden.tmau.descriptor import check_word
from tilewright.golden.tmau.tile import footprint

__all__ = ["Start", "random_start"]

_MOST_RUNS = 4096
_CORNER_BITS = {1: 16, 2: 8, 3: 5}  # by the number of spatial dimensions


@dataclass(frozen=True)
class Start:
    """Where one command begins in a tensor.

    Attributes
    ----------
    tmap : TensorMap
    coords : tuple of int
    offsets : tuple of int
        Of an im2col load; empty otherwise.
    """

    tmap: TensorMap
    coords: tuple
    offsets: tuple = ()


def random_start(rng, *, first, end, most_bytes, stores=False, elements=tuple(Element), beyond=True):
    """A random legal map and start.

    Parameters
    ----------
    rng : random.Random
    first, end : int
        Global memory in which the whole tensor lies.
    most_bytes : int
        Largest footprint in shared memory.
    stores : bool
        Whether a store must be able to begin there.
    elements : sequence of Element
        To choose from.
    beyond : bool
        Whether there may be what docs/tmau.md marks so:
        unaligned, gather0, a constant fill, NaN in eight bits; and strides
        that are shorter than what they skip.
    """
    mode = rng.choices([Mode.TILE, Mode.IM2COL], [3, 2])[0]
    interleave = rng.choices(list(Interleave), [6, 1, 1])[0]
    element = rng.choice(elements)
    draw = _pixels if mode == Mode.IM2COL else _box
    while True:
        shape, coords, offsets = draw(rng, interleave, element, stores, most_bytes)
        unit = interleave.bytes or element.bytes
        unaligned = rng.random() < 0.3 and beyond
        granule = element.bytes if unaligned else max(interleave.bytes, 16)
        shape["gather0"] = beyond and shape.get("gather0", False)
        stride, length = _strides(rng, shape["size"], unit, granule, beyond)
        room = (end - first - length) // granule
        if room < 0:
            continue
        tmap = TensorMap(
            element=element,
            address=first + granule * rng.choice([0, room, rng.randint(0, room)]),
            stride=stride,
            mode=mode,
            interleave=interleave,
            swizzle=Swizzle.B32 if interleave == Interleave.B32 else rng.choice(list(Swizzle)),
            fill=rng.choice(_fills(element, beyond)),
            fill_constant=rng.getrandbits(32),
            unaligned=unaligned,
            check=False,
            **shape,
        )
        if check_word(int.from_bytes(tmap.pack(), "little")) is None and footprint(tmap) <= most_bytes:
            return Start(tmap, tuple(coords), tuple(offsets))


def _fills(element, beyond):
    if beyond:
        return list(Fill) if element.is_float else [Fill.ZERO, Fill.CONSTANT]
    return [Fill.ZERO, Fill.NAN] if element.is_float and element.bytes > 1 else [Fill.ZERO]


def _strides(rng, size, unit, granule, beyond):
    """Strides of the dimensions from 1 on, and the bytes from the tensor's first to its last."""
    stride, length = [], size[0] * unit
    for elements in size[1:]:
        adjoining = -(-length // granule) * granule
        steps = [adjoining, adjoining, adjoining + granule * rng.randint(1, 9), granule * rng.randint(0, 9)]
        step = rng.choice(steps if beyond else steps[:3])
        stride.append(step)
        length += step * (elements - 1)
    return stride, length


def _place(rng, extent, stores):
    """A size and a start for so many elements of one dimension."""
    if extent > 2 and not stores and rng.random() < 0.1:
        return rng.randint(1, extent - 2), -1  # and beyond both ends
    size = rng.randint(max(extent - rng.choice([0, 0, 3]), 1), extent + rng.choice([0, 1, 8]))
    coord = rng.choice([0, 0, 0, max(size - extent, 0), *[rng.randint(-extent, size)] * 2, rng.choice([-extent, size])])
    return size, max(coord, 0) if stores else coord


def _box(rng, interleave, element, stores, most_bytes):
    rank = rng.randint(3 if interleave else 1, 5)
    longest = max(min(most_bytes // (interleave.bytes or element.bytes), 256), 1)
    chunk = 1 if interleave else max(16 // element.bytes, 1)
    row = min(rng.choice([chunk, 2 * chunk, chunk * rng.randint(1, 16), rng.randint(1, 40)]), longest)
    box = [row, *(rng.choice([1, 2, 3, rng.randint(1, 9)]) for _ in range(rank - 1))]
    if rank > 1 and rng.random() < 0.1:
        box[rng.randint(1, rank - 1)] = rng.choice([31, 64, 256])
    traversal = [rng.choice([1, 1, rng.randint(1, 8)]) for _ in box]
    size, coords = zip(*(_place(rng, extent, stores) for extent in box), strict=True)
    gather = rng.random() < 0.3
    while math.prod(box[not gather :]) > _MOST_RUNS:
        box[box.index(max(box))] //= 2
    return {"size": size, "box": box, "traversal": traversal, "gather0": gather}, coords, ()


def _pixels(rng, interleave, element, stores, most_bytes):
    spatial = rng.randint(1, 3)
    chunk = max(16 // element.bytes, 1)
    channels = interleave.bytes // element.bytes or rng.choice([chunk, 2 * chunk, rng.randint(1, 64), 8 * chunk])
    channels = min(channels, 256)
    most = max(most_bytes // max(channels * element.bytes, 16), 1)
    limit = 1 << _CORNER_BITS[spatial] - 1
    sizes, lowers, uppers, starts, offsets = [], [], [], [], []
    for _ in range(spatial):
        size = rng.randint(1, 12)
        lower = rng.choice([0, 0, rng.randint(0, size - 1)]) if stores else rng.randint(-3, size - 1)
        upper = rng.randint(lower - size + 1, 0) if stores else rng.randint(lower - size + 1, lower - size + 9)
        lower, upper = max(min(lower, limit - 1), -limit), max(min(upper, limit - 1), -limit)
        sizes.append(size)
        lowers.append(lower)
        uppers.append(upper)
        starts.append(rng.randint(lower, size + upper - 1))
        offsets.append(0 if stores else rng.choice([0, 1, rng.randint(0, 6)]))
    batch = rng.randint(1, 4)
    image = rng.randint(0 if stores else -1, batch)
    if interleave:
        slices = rng.randint(1, 3)
        size, coords = [*sizes, slices, batch], [*starts, rng.randint(0, slices), image]
    else:
        depth, channel = _place(rng, channels, stores)
        size, coords = [depth, *sizes, batch], [channel, *starts, image]
    shape = {
        "size": size,
        "traversal": [rng.choice([1, 1, 2, rng.randint(1, 8)]) for _ in size],
        "lower": lowers,
        "upper": uppers,
        "channels": channels,
        "pixels": min(rng.choice([1, 7, 64, rng.randint(1, 256), 1024]), most, 1024),
    }
    return shape, coords, offsets
