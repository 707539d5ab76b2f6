"""The tensor descriptor ("tensor map"): 128 bytes in global memory, 64-byte aligned.

Specification: docs/tmau.md, "Tensor descriptor".
"""

from enum import IntEnum

from ..fields import Field, Format
from ..swizzle import Swizzle

__all__ = ["DESCRIPTOR", "DESCRIPTOR_VERSION", "Element", "Fill", "Interleave", "L2Promotion", "Mode"]

DESCRIPTOR_VERSION = 1


class Mode(IntEnum):
    """How a command walks the tensor."""

    TILE = 0  #: a box of elements (docs/tmau.md, "Tile mode")
    IM2COL = 1  #: pixels of a convolution (docs/tmau.md, "Im2col mode")


class Element(IntEnum):
    """Element type."""

    U8 = 0
    S8 = 1
    U16 = 2
    S16 = 3
    U32 = 4
    S32 = 5
    U64 = 6
    S64 = 7
    F16 = 8
    BF16 = 9
    F32 = 10
    F64 = 11
    TF32 = 12  #: 32 bits in memory, rounded to ten mantissa bits by a load
    F8E4M3 = 13
    F8E5M2 = 14

    @property
    def bytes(self):
        """Bytes an element takes in memory: 1, 2, 4 or 8."""
        return (1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 4, 1, 1)[self]

    @property
    def is_float(self):
        return self >= Element.F16


class Interleave(IntEnum):
    """Channel slices in memory: none, NC/8HWC8 (16-byte slices) or NC/16HWC16 (32-byte slices)."""

    NONE = 0
    B16 = 1
    B32 = 2

    @property
    def bytes(self):
        """Bytes of a slice; 0 without interleave."""
        return (0, 16, 32)[self]


class Fill(IntEnum):
    """What stands in the place of an element outside the tensor."""

    ZERO = 0
    NAN = 1  #: every 16-bit half is 0x7FF7; float types only
    CONSTANT = 2  #: the 32-bit ``fill_constant``, laid at every fourth byte (beyond silicon)


class L2Promotion(IntEnum):
    """Granularity hint for a cache behind the TMAU; no effect on bytes."""

    NONE = 0
    B64 = 1
    B128 = 2
    B256 = 3


DESCRIPTOR = Format(
    "descriptor",
    1024,
    "Tensor and access box, read by the TMAU from global memory. Dimension 0 is the innermost. Fields of dimensions "
    "that the rank does not reach are stored as zero; tile mode ignores the im2col fields and im2col mode the box.",
    (
        Field("version", 0, 8, "Layout of this word: 1."),
        Field("rank", 8, 3, "Number of dimensions: 1 to 5; 3 to 5 for im2col and for interleave."),
        Field("mode", 11, 1, "Walk that commands on this descriptor make.", enum=Mode),
        Field("element", 12, 4, "Element type.", enum=Element),
        Field("interleave", 16, 2, "Channel slices.", enum=Interleave),
        Field("swizzle", 18, 2, "Span of the chunk permutation in shared memory.", enum=Swizzle),
        Field("fill", 20, 2, "Contents of elements outside the tensor.", enum=Fill),
        Field("l2_promotion", 22, 2, "Fetch granularity hint.", enum=L2Promotion),
        Field("unaligned", 24, 1, "Address and strides may be any multiple of the element size."),
        Field("gather0", 25, 1, "traversal[0] is honoured without interleave."),
        Field("fill_constant", 32, 32, "Fill pattern of Fill.CONSTANT, little-endian."),
        Field("address", 64, 64, "Byte address of element (0, 0, …): a multiple of 16, of 32 with 32-byte interleave."),
        Field("size", 128, 32, "Elements of each dimension, 1 to 2^32.", count=5, pitch=32, bias=1),
        Field("box", 288, 8, "Elements of the box in each dimension, 1 to 256, before traversal.",
              count=5, pitch=8, bias=1),
        Field("traversal", 328, 4, "Step in each dimension, 1 to 8; [0] is ignored unless gather0 or interleave.",
              count=5, pitch=4, bias=1),
        Field("channels", 352, 8, "im2col: channels a pixel, 1 to 256.", bias=1),
        Field("pixels", 360, 10, "im2col: pixels a command, 1 to 1024.", bias=1),
        Field("lower", 384, 16, "im2col: lower corner of the bounding box, W H D.", count=3, pitch=16, signed=True),
        Field("upper", 432, 16, "im2col: upper corner, relative to the size, W H D.", count=3, pitch=16, signed=True),
        Field("stride", 512, 40, "Bytes from one index of dimension 1, 2, 3, 4 to the next: a multiple of 16, of 32 "
              "with 32-byte interleave; 0 and overlapping strides are legal.", count=4, pitch=64),
    ),
)  # fmt: skip
