"""The transfers of the benchmark: every line of tmau.md section 10 that concerns tile-mode loads."""

import itertools
import math
from dataclasses import dataclass

from tilewright.golden import TensorMap

__all__ = ["BOXES", "LATENCIES", "Steady", "steady_cases"]

#: Boxes that are issued back to back in a steady-state measurement.
BOXES = 64
#: Memory latencies, in cycles, that the whole table is measured at.
LATENCIES = (10, 100, 400)


@dataclass(frozen=True)
class Steady:
    """One steady-state measurement.

    Attributes
    ----------
    name : str
    tmap : TensorMap
    coords : list of list of int
        Start of each of the ``BOXES`` boxes.
    target : float or None
        Share of the limit that must be reached; None where section 10 names none.
    """

    name: str
    tmap: TensorMap
    coords: list
    target: float | None


def steady_cases():
    """All steady-state measurements."""
    return [*_rows(), *_ranks(), *_swizzles(), *_named_tiles(), *_sharing(), *_small_boxes(), *_shifted(), *_outside()]


def _tensor(box, stride, size=None, element="u8", **options):
    """A tensor of a few boxes in each dimension, with the byte strides given."""
    return TensorMap(element=element, size=size or [4 * extent for extent in box], stride=stride, box=box, **options)


def _sliding(tmap):
    """Starts of boxes side by side, inside the tensor, round and round."""
    places = [range(0, size - box + 1, box) for size, box in zip(tmap.size, tmap.box, strict=True)]
    cycle = itertools.cycle(itertools.product(*reversed(places)))
    return [list(reversed(next(cycle))) for _ in range(BOXES)]


def _steady(name, tmap, target, coords=None):
    return Steady(name, tmap, coords or _sliding(tmap), target)


def _rows():
    """Rows apart from each other, in 2-D."""
    for row in (16, 32, 64, 128, 256):
        tmap = _tensor((row, 32), (4 * row + 128,))
        yield _steady(f"2-D, rows of {row} bytes", tmap, 0.98 if row < 64 else 0.99)


def _ranks():
    """The same bytes in boxes of every rank; rows of 64 bytes."""
    for rank in (3, 4, 5):
        box = (64, *{3: (8, 4), 4: (4, 4, 2), 5: (4, 2, 2, 2)}[rank])
        strides = [4 * 64 + 128]
        for extent in box[1:-1]:
            strides.append(strides[-1] * 4 * extent)
        yield _steady(f"{rank}-D, rows of 64 bytes", _tensor(box, strides), 0.99)


def _swizzles():
    for swizzle, row in (("32B", 32), ("64B", 64), ("128B", 64), ("128B", 128)):
        tmap = _tensor((row, 32), (4 * row + 128,), swizzle=swizzle)
        yield _steady(f"swizzle {swizzle}, rows of {row} bytes", tmap, 0.98 if row < 64 else 0.99)


def _named_tiles():
    # Pixels of 16 bytes: eight half-precision channels out of 64, or all there are.
    apart = TensorMap(element="f16", size=(64, 64, 64), stride=(128, 64 * 128), box=(8, 10, 10))
    adjoining = TensorMap(element="f16", size=(8, 64, 64), stride=(16, 64 * 16), box=(8, 10, 10))
    starts = [[0, 4 * (i % 12), i % 50] for i in range(BOXES)]
    yield _steady("halo_c64", apart, 0.98, starts)
    yield _steady("halo_c8", adjoining, 0.98, starts)
    rows_4d = TensorMap(element="f16", size=(64, 16, 16, 16), stride=(128, 16 * 128, 256 * 128), box=(8, 4, 8, 8))
    yield _steady("rows_4d", rows_4d, 0.98)


def _sharing():
    """Rows that share bus words without adjoining: half of the channels of each pixel."""
    tmap = TensorMap(element="f16", size=(16, 64, 64), stride=(32, 64 * 32), box=(8, 16, 16))
    yield _steady("rows of 16 bytes, pixels 32 bytes apart", tmap, 0.98)


def _small_boxes():
    for box in ((256, 1), (64, 4), (16, 16)):
        tmap = _tensor(box, (4 * box[0] + 128,))
        yield _steady(f"boxes of 256 bytes, rows of {box[0]}", tmap, 0.90)


def _shifted():
    """Starts inside a 16-byte chunk, and inside a bus word."""
    for start in (1, 16, 37):
        tmap = _tensor((128, 32), (1024,), size=(1024, 128))
        yield _steady(f"rows of 128 bytes from byte {start}", tmap, 0.97, [[start, i] for i in range(BOXES)])
    tmap = _tensor((64, 32), (64,), size=(64, 256), swizzle="128B", address=32)
    yield _steady("adjoining rows of 64 bytes, base 32, swizzle 128B", tmap, 0.99)
    tmap = _tensor((128, 32), (128,), size=(128, 256), swizzle="128B", address=48)
    yield _steady("adjoining rows of 128 bytes, base 48, swizzle 128B", tmap, 0.99)


def _outside():
    box = (64, 32)
    tmap = _tensor(box, (256,), size=(256, 64))
    yield _steady("wholly outside, rows of 64 bytes", tmap, 0.98, [[256, -32 - i] for i in range(BOXES)])
    tmap = _tensor((16, math.prod(box) // 16), (256,), size=(256, 256))
    yield _steady("wholly outside, rows of 16 bytes", tmap, 0.98, [[0, 256 + i] for i in range(BOXES)])
    tmap = _tensor((256, 16), (512,), size=(512, 64))
    yield _steady("half outside to the left, rows of 256 bytes", tmap, None, [[-128, i % 48] for i in range(BOXES)])
    yield _steady("half outside to the right, rows of 256 bytes", tmap, None, [[384, i % 48] for i in range(BOXES)])
    yield _steady("half outside below, rows of 256 bytes", tmap, None, [[0, 56] for _ in range(BOXES)])
