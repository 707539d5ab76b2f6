"""How a convolution is cut for the processing engine: tiles of points, parts of the kernel, and shared memory."""

from dataclasses import dataclass
from itertools import product
from math import ceil

from tilewright.spec import CHUNK_BYTES, LINE_BYTES
from tilewright.spec.memory import Swizzle
from tilewright.spec.pe import PAGE_ENTRY, MmType, SegmentElement

from ..conv.shape import ConvShape
from ..dot_product import segment_elements
from ..pe.gemm_plan import Gemm, Plan
from ..pe.machine import PeSizes
from ..pe.placement import Placement

__all__ = ["ImplicitPlan", "plan_implicit"]

#: Points and channels of a product at most: what a box of the TMAU takes.
_MOST = 256
#: Columns of C in a page of it.
_COLUMNS = LINE_BYTES // 4
#: Cycles from the end of a product to the next one, about: both engines end, and instructions are fetched.
_TURN = 300
#: Cycles of an instruction that stores products, about: of each column where threads share rows.
_STORE = 8
#: Bytes that are loaded in a cycle, about, and not more than a block of one pixel.
_LOAD = 32
#: Threads that share a row of C, of which there are as many at once as there are groups.
_SHARING = (1, 2, 4)


@dataclass(frozen=True)
class ImplicitPlan:
    """A convolution as products of matrices: A is points × K, B is K × channels.

    K is the kernel's positions, each with its channels in blocks of ``row_bytes``, the last one filled up with zeros.
    So one im2col load brings a page of A: a block of one position, of all points of a tile.

    Attributes
    ----------
    gemm : Gemm
        Of one tile: its points, and the output channels of a part of the kernel.
    row_bytes, blocks : int
        Bytes of a pixel that a load brings, and loads for a kernel position.
    tiles, parts : int
        What the points are cut into, and the output channels.
    placement : Placement
        Of shared memory.
    a, c : tuple of int
        Segments of A and of C, which take turns from one product to the next.
    b, table : int
        Segments of B, and of what ``lower_gemm`` wants.
    """

    gemm: Gemm
    row_bytes: int
    blocks: int
    tiles: int
    parts: int
    placement: Placement
    a: tuple[int, ...]
    c: tuple[int, ...]
    b: int
    table: int

    def pages(self, number):
        """Addresses of the pages of segment ``number``, as a list."""
        segment = self.placement.segments[number]
        entries = self.placement.entries[segment.first_entry :][: segment.pages[0]]
        return [PAGE_ENTRY.unpack(entry)["address"] for entry in entries]


def plan_implicit(shape, kind, sizes, smem_bytes, cores=1):
    """The :class:`ImplicitPlan` of a ``ConvShape`` with elements of the ``MmType`` ``kind``.

    Of the ways that fit shared memory, the one that should take the fewest cycles on so many ``cores``, which share the
    tiles out. ValueError if none fits.
    """
    best = None
    for columns, ka, row_bytes in product(_columns(shape.out_channels), _SHARING, _row_bytes(shape)):
        cut = _Cut(shape, kind, sizes, columns, ka, row_bytes, cores)
        rows = min(cut.rows(smem_bytes), key=cut.cycles, default=None)
        if rows and (best is None or cut.cycles(rows) < best[0]):
            best = cut.cycles(rows), cut, rows
    if best:
        return best[1].plan(best[2], smem_bytes)
    raise ValueError(
        f"{smem_bytes} bytes of shared memory, with {sizes.segments} segments and {sizes.pages} pages, hold no part of "
        f"the kernel with points to multiply: {shape}"
    )


def _columns(channels):
    """Channels of a part of the kernel, the most first."""
    whole = range(min(channels // _COLUMNS * _COLUMNS, _MOST), 0, -_COLUMNS)
    return [*([channels] if channels <= _MOST else []), *whole, *(few for few in (16, 8, 4) if few < channels)]


def _row_bytes(shape):
    """Bytes of a block of channels, the most first."""
    pixel = shape.channels * shape.element_bytes
    return [row for row in (128, 64, 32, 16) if row < 2 * pixel]


@dataclass(frozen=True)
class _Cut:
    """A way to cut a convolution, but for the points of a tile."""

    shape: ConvShape
    kind: MmType
    sizes: PeSizes
    columns: int
    ka: int
    row_bytes: int
    cores: int

    @property
    def blocks(self):
        """Blocks of channels."""
        return ceil(self.shape.channels * self.kind.bytes / self.row_bytes)

    @property
    def k_bytes(self):
        """Bytes of K."""
        return self.shape.taps * self.blocks * self.row_bytes

    def gemm(self, rows):
        """The product of a tile."""
        return Gemm((rows,), (self.columns,), self.k_bytes // self.kind.bytes, self.kind, ka=self.ka)

    def rows(self, smem_bytes):
        """All numbers of points that a tile can have, ascending: a row for each group of threads, several times."""
        group = max(1, self.sizes.threads // self.ka)
        most = min(_MOST, ceil(self.shape.points / group) * group)
        return [rows for rows in range(group, most + 1, group) if self._fits(rows, smem_bytes)]

    def _fits(self, rows, smem_bytes):
        """Whether shared memory and page entries suffice."""
        parts = ((self.k_bytes, self.row_bytes, rows), (4 * self.columns, LINE_BYTES, rows)) * 2
        parts += ((self.k_bytes, LINE_BYTES, self.columns),)
        pages = sum(ceil(row / most) for row, most, _ in parts)
        used = sum(ceil(row / most) * _lines(_page_row(row, most) * count) for row, most, count in parts)
        table = 5 * self.sizes.threads + 2 * rows + self.columns  # words at most
        return pages <= self.sizes.pages and used + _lines(4 * table) <= smem_bytes

    def cycles(self, rows):
        """About how many cycles the program takes."""
        turns = ceil(ceil(self.shape.points / rows) / self.cores) * ceil(self.shape.out_channels / self.columns)
        sums, stores = ceil(self.columns / self.ka), 1 if self.ka == 1 else self.columns
        steps = ceil(self.k_bytes / (4 * self.sizes.factor_regs))
        one = ceil(rows * self.ka / self.sizes.threads) * (sums * steps + stores * _STORE)
        loads = rows * self.shape.taps * self.blocks * ceil(self.row_bytes / _LOAD)
        return turns * (max(one, loads) + _TURN) + loads

    def plan(self, rows, smem_bytes):
        """The plan with tiles of so many points; ValueError if it does not fit."""
        shape, gemm = self.shape, self.gemm(rows)
        placement = Placement(smem_bytes, self.sizes)
        elements = segment_elements(self.kind)
        a = tuple(_matrix(placement, (gemm.k, rows), elements[0], self.row_bytes) for _ in range(2))
        b = _matrix(placement, (gemm.k, self.columns), elements[1])
        c = tuple(_matrix(placement, (self.columns, rows), elements[2]) for _ in range(2))
        count = len(Plan(gemm, self.sizes).table)
        log2 = max(2, (count - 1).bit_length())
        table = placement.add((count,), SegmentElement.U32, page_log2=(log2,), paged=False)
        tiles, parts = ceil(shape.points / rows), ceil(shape.out_channels / self.columns)
        return ImplicitPlan(gemm, self.row_bytes, self.blocks, tiles, parts, placement, a, c, b, table)


def _lines(count):
    """``count`` bytes, in whole lines."""
    return -(-count // LINE_BYTES) * LINE_BYTES


def _page_row(count, most):
    """Bytes of the rows of a page that hold ``count`` bytes, or ``most`` of them."""
    return min(max(CHUNK_BYTES, 1 << (count - 1).bit_length()), most)


def _matrix(placement, size, element, row_bytes=LINE_BYTES):
    """A segment whose pages have rows of at most ``row_bytes``, swizzled as wide as they are."""
    row = _page_row(size[0] * element.bytes, row_bytes)
    page_log2 = (row // element.bytes).bit_length() - 1, (size[1] - 1).bit_length()
    swizzle = Swizzle((row // CHUNK_BYTES).bit_length() - 1)
    return placement.add(size, element, page_log2=page_log2, swizzle=swizzle, paged=True)
