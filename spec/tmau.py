"""Descriptors, commands and error codes of the tensor memory access unit (docs/tmau.md).

A descriptor ("tensor map") is 128 bytes in global memory, 64-byte aligned. A command is a word of 512 bits; its opcode
selects its format in :data:`FORMATS`.
"""

from enum import IntEnum

from .fields import Field, Format, names
from .memory import Swizzle

__all__ = [
    "BLOCK", "COMMAND", "COMMAND_FIELD", "DESCRIPTOR", "DESCRIPTOR_VERSION", "FORMATS", "GROUP", "LANES",
    "REDUCTIONS", "REPLACE", "TENSOR_OPCODES", "Element", "Error", "Fill", "Interleave", "L2Promotion",
    "LaneLayout", "Mode", "Opcode", "Reduction", "Space",
]  # fmt: skip

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
    """Value of elements outside the tensor."""

    ZERO = 0
    NAN = 1  #: every 16-bit half is 0x7FF7; float types only
    CONSTANT = 2  #: the 32-bit ``fill_constant``, repeated every four bytes (beyond silicon)


class L2Promotion(IntEnum):
    """Granularity hint for a cache between the TMAU and memory; no effect on bytes."""

    NONE = 0
    B64 = 1
    B128 = 2
    B256 = 3


DESCRIPTOR = Format(
    "descriptor",
    1024,
    "Tensor and access box, read by the TMAU from global memory. Dimension 0 is the innermost. Fields of dimensions "
    "beyond the rank are stored as zero; tile mode ignores the im2col fields and im2col mode the box.",
    (
        Field("version", 0, 8, "Layout of this word: 1."),
        Field("rank", 8, 3, "Number of dimensions: 1 to 5; 3 to 5 for im2col and for interleave."),
        Field("mode", 11, 1, "Walk of commands on this descriptor.", enum=Mode),
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


class Opcode(IntEnum):
    """Operation of a command. There is no operation 0, so an empty word is refused."""

    LOAD = 1  #: global to shared memory, by a descriptor
    INVALIDATE = 2  #: drop the descriptor at ``descriptor`` from the cache
    INVALIDATE_ALL = 3  #: drop every cached descriptor
    STORE = 4  #: shared to global memory, by a descriptor
    REDUCE = 5  #: a store that combines each element with the old one by ``reduction``
    PREFETCH = 6  #: check a load and drop it; there is no cache that it could fill
    COPY_BLOCK = 7  #: a block of bytes from anywhere to anywhere, without a descriptor
    PREFETCH_BLOCK = 8  #: check a block in global memory and drop it
    COMMIT = 9  #: close a group: all commands since the last COMMIT that write global memory
    WAIT = 10  #: wait until at most ``count`` groups are unfinished
    WAIT_ALL = 11  #: wait until all earlier commands are complete
    REPLACE = 12  #: change one field of a descriptor in global memory
    LANES = 13  #: copy a tensor between global memory and lanes, or between two lane layouts


class Reduction(IntEnum):
    """New value of a destination element (docs/tmau.md, "Stores and reductions": also the element types of each)."""

    NONE = 0  #: the source
    ADD = 1  #: the sum
    MIN = 2  #: the smaller of both
    MAX = 3  #: the larger of both
    INC = 4  #: 0 if the old value is at least the source, and otherwise the old value plus 1
    DEC = 5  #: the source if the old value is 0 or more than the source, and otherwise the old value minus 1
    AND = 6  #: the bits that are set in both
    OR = 7  #: the bits that are set in one or both
    XOR = 8  #: the bits that are set in exactly one


#: Operations of a reduction, by the names that users write.
REDUCTIONS = {name: op for name, op in names(Reduction).items() if op}


class Space(IntEnum):
    """Memory of a block."""

    GLOBAL = 0
    SHARED = 1


class LaneLayout(IntEnum):
    """Layout of the tensor of a LANES command (docs/layouts.md, "Lane-local memory")."""

    GLOBAL = 0  #: contiguous in global memory
    ALIGNED = 1  #: in the lanes, each channel padded to ``eu_bytes``
    COMPACT = 2  #: in the lanes, channels without padding
    ROW_ALIGNED = 3  #: in the lanes, each row padded to ``eu_bytes``


_OPCODE = Field("opcode", 0, 4, "Operation.", enum=Opcode)
_SIGNAL = Field("signal", 4, 1, "1: the bytes that land in shared memory complete the transaction count of "
                "``barrier``.")  # fmt: skip
_REDUCTION = Field("reduction", 8, 4, "New value of the destination.", enum=Reduction)
_ELEMENT = Field("element", 12, 4, "Element type.", enum=Element)
_TAG = Field("tag", 16, 16, "Chosen by the issuer; returned with the completion and in error records.")
_BARRIER = Field("barrier", 64, 32, "Byte address of the barrier in shared memory: a multiple of 8.")
_DESCRIPTOR = Field("descriptor", 128, 64, "Global byte address of the descriptor: a multiple of 64.")
_SOURCE = Field("source", 128, 64, "Byte address to copy from: in global or shared memory, or in every lane.")
_DESTINATION = Field("destination", 192, 64, "Byte address to copy to: in global or shared memory, or in every lane.")


def _format(name, doc, *fields):
    return Format(name, 512, doc, fields)


COMMAND = _format(
    "command",
    "A command on a tensor: LOAD, STORE, REDUCE, PREFETCH, and INVALIDATE. Fields that an operation does not use are "
    "ignored.",
    _OPCODE,
    _SIGNAL,
    Field("fill", 5, 1, "STORE and REDUCE: 1: the source is the descriptor's fill, not shared memory."),
    _REDUCTION,
    _TAG,
    Field("smem", 32, 32, "Byte address in shared memory: a multiple of 128."),
    _BARRIER,
    _DESCRIPTOR,
    Field("coords", 192, 32, "Tensor coordinates of the start, innermost first; zero beyond the rank.",
          count=5, pitch=32, signed=True),
    Field("offsets", 352, 16, "im2col loads: offset of the filter tap, W H D; zero otherwise.", count=3, pitch=16),
)  # fmt: skip

BLOCK = _format(
    "block",
    "A command on a block of bytes: COPY_BLOCK, and PREFETCH_BLOCK, which uses source and size only.",
    _OPCODE,
    _SIGNAL,
    _REDUCTION,
    _ELEMENT,
    _TAG,
    Field("size", 32, 32, "Bytes: a multiple of 16, at most the size of shared memory; 0 moves nothing."),
    _BARRIER,
    Field("source_space", 96, 1, "Memory to copy from.", enum=Space),
    Field("destination_space", 97, 1, "Memory to copy to.", enum=Space),
    _SOURCE,
    _DESTINATION,
)

GROUP = _format(
    "group",
    "A command on groups: COMMIT, WAIT and WAIT_ALL, and INVALIDATE_ALL.",
    _OPCODE,
    _TAG,
    Field("count", 32, 8, "WAIT: groups that may be unfinished."),
    Field("read", 40, 1, "WAIT: 1: a group is finished when its source has been read."),
)

REPLACE = _format(
    "replace",
    "Change of one field of a descriptor in global memory: REPLACE. The cached descriptor is dropped, and later "
    "commands wait until the change is in memory.",
    _OPCODE,
    _TAG,
    Field("field", 32, 8, "Number of the field in ``descriptor``."),
    Field("index", 40, 3, "Element of an array field, and 0 for others."),
    _DESCRIPTOR,
    Field("value", 192, 64, "The new number, as stored; it must fit the field."),
)

LANES = _format(
    "lanes",
    "Copy of a tensor between global memory and lanes, or from lanes to lanes: LANES. Lane i is the i-th equal part "
    "of shared memory.",
    _OPCODE,
    _SIGNAL,
    _ELEMENT,
    _TAG,
    _BARRIER,
    _SOURCE,
    _DESTINATION,
    Field("shape", 256, 16, "Elements, W H C N: 1 to 65536.", count=4, pitch=16, bias=1),
    Field("lanes_log2", 320, 4, "Log2 of the number of lanes, 0 to 6."),
    Field("eu_log2", 324, 4, "Log2 of the bytes of ``eu_bytes``, 0 to 7: at least an element."),
    Field("source_layout", 328, 2, "Layout of the tensor at the source.", enum=LaneLayout),
    Field("destination_layout", 330, 2, "Layout of the tensor at the destination.", enum=LaneLayout),
    Field("source_lane", 336, 8, "Lane of channel 0 at the source; 0 in global memory."),
    Field("destination_lane", 344, 8, "Lane of channel 0 at the destination; 0 in global memory."),
)

#: Commands that use a descriptor.
TENSOR_OPCODES = (Opcode.LOAD, Opcode.STORE, Opcode.REDUCE, Opcode.PREFETCH)

#: The format of each operation.
FORMATS = {
    **dict.fromkeys((*TENSOR_OPCODES, Opcode.INVALIDATE), COMMAND),
    **dict.fromkeys((Opcode.COPY_BLOCK, Opcode.PREFETCH_BLOCK), BLOCK),
    **dict.fromkeys((Opcode.COMMIT, Opcode.WAIT, Opcode.WAIT_ALL, Opcode.INVALIDATE_ALL), GROUP),
    Opcode.REPLACE: REPLACE,
    Opcode.LANES: LANES,
}

#: Added to a field number in error records if the field belongs to the command and not to the descriptor.
COMMAND_FIELD = 128


class Error(IntEnum):
    """Code of an error record (docs/tmau.md, "Errors"); its lower-case name is the ``error`` of a replay result.

    If several rules are broken, the lowest code is reported, then the lowest field: a number in ``DESCRIPTOR``, or
    ``COMMAND_FIELD`` plus a number in the format of the command.
    """

    NONE = 0
    OPCODE = 1  #: the operation is unknown
    DESCRIPTOR_ALIGNMENT = 2  #: the descriptor's address is not a multiple of 64
    DESCRIPTOR_READ = 3  #: the bus answered the descriptor fetch with an error; value is the address
    VERSION = 4  #: the descriptor has another version
    RESERVED = 5  #: a reserved bit is set
    UNSUPPORTED = 6  #: the hardware was built without a feature that the field needs
    RANK = 7  #: rank is not 1 to 5, or not 3 to 5 where the mode or interleave needs it
    ELEMENT = 8  #: unknown element type
    INTERLEAVE = 9  #: unknown interleave
    FILL = 10  #: unknown fill, or NaN for an integer type
    ADDRESS = 11  #: the tensor's address is not a multiple of 16 (32 with 32-byte interleave)
    SIZE = 12  #: a size is not 1 to 2^32; it cannot be encoded, so only software reports it
    STRIDE = 13  #: a stride is not a multiple of 16 (32 with 32-byte interleave), or not below 2^40
    BOX = 14  #: a box is not 1 to 256, or the inner row is not a multiple of 16 bytes
    TRAVERSAL = 15  #: a traversal stride is not 1 to 8
    SWIZZLE = 16  #: the inner row is longer than the swizzle span, or 32-byte interleave without 32-byte swizzle
    UNUSED = 17  #: a stored size, box, stride or traversal of a dimension beyond the rank is not zero
    CORNER = 18  #: an im2col corner is out of range or leaves an empty box, or a store has lower < 0 or upper > 0
    CHANNELS = 19  #: im2col channels do not make whole 16-byte chunks, or with interleave not one slice
    PIXELS = 20  #: im2col pixels are not 1 to 1024
    COORDS = 21  #: a coordinate beyond the rank is not zero, or one of a store is negative
    START = 22  #: an im2col walk starts outside its bounding box
    SMEM_ALIGNMENT = 23  #: the address in shared memory is not a multiple of 128
    SMEM_RANGE = 24  #: the transfer would leave shared memory
    BARRIER_ALIGNMENT = 25  #: the barrier's address is not a multiple of 8
    BARRIER_RANGE = 26  #: the barrier would lie outside shared memory
    READ = 27  #: the bus answered a data read with an error; value is the address of the first failing beat
    BARRIER_OPERATION = 28  #: a barrier operation would leave the range of its counts; value is its address, tag 0
    OFFSETS = 29  #: an im2col offset has more bits than its rank allows (16, 8, 5), or an unused one is not zero
    REDUCTION = 30  #: the reduction is unknown, or does not exist for the element type
    BLOCK_ALIGNMENT = 31  #: an address or the size of a block is not a multiple of 16, or not aligned in its lanes
    BLOCK_RANGE = 32  #: a block, or a tensor in lanes, does not fit shared memory or its lane
    OVERLAP = 33  #: source and destination of a copy overlap
    LANES = 34  #: lanes, start lanes, ``eu_bytes`` or layouts that do not exist or do not fit each other
    FIELD = 35  #: there is no such field in a descriptor, or the value does not fit it
    WINDOW = 36  #: the command would leave the windows; value is the address in the command
    WRITE = 37  #: the bus answered a write with an error; value is the address of a word of the failed stretch
