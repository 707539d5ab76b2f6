"""Random tensor maps of every mode, with a start, weighted to where errors live: edges of tensors, pages and lines."""

from dataclasses import dataclass

from tilewright.golden import TensorMap
from tilewright.golden.tmau.descriptor import SPATIAL_BITS, check_word
from tilewright.golden.tmau.tile import footprint, gathers, row_bytes, tx_bytes, unit_bytes
from tilewright.spec import PAGE_BYTES, Element, Fill, Interleave, Mode, Swizzle

__all__ = ["OUT_OF_BOUNDS", "Start", "random_load", "random_place", "random_start"]

#: Where a box lies in one dimension of its tensor, seen from the tensor.
OUT_OF_BOUNDS = ("inside", "low part", "high part", "both ends", "below", "above")

_LONGEST_ROW = 2048  # bytes: 256 elements of 8
_MOST_RUNS = 4096


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


def random_start(rng, *, first, end, most_bytes, stores=False, elements=tuple(Element), beyond=True, plain=False):
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
        unaligned, gather0, a constant fill, NaN in eight bits, starts
        inside 16 bytes, interleaved boxes of other numbers of elements, rows
        of what is written that end inside 16 bytes; and strides that are
        shorter than what they skip.
    plain : bool
        Only tile mode without interleave, unaligned and gather0.
    """
    # Drawn once: what fits more often would crowd out the others if these were drawn in every attempt.
    mode = Mode.TILE if plain else rng.choices([Mode.TILE, Mode.IM2COL], [3, 2])[0]
    interleave = Interleave.NONE if plain else rng.choices(list(Interleave), [6, 1, 1])[0]
    element = rng.choice(elements)
    swizzle = Swizzle.B32 if interleave == Interleave.B32 else rng.choice(list(Swizzle))
    rank = rng.randint(3 if interleave or mode == Mode.IM2COL else 1, 5)
    unit, odd = interleave.bytes or element.bytes, beyond and not plain
    while True:
        unaligned = odd and rng.random() < 0.3
        packed = mode == Mode.TILE and rng.random() < 1 / 6
        if mode == Mode.IM2COL:
            shape, coords, offsets = _pixels(rng, rank - 2, interleave, element, stores, most_bytes)
        else:
            row = _row(rng, interleave, element, swizzle, unaligned)
            box = _block if packed else rng.choices([_any_box, _long_box], [7, 3])[0]
            rows = most_bytes // max(row * unit, swizzle.span)
            shape, coords = _tile(rng, rank, row, box, stores, rows, (1 << 31) - 600 if plain else 1 << 30)
            shape["gather0"] = odd and not packed and rng.random() < 0.3
            offsets = ()
        if not beyond:
            shape, coords = _plainer(shape, list(coords), mode, interleave, element, stores)
        granule = element.bytes if unaligned else max(interleave.bytes, 16)
        stride, length = _strides(rng, shape["size"], unit, granule, beyond, packed)
        if first + length > end:
            continue
        tmap = TensorMap(
            element=element,
            address=_address(rng, first, end - length, granule),
            stride=stride,
            mode=mode,
            interleave=interleave,
            swizzle=swizzle,
            fill=rng.choice(_fills(element, beyond)),
            fill_constant=rng.getrandbits(32),
            unaligned=unaligned,
            check=False,
            **shape,
        )
        legal = check_word(int.from_bytes(tmap.pack(), "little")) is None
        if legal and footprint(tmap) <= most_bytes and _runs(tmap) <= _MOST_RUNS:
            return Start(tmap, tuple(coords), tuple(offsets))


def _plainer(shape, coords, mode, interleave, element, stores):
    """The nearest shape and start that is not **beyond**."""
    chunk = max(16 // element.bytes, 1)
    if interleave and mode == Mode.TILE:
        shape = shape | {"box": [min(-(-shape["box"][0] // chunk) * chunk, 256), *shape["box"][1:]]}
    if not interleave:
        coords[0] -= coords[0] % chunk
        if stores:
            shape = shape | {"size": [-(-shape["size"][0] // chunk) * chunk, *shape["size"][1:]]}
    return shape, coords


def random_load(rng, *, gmem_bytes, smem_bytes, max_bytes=None):
    """A random legal load in tile mode: its map, its coordinates, and its address in shared memory.

    Parameters
    ----------
    rng : random.Random
    gmem_bytes, smem_bytes : int
        Sizes of the memories: every byte that is needed lies in global memory, the box fits shared memory.
    max_bytes : int or None
        Largest footprint; None: all of shared memory.
    """
    most = min(max_bytes or smem_bytes, smem_bytes)
    start = random_start(rng, first=0, end=gmem_bytes, most_bytes=most, plain=True)
    slack = (smem_bytes - footprint(start.tmap)) // 128
    return start.tmap, start.coords, 128 * rng.choice([0, slack, rng.randint(0, slack), rng.randint(0, slack)])


def random_place(rng, tmap):
    """Coordinates of another box of the same map, as a list; biased to the inside and to the edges."""
    return [
        rng.choice([0, max(size - box, 0), rng.randint(0, size - 1), rng.randint(-box, size)])
        for size, box in zip(tmap.size, tmap.box, strict=True)
    ]


def _runs(tmap):
    """Contiguous pieces of a transfer."""
    gathered = tmap.mode == Mode.TILE and gathers(tmap) and tmap.traversal[0] > 1
    return tx_bytes(tmap) // (unit_bytes(tmap) if gathered else row_bytes(tmap))


def _fills(element, beyond):
    if beyond:
        return list(Fill) if element.is_float else [Fill.ZERO, Fill.CONSTANT]
    return [Fill.ZERO, Fill.NAN] if element.is_float and element.bytes > 1 else [Fill.ZERO]


def _strides(rng, size, unit, granule, beyond, packed):
    """Strides of the dimensions from 1 on, and the bytes from the tensor's first to its last."""
    stride, length = [], size[0] * unit
    for elements in size[1:]:
        adjoining = -(-length // granule) * granule
        # Adjoining, padded a little, or apart by a power of two (same banks and pages).
        step = rng.choice([adjoining, adjoining, adjoining + granule * rng.randint(1, 9),
                           1 << max(adjoining - 1, 15).bit_length()])  # fmt: skip
        if packed:
            step = adjoining
        elif beyond and elements == 1 and rng.random() < 0.3:
            # No index is ever multiplied with it.
            step = rng.choice([granule * rng.randrange((1 << 40) // granule), (1 << 40) - granule])
        elif beyond and rng.random() < 0.1:
            step = granule * rng.randint(0, 9)  # overlapping
        stride.append(step)
        length += step * (elements - 1)
    return stride, length


def _address(rng, first, last, granule):
    """A multiple of ``granule``, at most ``last``: anywhere, at the ends, or beside the beginning of a page."""
    page = PAGE_BYTES * rng.randint(first // PAGE_BYTES, last // PAGE_BYTES)
    chunk = rng.choice([first, last, rng.randint(first, last), page, page + 16, page - 16])
    return min(max(chunk, first), last) // granule * granule


def _kind(rng, stores):
    return rng.choices(OUT_OF_BOUNDS, [8, 0, 2, 0, 0, 0.6] if stores else [8, 2, 2, 1.2, 0.4, 0.5])[0]


def _extent(rng, box, kind, far=1 << 30):
    """A size and a start coordinate for a box of this extent that lies like ``kind``: outside, at most ``far`` away."""
    if kind == "both ends":
        size = rng.randint(1, max(box - 2, 1))
        return size, -rng.randint(1, max(box - size - 1, 1))
    size = rng.randint(box, box + rng.choice([0, 1, 8]))
    coord = {
        "inside": lambda: rng.choice([0, size - box, rng.randint(0, size - box)]),
        "low part": lambda: -rng.randint(1, max(box - 1, 1)),
        "high part": lambda: size - rng.randint(1, max(box - 1, 1)),
        "below": lambda: -box - rng.choice([0, 1, 1000, far]),
        "above": lambda: size + rng.choice([0, 1, 1000, far]),
    }[kind]()
    return size, max(min(coord, (1 << 31) - 1), -(1 << 31))


def _row(rng, interleave, element, swizzle, unaligned):
    """Elements of a legal row; with interleave, slices."""
    if unaligned and not interleave and rng.random() < 0.5:
        return rng.randint(1, max(min((swizzle.span or 256) // element.bytes, 40), 1))
    longest = 256 if interleave else min(swizzle.span or _LONGEST_ROW, 256 * element.bytes) // 16
    chunks = min(rng.choice([1, 2, 3, 4, 8, longest, rng.randint(1, longest)]), longest)
    return chunks if interleave else 16 * chunks // element.bytes


def _tile(rng, rank, row, draw, stores, most_rows, far):
    """A shape of tile mode, and its start."""
    box, traversal = draw(rng, rank, row, most_rows)
    if draw is _block:
        size, coords = box, [rng.choice([0, 0, -1, 1]) if d == rank - 1 else 0 for d in range(rank)]
        coords = [max(coord, 0) for coord in coords] if stores else coords
    else:
        size, coords = zip(*(_extent(rng, extent, _kind(rng, stores), far) for extent in box), strict=True)
    return {"size": size, "box": box, "traversal": traversal}, coords


def _any_box(rng, rank, row, most_rows):
    box, traversal = [row], [rng.choice([1, rng.randint(1, 8)])]
    for _ in range(rank - 1):
        box.append(rng.choice([1, 2, rng.randint(1, 8), rng.randint(1, 16), rng.choice([16, 16, 31, 32])]))
        traversal.append(rng.choice([1, 1, 1, 2, rng.randint(1, 8)]))
    return box, traversal


def _long_box(rng, rank, row, most_rows):
    """Many indices in one dimension, at most two in the others."""
    long = rng.randint(min(rank - 1, 1), rank - 1)
    box = [row if d == 0 else rng.choice([1, 1, 2]) for d in range(rank)]
    traversal = [rng.choice([1, 2, rng.randint(1, 8)]) for _ in range(rank)]
    if long:
        box[long] = rng.choice([256, 256, 256, rng.randint(17, 255)])
        traversal[long] = rng.choice([1, 2, 4, 8, rng.randint(1, 8)])
    return box, traversal


def _block(rng, rank, row, most_rows):
    """A large block whose rows are contiguous in memory."""
    box = [row] + [1] * (rank - 1)
    for d in rng.sample(range(1, rank), rank - 1):
        box[d] = max(min(most_rows, rng.choice([256, 64, 8])), 1)
        most_rows //= box[d]
    return box, [1] * rank


def _pixels(rng, spatial, interleave, element, stores, most_bytes):
    """A shape of im2col mode, its start and its offsets."""
    chunk = max(16 // element.bytes, 1)
    channels = interleave.bytes // element.bytes or rng.choice([chunk, 2 * chunk, rng.randint(1, 64), 8 * chunk])
    channels = min(channels, 256)
    most = max(most_bytes // max(channels * element.bytes, 16), 1)
    limit = 1 << SPATIAL_BITS[spatial] - 1
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
        depth, channel = _extent(rng, channels, _kind(rng, stores))
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
