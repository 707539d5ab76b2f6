"""Errors of the processing engine. Of several of one instruction the lowest code is recorded."""

from enum import IntEnum

__all__ = ["PeError"]


class PeError(IntEnum):
    """Code of an error record.

    Up to ``BARRIER`` the instruction does nothing, and the record names all threads. From ``PRODUCT`` on only the
    accesses that meet the error are left out, and the record names the first and the last thread that have one. The
    record's ``register`` is what the comment says, or 0.
    """

    NONE = 0
    OPCODE = 1  #: unknown operation, an enumeration's unknown value, a bit of no field, or a count of 0
    MERGE = 2  #: ka times kb is more than there are threads
    UNIFORM = 3  #: a uniform register that does not exist or is not set; register: its number
    SEGMENT = 4  #: it names no segment, a wrong one, or one that does not fit the instruction; register: its number
    REGISTER = 5  #: a register past the end of the file; register: the first of its group (factor, then offset)
    BARRIER = 6  #: a barrier's address that is not a multiple of 8 or not in shared memory
    PRODUCT = 7  #: columns whose accumulator is past the end of the file; register: rc
    ALIGNMENT = 8  #: an innermost offset that does not begin a whole issue, or a whole register; register: rc, rd or rs
    UNMAPPED = 9  #: a page whose entry is not valid; register: rc, rd or rs
    OFF_CHIP = 10  #: a loaded page that is not in shared memory; register: rc, rd or rs
    MEMORY = 11  #: an address past the end of shared memory; register: rc, rd or rs
