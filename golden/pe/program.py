"""A product with everything that it needs to run: instructions, segments, pages and shared memory."""

from dataclasses import dataclass

import numpy as np

from ..spec.pe.instruction import MmType
from ..spec.pe.segment import SegmentElement
from ..spec.swizzle import Swizzle
from .gemm import lower_gemm
from .gemm_plan import Gemm, Plan
from .machine import Pe, PeSizes
from .placement import Placement
from .ranks import flat_product_shape, gemm_of_shapes, laid_out

__all__ = ["Program", "gemm_program"]

#: Elements of A, B and C by type.
_ELEMENTS = {
    MmType.F16: (SegmentElement.F16, SegmentElement.F16, SegmentElement.F32),
    MmType.BF16: (SegmentElement.BF16, SegmentElement.BF16, SegmentElement.F32),
} | {
    kind: (
        (SegmentElement.S8, SegmentElement.U8, SegmentElement.S16, SegmentElement.U16)[kind >> 1 & 3],
        (SegmentElement.S8, SegmentElement.U8, SegmentElement.S16, SegmentElement.U16)[kind >> 1 & 2 | kind & 1],
        SegmentElement.S32 if kind in (MmType.S8S8, MmType.S16S16) else SegmentElement.U32,
    )
    for kind in MmType
    if not kind.is_float
}


_B = 1  # position of B among the operands


@dataclass
class Program:
    """What a processor hands to the engine, and where the result will be.

    Attributes
    ----------
    gemm : Gemm
    sizes : PeSizes, or anything with its attributes
    words : list of int
        Packed instructions.
    placement : Placement
        Shared memory with the operands, segments and page entries.
    c : int
        Segment of the result.
    shape : tuple of int
        Shape of the result.
    """

    gemm: Gemm
    sizes: PeSizes
    words: list[int]
    placement: Placement
    c: int
    shape: tuple[int, ...]

    def pe(self):
        """A golden machine, ready to run the words, with a copy of the shared memory."""
        pe = Pe(self.placement.smem.copy(), self.sizes)
        self.placement.load(pe)
        return pe

    def result(self, smem):
        """C as it lies in ``smem``: raw 32 bits."""
        return self.placement.get(self.c, smem).reshape(self.shape)

    def run(self):
        """C as the golden machine computes it; RuntimeError if it meets an error."""
        pe = self.pe()
        pe.run(self.words)
        if pe.faults:
            raise RuntimeError(f"the program met {pe.faults[0]}")
        return self.result(pe.smem)


def gemm_program(a, b, kind, *, c=None, sizes=None, size_bytes=128 * 1024, swizzle=Swizzle.B128, paged=None,
                 page_log2=(None, None, None), repeated=False, **options):  # fmt: skip
    """The :class:`Program` of C = A × B, with operands placed in shared memory.

    Parameters
    ----------
    a, b : arrays of shape (…, k) and (k, …)
        Of elements, of any type of their size: raw bits count. B is laid out as ``transpose`` says.
    kind : MmType
    c : array of the result's shape, optional
        What is added to, 32 bits; zero without it.
    sizes : PeSizes, or anything with its attributes
    size_bytes : int
        Bytes of shared memory.
    swizzle, paged, page_log2 : optional
        As :meth:`Placement.add` takes them; ``page_log2`` for A, B and C.
    repeated : bool
        B repeats itself from page to page, and only one page of it is in memory.
    options : optional
        Further attributes of :class:`Gemm`.

    Raises
    ------
    ValueError
        If operands and result do not fit shared memory at once: the caller splits the product.
    """
    kind = MmType(kind)
    sizes = sizes or PeSizes()
    gemm = gemm_of_shapes(a.shape, b.shape, kind, accumulate=c is not None, **options)
    stored = (a, laid_out(b, gemm.transpose), np.zeros(flat_product_shape(a.shape, b.shape), np.uint32))
    shape = (*a.shape[:-1], *b.shape[1:])
    placement = Placement(size_bytes, sizes)
    numbers = []
    for array, element, log2 in zip(stored, _ELEMENTS[kind], page_log2, strict=True):
        once = repeated and len(numbers) == _B
        numbers.append(
            placement.add(array.shape[::-1], element, page_log2=log2, swizzle=swizzle, paged=paged, repeated=once)
        )
    for number, array in zip(numbers, stored, strict=True):
        placement.put(number, array)
    if c is not None:
        placement.put(numbers[2], np.asarray(c).reshape(stored[2].shape))
    table = Plan(gemm, sizes).table
    numbers.append(placement.add(table.shape, SegmentElement.U32, page_log2=_one_page(len(table)), paged=False))
    placement.put(numbers[3], table)
    return Program(gemm, sizes, lower_gemm(gemm, sizes, *numbers), placement, numbers[2], shape)


def _one_page(count):
    """Log2 of the elements of a page with ``count`` words, at least a chunk of them."""
    return (max(2, (count - 1).bit_length()),)
