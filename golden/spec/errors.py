"""Error codes (tmau.md section 9). Of several broken rules the lowest code is reported, then the lowest field."""

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
    RANK = 6  #: rank is not 1 to 5, or not 3 to 5 where the mode or interleave asks for it
    ELEMENT = 7  #: unknown element type
    INTERLEAVE = 8  #: unknown interleave
    FILL = 9  #: unknown fill, or NaN for an integer type
    ADDRESS = 10  #: the tensor's address is not a multiple of 16 (32 with 32-byte interleave)
    SIZE = 11  #: a size is not 1 to 2^32; cannot be encoded, so only software meets it
    STRIDE = 12  #: a stride is not a multiple of 16 (32 with 32-byte interleave), or not below 2^40
    BOX = 13  #: a box is not 1 to 256, or the inner row is not a multiple of 16 bytes
    TRAVERSAL = 14  #: a traversal stride is not 1 to 8
    SWIZZLE = 15  #: the inner row is longer than the swizzle span, or 32-byte interleave without 32-byte swizzle
    UNUSED = 16  #: a size, box, stride or traversal of a dimension that the rank does not reach is not zero as stored
    CORNER = 17  #: a corner of the im2col bounding box is out of range, or the box is empty
    CHANNELS = 18  #: im2col channels are not 1 to 256, or do not make whole 16-byte chunks
    PIXELS = 19  #: im2col pixels are not 1 to 1024
    UNSUPPORTED = 20  #: legal by the specification, but this version of the hardware cannot do it
    COORDS = 21  #: a coordinate of a dimension that the rank does not reach is not zero
    SMEM_ALIGNMENT = 22  #: the destination is not a multiple of 128
    SMEM_RANGE = 23  #: the transfer would leave shared memory
    BARRIER_ALIGNMENT = 24  #: the barrier's address is not a multiple of 8
    BARRIER_RANGE = 25  #: the barrier would lie outside shared memory
    READ = 26  #: the bus answered a data read with an error; value is the address of the first failing beat
    BARRIER_OPERATION = 27  #: a barrier operation would leave the range of its counts; value is its address, tag 0
