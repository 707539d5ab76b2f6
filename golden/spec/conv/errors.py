"""Errors of the convolution engine (docs/conv.md, "Checks").

Of several broken rules the lowest code is recorded; ``STOPPED`` before all.
"""

from enum import IntEnum

__all__ = ["ConvError"]


class ConvError(IntEnum):
    """Code of an error record."""

    NONE = 0
    VERSION = 1  #: the job has another version
    RESERVED = 2  #: a bit of no field is set
    OPERATION = 3  #: the operation is unknown
    TYPE = 4  #: the type is unknown
    UNSUPPORTED = 5  #: elements of a type that the hardware was built without
    OUTPUT = 6  #: the output is unknown, or does not go with operation and type
    ZERO = 7  #: a zero point that is no element
    CLAMP = 8  #: a minimum above its maximum
    FACTOR = 9  #: a factor of the residual addition is infinite or NaN
    MERGE = 10  #: columns are merged whose elements do not adjoin, or in an operation that sums no channels
    GRANULARITY = 11  #: blocks longer than a row, shorter than a sixteenth of one, or shorter than an element
    CHANNELS = 12  #: an operation channel by channel with another number of output channels
    ALIGNMENT = 13  #: an address or a pitch that is not a multiple of its element
    PITCH = 14  #: results overlap
    RANGE = 15  #: something does not end in shared memory
    OVERLAP = 16  #: results overlap with what is read
    BARRIER = 17  #: the barrier refused the arrival; the results are written
    STOPPED = 18  #: the core of a cluster was stopped before the job began
