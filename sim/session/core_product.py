"""A product whose operands lie in global memory: how the TMAU moves the pages of its segments."""

from typing import NamedTuple

import numpy as np

from tilewright.golden import TensorMap
from tilewright.golden.pe.program import gemm_program
from tilewright.golden.spec import Opcode

__all__ = ["CoreProduct", "PageMove"]

_ROW_LOG2 = 7  # rows of pages have 128 bytes: all that a swizzle of 128 bytes spans
_UNSIGNED = {1: "u8", 2: "u16", 4: "u32"}
_C = 2  # segment of the result
_CHUNK_BYTES = 16  # of which rows of a box are made


class PageMove(NamedTuple):
    """A page of a segment and the box of a tensor that is the same."""

    number: int  # of the page in its segment
    tmap: TensorMap
    coords: tuple
    smem: int

    def command(self, descriptor, *, store=False, **fields):
        """Fields of the command that brings the page, or takes it away."""
        opcode = Opcode.STORE if store else Opcode.LOAD
        return {"opcode": opcode, "descriptor": descriptor, "coords": self.coords, "smem": self.smem} | fields


class CoreProduct:
    """C = A × B, with A, B, C and the table of offsets in global memory.

    Parameters
    ----------
    a, b : arrays of shape (m, k) and (k, n)
        Raw bits count. Rows as they are stored, of A, of B (or of its transpose) and of C, are multiples of 16 bytes.
    kind : MmType
    params : CoreParams
    place : callable
        Copies an array to global memory; returns its address, a multiple of 16.
    page_rows : tuple of int or None
        Log2 of the rows of a page of A, B and C; None: all.
    options
        Of ``gemm_program``.

    Attributes
    ----------
    program : golden Program
    moves : list of list of PageMove
        Of each segment: A, B, C, table.
    c_address : int
        Of C in global memory, which begins as zeros.
    """

    def __init__(self, a, b, kind, params, place, *, page_rows=(None, None, None), transpose=0, **options):
        rows = (len(a), len(b) if transpose else b.shape[1], len(a))
        element_log2 = (a.itemsize.bit_length() - 1, b.itemsize.bit_length() - 1, 2)
        page_log2 = [
            (_ROW_LOG2 - size_log2, (count - 1).bit_length() if log2 is None else log2)
            for size_log2, count, log2 in zip(element_log2, rows, page_rows, strict=True)
        ]
        self.program = gemm_program(
            a, b, kind, sizes=params.pe, size_bytes=params.smem.size_bytes, page_log2=page_log2, transpose=transpose,
            **options
        )  # fmt: skip
        placement = self.program.placement
        arrays = [np.ascontiguousarray(placement.get(number)) for number in range(len(placement.segments))]
        addresses = list(map(place, arrays))
        self.c_address = addresses[_C]
        self.moves = [
            list(self._moves(segment, address)) for segment, address in zip(placement.segments, addresses, strict=True)
        ]

    def entry(self, segment, move):
        """Index of the page's entry."""
        return self.program.placement.segments[segment].first_entry + move.number

    def _moves(self, segment, address):
        page = tuple(1 << log2 for log2 in segment.page_log2)
        # What lies behind a tensor smaller than its page is not the page's: the outermost dimension ends with it.
        chunk = -(-_CHUNK_BYTES // segment.element.bytes) if segment.rank == 1 else 1
        box = (*page[:-1], min(page[-1], -(-segment.size[-1] // chunk) * chunk))
        row_bytes = segment.element.bytes * segment.size[0]
        tmap = TensorMap(
            element=_UNSIGNED[segment.element.bytes], size=segment.size, stride=(row_bytes,)[: segment.rank - 1],
            box=box, swizzle=segment.swizzle, address=address,
        )  # fmt: skip
        # Dimension 0 runs fastest.
        for number, place in enumerate(np.ndindex(*segment.pages[::-1])):
            coords = tuple(index * size for index, size in zip(place[::-1], page, strict=True))
            entries = self.program.placement.entries
            smem = entries[segment.first_entry + number] & 0xFFFFFFFF if segment.paged else segment.base
            yield PageMove(number, tmap, coords, smem)
