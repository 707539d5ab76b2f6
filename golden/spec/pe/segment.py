"""Segments, and the entries of their pages (docs/pe.md, "Logical addresses")."""

from enum import IntEnum

from ..fields import Field, Format
from ..swizzle import Swizzle

__all__ = ["MAX_PAGE_LOG2", "PAGE_ENTRY", "SEGMENT", "SegmentElement"]

#: Log2 of the bytes of the largest page.
MAX_PAGE_LOG2 = 20


class SegmentElement(IntEnum):
    """Type of a segment's elements; the low two bits are log2 of its bytes."""

    S8 = 0
    S16 = 1
    S32 = 2
    U8 = 4
    U16 = 5
    U32 = 6
    F16 = 9
    F32 = 10
    BF16 = 13

    @property
    def bytes(self):
        """Bytes of an element."""
        return 1 << (self & 3)


SEGMENT = Format("segment", 256, "A tensor, or a part of one, that instructions address by element.", (
    Field("element", 0, 4, "Element type.", enum=SegmentElement),
    Field("rank", 4, 2, "Dimensions, 1 to 4.", bias=1),
    Field("swizzle", 6, 2, "Permutation of the chunks in shared memory, as the TMAU made it.", enum=Swizzle),
    Field("paged", 8, 1, "1: pages lie where their entries say. 0: there is one page, and it lies at `base`."),
    Field("first_entry", 16, 16, "Entry of page 0; 0 if not paged."),
    Field("base", 32, 32, "Byte address of the only page, a multiple of 16; 0 if paged."),
    Field("size", 64, 16, "Elements of each dimension, innermost first; 0 beyond the rank.", count=4, pitch=16),
    Field("page_log2", 128, 4, "Log2 of a page's elements in each dimension; 0 beyond the rank.", count=4, pitch=4),
))  # fmt: skip

PAGE_ENTRY = Format("page_entry", 64, "Where a page is.", (
    Field("address", 0, 32, "Byte address, a multiple of 16."),
    Field("valid", 32, 1, "The page exists."),
    Field("loaded", 33, 1, "Its data are there; an access to a valid page waits for this."),
    Field("on_chip", 34, 1, "The address is one of shared memory."),
))  # fmt: skip
