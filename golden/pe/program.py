"""Products of arrays as programs of the processing engine, with operands placed in shared memory.

Tensors of higher rank are multiplied as matrices (docs/pe.md, "Higher ranks"): A (m × x × k) times B (k × n × y × z) is
the product of the (m·x) × k matrix and the k × (n·y·z) matrix, and C is m × x × n × y × z. K is never split, so only
the offsets of threads differ.
"""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.spec.memory import Swizzle
from tilewright.spec.names import suggestion
from tilewright.spec.pe import SegmentElement

from ..arguments import shown, truth
from ..dot_product import mm_type, operand, segment_elements, values
from .gemm import lower_gemm
from .gemm_plan import Gemm, Plan
from .machine import Pe
from .placement import Placement
from .sizes import PeSizes, sizes_or_default

__all__ = ["Program", "flat_product_shape", "gemm_of_shapes", "gemm_program", "laid_out", "multiply"]

_B = 1  # position of B among the operands
_OPERANDS = 3
#: Attributes of a Gemm that the caller chooses and the operands do not decide.
_OPTIONS = ("ka", "kb", "transpose", "order", "depth")


def gemm_of_shapes(a_shape, b_shape, kind, **options):
    """The :class:`Gemm` of A, with K last, and B, with K first, of the type ``kind``.

    ``options`` are its other attributes.
    """
    for name, shape in (("a", a_shape), ("b", b_shape)):
        if len(shape) < 2:
            raise ValueError(f"{name} must have K and at least one more dimension, not shape {shape}")
    *rows, k = a_shape
    k_of_b, *columns = b_shape
    if k != k_of_b:
        raise ValueError(f"A has {k} elements along K, and B {k_of_b}")
    return Gemm(tuple(reversed(rows)), tuple(reversed(columns)), k, kind, **options)


def laid_out(b, transpose):
    """The array B (k × …) as it lies in memory: with K as the last dimension or, if ``transpose``, the last but one."""
    return np.ascontiguousarray(np.moveaxis(b, 0, -2 if transpose else -1))


def flat_product_shape(a_shape, b_shape):
    """Shape of C as a matrix, with elements in the order of the tensor."""
    return math.prod(a_shape[:-1]), math.prod(b_shape[1:])


@dataclass
class Program:
    """Instructions and memory that a processor hands to the engine, and the place of the result.

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

    def __repr__(self):
        (m, k), n = (self.gemm.m, self.gemm.k), self.gemm.n
        contents = f"{len(self.words)} instructions, {len(self.placement.smem)} bytes of shared memory"
        return f"Program({m} × {k} times {k} × {n}, {self.gemm.type.name.lower()}: {contents})"

    def pe(self):
        """A golden machine with a copy of the shared memory, ready to run the words."""
        pe = Pe(self.placement.smem.copy(), self.sizes)
        self.placement.load(pe)
        return pe

    def result(self, smem):
        """Raw 32-bit elements of C in ``smem``."""
        return self.placement.get(self.c, smem).reshape(self.shape)

    def product(self, smem):
        """C in ``smem``: int32, uint32 or float32."""
        return values(self.result(smem), self.placement.segments[self.c].element)

    def run(self):
        """Raw 32-bit elements of C as the golden machine computes them; RuntimeError on an error."""
        pe = self.pe()
        pe.run(self.words)
        if pe.faults:
            raise RuntimeError(f"the program met {pe.faults[0]}")
        return self.result(pe.smem)


def multiply(a, b, type, c=None, **options):  # noqa: A002 - as in the instruction
    """A × B, or C + A × B, as the processing engine computes it.

    Arguments and errors are those of :func:`gemm_program`.

    Returns
    -------
    ndarray of int32, uint32 or float32
        Of shape (… of A, … of B). Integers wrap; floats are rounded once for each issue along K.
    """
    program = gemm_program(a, b, type, c=c, **options)
    return values(program.run(), program.placement.segments[program.c].element)


def gemm_program(
    a, b, type, *, c=None, sizes=None, size_bytes=128 * 1024, swizzle=Swizzle.B128, paged=None,  # noqa: A002
    page_log2=(None, None, None), repeated=False, **options,
):  # fmt: skip
    """The :class:`Program` of C = A × B, with operands placed in shared memory.

    Parameters
    ----------
    a, b : arrays of shape (…, k) and (k, …)
        Of the type of the elements, in any byte order; or raw bits, as unsigned integers of the same size.
    type : MmType or str
        ``"s8s8"``, ``"s8u8"`` … ``"u16u16"``, ``"f16"``, ``"bf16"``.
    c : array of the result's shape, optional
        Added to the product: int32, uint32 or float32 like the result; or raw bits, uint32.
    sizes : PeSizes, or anything with its attributes
    size_bytes : int
        Bytes of shared memory.
    swizzle, paged, page_log2 : optional
        Arguments of :meth:`Placement.add`; ``page_log2`` for A, B and C.
    repeated : bool
        B repeats itself from page to page, and memory holds one page of it.
    options : optional
        ``ka``, ``kb``, ``transpose``, ``order`` and ``depth`` of :class:`Gemm`.

    Raises
    ------
    TypeError
        If elements do not have the type, or an argument is of the wrong kind.
    ValueError
        If operands and result do not fit shared memory at once, so that the caller must split the product; if shapes
        do not match; if there is no such type.
    """
    kind = mm_type(type)
    elements = segment_elements(kind)
    a, b = operand("a", a, kind, elements[0]), operand("b", b, kind, elements[1])
    sizes, repeated = sizes_or_default(sizes), truth("repeated", repeated)
    _check_options(options, page_log2)
    gemm = gemm_of_shapes(a.shape, b.shape, kind, accumulate=c is not None, **options)
    stored = (a, laid_out(b, gemm.transpose), np.zeros(flat_product_shape(a.shape, b.shape), np.uint32))
    shape = (*a.shape[:-1], *b.shape[1:])
    placement = Placement(size_bytes, sizes)
    numbers = []
    for array, element, log2 in zip(stored, elements, page_log2, strict=True):
        once = repeated and len(numbers) == _B
        numbers.append(
            placement.add(array.shape[::-1], element, page_log2=log2, swizzle=swizzle, paged=paged, repeated=once)
        )
    for number, array in zip(numbers, stored, strict=True):
        placement.put(number, array)
    if c is not None:
        placement.put(numbers[2], _summand(c, kind, elements[2], shape).reshape(stored[2].shape))
    table = Plan(gemm, sizes).table
    numbers.append(placement.add(table.shape, SegmentElement.U32, page_log2=_one_page(len(table)), paged=False))
    placement.put(numbers[3], table)
    return Program(gemm, sizes, lower_gemm(gemm, sizes, *numbers), placement, numbers[2], shape)


def _check_options(options, page_log2):
    for name in options:
        if name not in _OPTIONS:
            there_are = f"there are {', '.join(_OPTIONS)}{suggestion(name, _OPTIONS)}"
            raise TypeError(f"there is no option {name!r} of a product: {there_are}")
    if not isinstance(page_log2, list | tuple) or len(page_log2) != _OPERANDS:
        raise TypeError(f"page_log2 must have three entries, for A, B and C, not {shown(page_log2)}")


def _summand(c, kind, element, shape):
    c = operand("c", c, kind, element)
    if c.shape != shape:
        raise ValueError(f"c must have the shape {shape} of the product, not {c.shape}")
    return c


def _one_page(count):
    """Log2 of the elements of a page with ``count`` words, at least those of a chunk."""
    return (max(2, (count - 1).bit_length()),)
