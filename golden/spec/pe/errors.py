"""Errors of the processing engine. Of several of one instruction the lowest is recorded; ``STOPPED`` before all."""

from enum import IntEnum

__all__ = ["PeError"]


class PeError(IntEnum):
    """Code of an error record.

    Up to ``BARRIER``, and with ``STOPPED``, the instruction does nothing, and the record names all threads. From
    ``PRODUCT`` to ``MEMORY`` only the accesses that meet the error are left out, and the record names the first and the
    last thread that have one. The record's ``register`` is what the comment says, or 0.
    """

    NONE = 0
    OPCODE = 1  #: unknown operation, an enumeration's unknown value, a bit of no field, or a count of 0
    UNSUPPORTED = 2  #: elements of a type that the hardware was built without; register: number of the type
    MERGE = 3  #: ka times kb is more than there are threads
    UNIFORM = 4  #: a uniform register that does not exist or is not set; register: its number
    SEGMENT = 5  #: it names no segment, a wrong one, or one that does not fit the instruction; register: its number
    REGISTER = 6  #: a register past the end of the file; register: the first of its group (factor, then offset)
    BARRIER = 7  #: a barrier's address that is not a multiple of 8 or not in shared memory
    PRODUCT = 8  #: columns whose accumulator is past the end of the file; register: rc
    ALIGNMENT = 9  #: an innermost offset that does not begin a whole issue, or a whole register; register: rc, rd or rs
    UNMAPPED = 10  #: a page whose entry is not valid; register: rc, rd or rs
    OFF_CHIP = 11  #: a loaded page that is not in shared memory; register: rc, rd or rs
    MEMORY = 12  #: an address past the end of shared memory; register: rc, rd or rs
    STOPPED = 13  #: the core of a cluster was stopped before the instruction began, or while it waited for a barrier
