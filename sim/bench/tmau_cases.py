"""The transfers of the benchmark: each line in docs/tmau.md, "Speed", whose figure is a share of the limit."""

import itertools
import math
from dataclasses import dataclass, field, replace

from tilewright.golden import TensorMap
from tilewright.golden.tmau.tile import footprint
from tilewright.spec import Element, Mode, Opcode, Reduction, Space

__all__ = [
    "BLOCK_BYTES", "BOXES", "FEW", "LATENCIES", "Copies", "Steady", "copy_cases", "few_cases", "steady_cases"
]  # fmt: skip

#: Bytes of each block copy.
BLOCK_BYTES = 2048

#: Number of boxes that are issued back to back in a steady-state measurement.
BOXES = 64
#: Number of boxes in a measurement from the first command to the last completion.
FEW = 8
#: Memory latencies, in cycles, at which the whole table is measured.
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
        Share of the limit that must be reached; None if docs/tmau.md, "Speed", has no target.
    fields : dict
        Other fields of the commands.
    """

    name: str
    tmap: TensorMap
    coords: list
    target: float | None
    fields: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Copies:
    """Blocks of ``BLOCK_BYTES`` from one memory to another, back to back; with ``fields`` of ``BLOCK`` and a target."""

    name: str
    fields: dict
    target: float | None = None


def steady_cases(smem_bytes=1 << 20):
    """All steady-state measurements of tensors, in boxes that fit ``smem_bytes``.

    If shared memory is small, boxes have fewer rows or pixels. Boxes that reach over the edge are left out then,
    because the measurement depends on the part that is outside.
    """
    cases = [
        *_rows(), *_ranks(), *_swizzles(), *_named_tiles(), *_sharing(), *_small_boxes(), *_shifted(),
        *_fitting(_outside(), smem_bytes), *_pixels(), *_interleaved(), *_unaligned(), *_stores(), *_reductions()
    ]  # fmt: skip
    return [_fitted(case, smem_bytes) for case in cases]


def _fitting(cases, smem_bytes):
    return [case for case in cases if footprint(case.tmap) <= smem_bytes]


def _fitted(case, smem_bytes):
    """The same cases, with rows or pixels of their boxes halved until they fit."""
    while footprint(case.tmap) > smem_bytes:
        tmap = case.tmap
        if tmap.mode == Mode.IM2COL:
            smaller = {"pixels": tmap.pixels // 2}
        else:
            outermost = max(dimension for dimension, extent in enumerate(tmap.box) if extent > 1)
            box = [extent // 2 if dimension == outermost else extent for dimension, extent in enumerate(tmap.box)]
            smaller = {"box": box}
        case = replace(case, tmap=replace(tmap, **smaller))
    return case


def copy_cases():
    """Block copies between all pairs of memories, and some reductions."""
    for source in Space:
        for destination in Space:
            fields = {"source_space": source, "destination_space": destination}
            target = {(Space.SHARED, Space.SHARED): 0.95, (Space.GLOBAL, Space.GLOBAL): 0.90}.get((source, destination))
            yield Copies(f"blocks, {source.name.lower()} to {destination.name.lower()}", fields, target)
    fields = {"source_space": Space.SHARED, "reduction": Reduction.ADD, "element": Element.F32}
    yield Copies("blocks, shared added to global, f32", fields, 0.90)
    fields |= {"source_space": Space.GLOBAL, "destination_space": Space.SHARED}
    yield Copies("blocks, global added to shared, f32", fields)
    yield Copies("blocks, global added to shared, u32", fields | {"element": Element.U32}, 1.00)


def _tensor(box, stride, size=None, element="u8", **options):
    """A tensor with a few boxes in each dimension, and the given byte strides."""
    return TensorMap(element=element, size=size or [4 * extent for extent in box], stride=stride, box=box, **options)


def _sliding(tmap):
    """Starts of boxes side by side inside the tensor, which repeat when the tensor is covered."""
    places = [range(0, size - box + 1, box) for size, box in zip(tmap.size, tmap.box, strict=True)]
    cycle = itertools.cycle(itertools.product(*reversed(places)))
    return [list(reversed(next(cycle))) for _ in range(BOXES)]


def few_cases(smem_bytes=1 << 20):
    """Boxes with which other engines were measured (docs/fpga.md, "Beside others"), if they fit ``smem_bytes``."""
    rows = [_steady(f"64 rows of {row} bytes", _tensor((row, 64), (4 * row + 128,)), None) for row in (64, 128)]
    return _fitting([*rows, *_named_tiles()], smem_bytes)


def _steady(name, tmap, target, coords=None):
    return Steady(name, tmap, coords or _sliding(tmap), target)


def _rows():
    """Rows with gaps between them, in 2-D."""
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
    # Pixels of 16 bytes: eight half-precision channels out of 64, or all channels.
    apart = TensorMap(element="f16", size=(64, 64, 64), stride=(128, 64 * 128), box=(8, 10, 10))
    adjoining = TensorMap(element="f16", size=(8, 64, 64), stride=(16, 64 * 16), box=(8, 10, 10))
    starts = [[0, 4 * (i % 12), i % 50] for i in range(BOXES)]
    yield _steady("halo_c64", apart, 0.98, starts)
    yield _steady("halo_c8", adjoining, 0.98, starts)
    rows_4d = TensorMap(element="f16", size=(64, 16, 16, 16), stride=(128, 16 * 128, 256 * 128), box=(8, 4, 8, 8))
    yield _steady("rows_4d", rows_4d, 0.98)


def _sharing():
    """Rows that share bus words, but are not contiguous: half of the channels of each pixel."""
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
    # A bus word and a line of fill take a cycle each: with half of the box outside the hardware reaches at most 66.7 %.
    yield _steady("half outside to the left, rows of 256 bytes", tmap, None, [[-128, i % 48] for i in range(BOXES)])
    yield _steady("half outside to the right, rows of 256 bytes", tmap, None, [[384, i % 48] for i in range(BOXES)])
    yield _steady("half outside below, rows of 256 bytes", tmap, None, [[0, 56] for _ in range(BOXES)])
    tmap = _tensor((64, 32), (256,), size=(64, 64))
    for place, row in (("half outside above", -16), ("half outside below", 48)):
        yield _steady(f"{place}, rows of 64 bytes", tmap, 0.90, [[0, row] for _ in range(BOXES)])
    yield _steady("three rows of 32 outside above, rows of 64 bytes", tmap, 0.90, [[0, -3] for _ in range(BOXES)])


def _images(depth, sizes, **options):
    """A half-precision image of the given ``sizes``, with the bounding box of a filter of width 3."""
    spatial = len(sizes)
    size, stride = [depth, *sizes, 64], [2 * depth]
    for extent in sizes:
        stride.append(stride[-1] * extent)
    corners = {"lower": [-1] * spatial, "upper": [-1] * spatial}
    return TensorMap(element="f16", size=size, stride=stride, mode="im2col", **corners | {"pixels": 64} | options)


def _walking(tmap, name, target, spatial, **fields):
    coords = [[0, *[i % 6] * spatial, i % 60] for i in range(BOXES)]
    return Steady(name, tmap, coords, target, fields)


def _pixels():
    """Taps of convolutions: in the middle of the filter, where all pixels are inside, and at its corner."""
    for channels in (8, 16, 32, 64, 128):
        tmap = _images(max(channels, 64), (32, 32), channels=channels)
        target = 0.98 if channels < 32 else 0.99
        yield _walking(tmap, f"im2col, pixels of {2 * channels} bytes", target, 2, offsets=(1, 1))
    # Contiguous pixels: two lines of the image in each box, and the same with the first pixel of each line outside.
    tmap = _images(8, (64, 64), channels=8, pixels=128)
    coords = [[0, -1, 2 * (i % 31) - 1, i % 60] for i in range(BOXES)]
    for name, offsets in (("", (1, 1)), (", corner tap", (0, 0))):
        yield Steady(f"im2col, adjoining pixels of 16 bytes{name}", tmap, coords, 0.90, {"offsets": offsets})
    tmap = _images(64, (32,), channels=64)
    yield _walking(tmap, "im2col, 1-D, pixels of 128 bytes", 0.99, 1, offsets=(1,))
    tmap = _images(64, (8, 8, 8), channels=64)
    yield _walking(tmap, "im2col, 3-D, pixels of 128 bytes", 0.99, 3, offsets=(1, 1, 1))
    tmap = _images(64, (32, 32), channels=64, swizzle="128B")
    yield _walking(tmap, "im2col, pixels of 128 bytes, swizzle 128B", 0.99, 2, offsets=(1, 1))
    tmap = _images(64, (32, 32), channels=64, traversal=(1, 2, 2, 1))
    yield _walking(tmap, "im2col, step 2, pixels of 128 bytes", 0.99, 2, offsets=(1, 1))
    tmap = _images(64, (32, 32), channels=64)
    yield _walking(tmap, "im2col, corner tap, pixels of 128 bytes", None, 2, offsets=(0, 0))


def _interleaved():
    for name, slice_bytes, swizzle in (("16B", 16, "none"), ("32B", 32, "32B")):
        size, stride = (64, 64, 4, 8), (64 * slice_bytes, 64 * 64 * slice_bytes, 4 * 64 * 64 * slice_bytes)
        tmap = TensorMap(element="f16", size=size, stride=stride, box=(8, 8, 1, 1), interleave=name, swizzle=swizzle)
        yield _steady(f"interleave {name}, 8 x 8 slices", tmap, 0.98, [[8 * (i % 7), i % 50, i % 4, 0] for i in
                                                                        range(BOXES)])  # fmt: skip


def _unaligned():
    """Rows that begin at any byte in a bus word."""
    for row, stride in ((64, 333), (128, 387), (256, 1031)):
        tmap = _tensor((row, 32), (stride,), size=(row, 512), address=3, unaligned=True)
        yield _steady(f"unaligned, rows of {row} bytes, {stride} apart", tmap, 0.97, [[0, 7 * i] for i in range(BOXES)])
    tmap = _tensor((251, 32), (251,), size=(251, 512), address=1, unaligned=True)
    yield _steady("unaligned, adjoining rows of 251 bytes", tmap, 0.97, [[0, 7 * i] for i in range(BOXES)])
    tmap = TensorMap(element="f32", size=(256, 64), stride=(1024,), box=(64, 8), traversal=(4, 1), gather0=True)
    yield _steady("gather0, every fourth f32", tmap, None, [[0, i % 50] for i in range(BOXES)])


def _stores():
    store = {"opcode": Opcode.STORE}
    for row in (16, 32, 64, 128, 256):
        tmap = _tensor((row, 32), (4 * row + 128,))
        yield replace(_steady(f"store, rows of {row} bytes", tmap, 0.98), fields=store)
    for swizzle in ("32B", "64B", "128B"):
        tmap = _tensor((int(swizzle[:-1]), 32), (512,), swizzle=swizzle)
        yield replace(_steady(f"store, swizzle {swizzle}, rows of {swizzle[:-1]} bytes", tmap, 0.98), fields=store)
    tmap = _images(64, (32, 32), channels=64, lower=(0, 0), upper=(0, 0))
    yield _walking(tmap, "store, im2col, pixels of 128 bytes", 0.98, 2, **store)
    tmap = _tensor((128, 32), (387,), size=(128, 512), address=3, unaligned=True)
    yield replace(_steady("store, unaligned, rows of 128 bytes", tmap, 0.97, [[0, 7 * i] for i in range(BOXES)]),
                  fields=store)  # fmt: skip


def _reductions():
    for element, row in (("u32", 64), ("f32", 64), ("f16", 32), ("bf16", 32)):
        tmap = _tensor((row, 32), (4 * row * Element[element.upper()].bytes + 128,), element=element)
        fields = {"opcode": Opcode.REDUCE, "reduction": Reduction.ADD}
        row_bytes = row * tmap.element.bytes
        case = _steady(f"reduce, add {element}, rows of {row_bytes} bytes", tmap, 0.80 if row_bytes > 64 else None)
        yield replace(case, fields=fields)
