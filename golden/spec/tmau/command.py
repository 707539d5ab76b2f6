"""The commands: what a processor hands to the TMAU (docs/tmau.md, "Groups and waits" to "Descriptor maintenance").

A command is a word of 512 bits. Its opcode tells which of the formats below it has; :data:`FORMATS` says so.
"""

from enum import IntEnum

from ..fields import Field, Format, names
from .descriptor import Element

__all__ = [
    "BLOCK",
    "COMMAND",
    "FORMATS",
    "GROUP",
    "LANES",
    "REDUCTIONS",
    "REPLACE",
    "TENSOR_OPCODES",
    "LaneLayout",
    "Opcode",
    "Reduction",
    "Space",
]


class Opcode(IntEnum):
    """Operation of a command. Zero is no operation, so that an empty word is refused."""

    LOAD = 1  #: global to shared memory, as the descriptor says
    INVALIDATE = 2  #: drop the descriptor at ``descriptor`` from the cache
    INVALIDATE_ALL = 3  #: drop every cached descriptor
    STORE = 4  #: shared to global memory, as the descriptor says
    REDUCE = 5  #: the same, but global memory becomes ``reduction`` of itself and what comes
    PREFETCH = 6  #: check a load and drop it; there is no cache that it could fill
    COPY_BLOCK = 7  #: a block of bytes from anywhere to anywhere, without a descriptor
    PREFETCH_BLOCK = 8  #: check a block in global memory and drop it
    COMMIT = 9  #: everything since the last COMMIT that writes global memory is a group
    WAIT = 10  #: wait until at most ``count`` groups are unfinished
    WAIT_ALL = 11  #: wait until every command before is complete
    REPLACE = 12  #: change one field of a descriptor in global memory
    LANES = 13  #: copy a tensor between global memory and lanes, or between two lane layouts


class Reduction(IntEnum):
    """What becomes of a destination.

    Specification: docs/tmau.md, "Stores and reductions", which also gives the element types of each.
    """

    NONE = 0  #: the source
    ADD = 1  #: the sum
    MIN = 2  #: the smaller one
    MAX = 3  #: the larger one
    INC = 4  #: 0 if the old value is at least the source, and otherwise the old value plus 1
    DEC = 5  #: the source if the old value is 0 or more than the source, and otherwise the old value minus 1
    AND = 6  #: the bits that are set in both
    OR = 7  #: the bits that are set in one or both
    XOR = 8  #: the bits that are set in just one


#: Operations of a reduction, by the names that users write.
REDUCTIONS = {name: op for name, op in names(Reduction).items() if op}


class Space(IntEnum):
    """Which memory a block lies in."""

    GLOBAL = 0
    SHARED = 1


class LaneLayout(IntEnum):
    """How the tensor of a LANES command lies in memory (docs/layouts.md, "Lane-local memory")."""

    GLOBAL = 0  #: contiguous in global memory
    ALIGNED = 1  #: in the lanes, each channel padded to ``eu_bytes``
    COMPACT = 2  #: in the lanes, channels without padding
    ROW_ALIGNED = 3  #: in the lanes, each row padded to ``eu_bytes``


_OPCODE = Field("opcode", 0, 4, "Operation.", enum=Opcode)
_SIGNAL = Field("signal", 4, 1, "1: the bytes that land in shared memory complete the transaction count of "
                "``barrier``.")  # fmt: skip
_REDUCTION = Field("reduction", 8, 4, "What becomes of the destination.", enum=Reduction)
_ELEMENT = Field("element", 12, 4, "Element type.", enum=Element)
_TAG = Field("tag", 16, 16, "Chosen by the issuer; returned with the completion and in error records.")
_BARRIER = Field("barrier", 64, 32, "Byte address of the barrier in shared memory: a multiple of 8.")
_DESCRIPTOR = Field("descriptor", 128, 64, "Global byte address of the descriptor: a multiple of 64.")
_SOURCE = Field("source", 128, 64, "Byte address to copy from: in global or shared memory, or in every lane.")
_DESTINATION = Field("destination", 192, 64, "Byte address to copy to: in global or shared memory, or in every lane.")

COMMAND = Format(
    "command",
    512,
    "A command on a tensor: LOAD, STORE, REDUCE, PREFETCH, and INVALIDATE. Fields that an operation does not use are "
    "ignored.",
    (
        _OPCODE,
        _SIGNAL,
        Field("fill", 5, 1, "STORE and REDUCE: 1: the source is the descriptor's fill, not shared memory."),
        _REDUCTION,
        _TAG,
        Field("smem", 32, 32, "Byte address in shared memory: a multiple of 128."),
        _BARRIER,
        _DESCRIPTOR,
        Field("coords", 192, 32, "Tensor coordinates of the start, innermost first; zero where the rank does not "
              "reach.", count=5, pitch=32, signed=True),
        Field("offsets", 352, 16, "im2col loads: offset of the filter tap, W H D; zero otherwise.", count=3, pitch=16),
    ),
)  # fmt: skip

BLOCK = Format(
    "block",
    512,
    "A command on a block of bytes: COPY_BLOCK, and PREFETCH_BLOCK, which uses source and size only.",
    (
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
    ),
)

GROUP = Format(
    "group",
    512,
    "A command on groups: COMMIT, WAIT and WAIT_ALL, and INVALIDATE_ALL.",
    (
        _OPCODE,
        _TAG,
        Field("count", 32, 8, "WAIT: groups that may be unfinished."),
        Field("read", 40, 1, "WAIT: 1: a group is finished when its source has been read."),
    ),
)

REPLACE = Format(
    "replace",
    512,
    "Change of one field of a descriptor in global memory: REPLACE. The cached descriptor is dropped, and commands "
    "behind it wait until the change is in memory.",
    (
        _OPCODE,
        _TAG,
        Field("field", 32, 8, "Number of the field in ``descriptor``."),
        Field("index", 40, 3, "Element of an array field, and 0 for others."),
        _DESCRIPTOR,
        Field("value", 192, 64, "The new number, as stored; it must fit the field."),
    ),
)

LANES = Format(
    "lanes",
    512,
    "Copy of a tensor between global memory and lanes, or from lanes to lanes: LANES. Lane i is the i-th equal part "
    "of shared memory.",
    (
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
        Field("source_layout", 328, 2, "How the tensor lies at the source.", enum=LaneLayout),
        Field("destination_layout", 330, 2, "How it is to lie at the destination.", enum=LaneLayout),
        Field("source_lane", 336, 8, "Lane of channel 0 at the source; 0 in global memory."),
        Field("destination_lane", 344, 8, "Lane of channel 0 at the destination; 0 in global memory."),
    ),
)

#: Commands that a descriptor belongs to.
TENSOR_OPCODES = (Opcode.LOAD, Opcode.STORE, Opcode.REDUCE, Opcode.PREFETCH)

#: The format of each operation.
FORMATS = {
    **dict.fromkeys((*TENSOR_OPCODES, Opcode.INVALIDATE), COMMAND),
    **dict.fromkeys((Opcode.COPY_BLOCK, Opcode.PREFETCH_BLOCK), BLOCK),
    **dict.fromkeys((Opcode.COMMIT, Opcode.WAIT, Opcode.WAIT_ALL, Opcode.INVALIDATE_ALL), GROUP),
    Opcode.REPLACE: REPLACE,
    Opcode.LANES: LANES,
}
