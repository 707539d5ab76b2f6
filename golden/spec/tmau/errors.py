"""Error codes (docs/tmau.md, "Errors"). Of several broken rules the lowest code is reported, then the lowest field.

The field of an error record is a number in ``DESCRIPTOR``, or ``COMMAND_FIELD`` plus a number in the format of the
command."""

from enum import IntEnum

__all__ = ["COMMAND_FIELD", "Error"]

#: Added to a field number in error records when the field is one of the command and not of the descriptor.
COMMAND_FIELD = 128


class Error(IntEnum):
    """Code of an error record; its lower-case name is the ``error`` of a replay result."""

    NONE = 0
    OPCODE = 1  #: the operation is unknown
    DESCRIPTOR_ALIGNMENT = 2  #: the descriptor's address is not a multiple of 64
    DESCRIPTOR_READ = 3  #: the bus answered the descriptor fetch with an error; value is the address
    VERSION = 4  #: the descriptor has another version
    RESERVED = 5  #: a bit that belongs to no field is set
    UNSUPPORTED = 6  #: the hardware was built without the feature that the field asks for
    RANK = 7  #: rank is not 1 to 5, or not 3 to 5 where the mode or interleave asks for it
    ELEMENT = 8  #: unknown element type
    INTERLEAVE = 9  #: unknown interleave
    FILL = 10  #: unknown fill, or NaN for an integer type
    ADDRESS = 11  #: the tensor's address is not a multiple of 16 (32 with 32-byte interleave)
    SIZE = 12  #: a size is not 1 to 2^32; cannot be encoded, so only software meets it
    STRIDE = 13  #: a stride is not a multiple of 16 (32 with 32-byte interleave), or not below 2^40
    BOX = 14  #: a box is not 1 to 256, or the inner row is not a multiple of 16 bytes
    TRAVERSAL = 15  #: a traversal stride is not 1 to 8
    SWIZZLE = 16  #: the inner row is longer than the swizzle span, or 32-byte interleave without 32-byte swizzle
    UNUSED = 17  #: a size, box, stride or traversal of a dimension that the rank does not reach is not zero as stored
    CORNER = 18  #: an im2col corner is out of range or leaves an empty box, or a store has lower < 0 or upper > 0
    CHANNELS = 19  #: im2col channels do not make whole 16-byte chunks, or with interleave not one slice
    PIXELS = 20  #: im2col pixels are not 1 to 1024
    COORDS = 21  #: a coordinate is not zero where the rank does not reach, or negative in a store
    START = 22  #: an im2col walk starts outside its bounding box
    SMEM_ALIGNMENT = 23  #: the address in shared memory is not a multiple of 128
    SMEM_RANGE = 24  #: the transfer would leave shared memory
    BARRIER_ALIGNMENT = 25  #: the barrier's address is not a multiple of 8
    BARRIER_RANGE = 26  #: the barrier would lie outside shared memory
    READ = 27  #: the bus answered a data read with an error; value is the address of the first failing beat
    BARRIER_OPERATION = 28  #: a barrier operation would leave the range of its counts; value is its address, tag 0
    OFFSETS = 29  #: an im2col offset has more bits than its rank allows (16, 8, 5), or is not zero where none belongs
    REDUCTION = 30  #: the reduction is unknown, or does not exist for the element type
    BLOCK_ALIGNMENT = 31  #: an address or the size of a block is not a multiple of 16, or not aligned in its lanes
    BLOCK_RANGE = 32  #: a block, or a tensor in lanes, does not fit shared memory or its lane
    OVERLAP = 33  #: source and destination of a copy overlap
    LANES = 34  #: lanes, start lanes, ``eu_bytes`` or layouts that do not exist or go together
    FIELD = 35  #: a field that no descriptor has, or a value that does not fit it
    WINDOW = 36  #: the command would leave the windows; value is the address that was given
    WRITE = 37  #: the bus answered a write with an error; value is the address of a word of the stretch that failed
