"""Plans of convolutions on the processing engine: tiles of points, parts of the kernel, and shared memory."""

from dataclasses import dataclass
from itertools import product
from math import ceil

from tilewright.spec import CHUNK_BYTES, LINE_BYTES
from tilewright.spec.memory import Swizzle
from tilewright.spec.pe import PAGE_ENTRY, MmType, SegmentElement

from ..conv.shape import ConvShape
from ..dot_product import segment_elements
from ..pe.gemm_plan import Gemm, Plan
from ..pe.placement import Placement
from ..pe.sizes import PeSizes

__all__ = ["ImplicitPlan", "plan_implicit"]

#: Most points and channels of a product, which a box of the TMAU can hold.
_MOST = 256
#: Columns of C in a page.
_COLUMNS = LINE_BYTES // 4
#: Approximate cycles between two products, in which both engines end and instructions are fetched.
_TURN = 300
#: Approximate cycles of an instruction that stores products; each column has one if threads share rows.
_STORE = 8
#: Approximate bytes loaded in a cycle, all from a block of one pixel.
_LOAD = 32
#: Numbers of threads that can share a row of C.
_SHARING = (1, 2, 4)


@dataclass(frozen=True)
class ImplicitPlan:
    """A convolution as products of matrices: A is points × K, B is K × channels.

    K has all positions of the kernel, each with its channels in blocks of ``row_bytes``, the last block padded with
    zeros. One im2col load fills a page of A: a block of one position for all points of a tile.

    Attributes
    ----------
    gemm : Gemm
        The product of a tile, for the output channels of a part of the kernel.
    row_bytes, blocks : int
        Bytes of a pixel in a load, and loads for a kernel position.
    tiles, parts : int
        Tiles of points, and parts of output channels.
    placement : Placement
    a, c : tuple of int
        Segments of A and of C, used alternately.
    b, table : int
        Segments of B, and of the table for ``lower_gemm``.
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
        """The list of the addresses of the pages of segment ``number``."""
        segment = self.placement.segments[number]
        entries = self.placement.entries[segment.first_entry :][: segment.pages[0]]
        return [PAGE_ENTRY.unpack(entry)["address"] for entry in entries]


def plan_implicit(shape, kind, sizes, smem_bytes, cores=1):
    """The :class:`ImplicitPlan` of a ``ConvShape`` with elements of the ``MmType`` ``kind``.

    It has the fewest estimated cycles of all plans that fit shared memory, with tiles distributed over ``cores`` cores.
    ValueError if none fits.
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
    """Numbers of channels that a part of the kernel can have, the largest first."""
    whole = range(min(channels // _COLUMNS * _COLUMNS, _MOST), 0, -_COLUMNS)
    return [*([channels] if channels <= _MOST else []), *whole, *(count for count in (16, 8, 4) if count < channels)]


def _row_bytes(shape):
    """Sizes in bytes that a block of channels can have, the largest first."""
    pixel = shape.channels * shape.element_bytes
    return [row for row in (128, 64, 32, 16) if row < 2 * pixel]


@dataclass(frozen=True)
class _Cut:
    """A plan without the number of points of a tile."""

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
        """Numbers of points that a tile can have, ascending: multiples of the number of groups of threads."""
        group = max(1, self.sizes.threads // self.ka)
        limit = min(_MOST, ceil(self.shape.points / group) * group)
        return [rows for rows in range(group, limit + 1, group) if self._fits(rows, smem_bytes)]

    def _fits(self, rows, smem_bytes):
        """Whether shared memory and page entries suffice."""
        parts = ((self.k_bytes, self.row_bytes, rows), (4 * self.columns, LINE_BYTES, rows)) * 2
        parts += ((self.k_bytes, LINE_BYTES, self.columns),)
        pages = sum(ceil(row / limit) for row, limit, _ in parts)
        used = sum(ceil(row / limit) * _lines(_page_row(row, limit) * count) for row, limit, count in parts)
        table = 5 * self.sizes.threads + 2 * rows + self.columns  # words at most
        return pages <= self.sizes.pages and used + _lines(4 * table) <= smem_bytes

    def cycles(self, rows):
        """An estimate of the cycles of the program."""
        turns = ceil(ceil(self.shape.points / rows) / self.cores) * ceil(self.shape.out_channels / self.columns)
        sums, stores = ceil(self.columns / self.ka), 1 if self.ka == 1 else self.columns
        steps = ceil(self.k_bytes / (4 * self.sizes.factor_regs))
        product = ceil(rows * self.ka / self.sizes.threads) * (sums * steps + stores * _STORE)
        loads = rows * self.shape.taps * self.blocks * ceil(self.row_bytes / _LOAD)
        return turns * (max(product, loads) + _TURN) + loads

    def plan(self, rows, smem_bytes):
        """The plan with tiles of ``rows`` points; ValueError if it does not fit."""
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
    """``count`` bytes, rounded up to whole lines."""
    return -(-count // LINE_BYTES) * LINE_BYTES


def _page_row(count, limit):
    """Bytes of the rows of a page for ``count`` bytes, at most ``limit``."""
    return min(max(CHUNK_BYTES, 1 << (count - 1).bit_length()), limit)


def _matrix(placement, size, element, row_bytes=LINE_BYTES):
    """A segment with pages of rows of at most ``row_bytes``, swizzled in their full width."""
    row = _page_row(size[0] * element.bytes, row_bytes)
    page_log2 = (row // element.bytes).bit_length() - 1, (size[1] - 1).bit_length()
    swizzle = Swizzle((row // CHUNK_BYTES).bit_length() - 1)
    return placement.add(size, element, page_log2=page_log2, swizzle=swizzle, paged=True)
