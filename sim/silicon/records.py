"""What goes in and out of the replay program: the records of ``job.h`` as numpy has them, and their numbers."""

from enum import IntEnum

import numpy as np

__all__ = ["GRANULE", "MAGIC", "MOST_CORES", "MOST_EXPECTED", "RECORDS", "SHARED_BYTES", "Ending", "Op", "Status"]

#: Largest shared memory of a job: that of a block on a GPU of compute capability 9.0, without room for a barrier.
SHARED_BYTES = 232448 - 16

#: Shared memory of a job is a multiple of it.
GRANULE = 16

#: Blocks of threads that every such GPU takes in a cluster: cores of a job.
MOST_CORES = 8

#: A barrier counts no further.
MOST_EXPECTED = (1 << 20) - 1

#: What begins a hello, a job and a reply.
MAGIC = {"Hello": 0x32475754, "JobHeader": 0x4A475754, "ReplyHeader": 0x52475754}

#: Names of the structures in ``job.h``, and their types.
RECORDS = {
    "Hello": np.dtype([
        ("magic", "<u4"), ("status", "<u4"), ("major", "<i4"), ("minor", "<i4"), ("driver", "<i4"), ("runtime", "<i4"),
        ("shared_bytes", "<u4"), ("reserved", "<u4"), ("gpu", "S96"), ("message", "S160"),
    ]),
    "JobHeader": np.dtype([
        ("magic", "<u4"), ("maps", "<u2"), ("more_cores", "<u2"), ("commands", "<u4"), ("shared_bytes", "<u4"),
        ("global_bytes", "<u8"),
    ]),
    "MapRecord": np.dtype([
        ("address", "<u8"), ("size", "<u8", 5), ("stride", "<u8", 4), ("box", "<u4", 5), ("step", "<u4", 5),
        ("lower", "<i4", 3), ("upper", "<i4", 3), ("channels", "<u4"), ("pixels", "<u4"), ("im2col", "<u4"),
        ("type", "<u4"), ("rank", "<u4"), ("interleave", "<u4"), ("swizzle", "<u4"), ("promotion", "<u4"),
        ("fill", "<u4"), ("reserved", "<u4"),
    ]),
    "CommandRecord": np.dtype([
        ("source", "<u8"), ("destination", "<u8"), ("size", "<u4"), ("op", "<u2"), ("core", "u1"), ("receiver", "u1"),
        ("map", "<u4"), ("coords", "<i4", 5), ("offsets", "<u2", 3), ("multicast", "<u2"), ("shared", "<u4"),
        ("reduction", "<u4"), ("type", "<u4"), ("expected", "<u4"),
    ]),
    "ReplyHeader": np.dtype([
        ("magic", "<u4"), ("status", "<u4"), ("command", "<u4"), ("reserved", "<u4"), ("message", "S160"),
    ]),
    "MapReply": np.dtype([("result", "<i4")]),
    "CommandReply": np.dtype([("outcome", "<u4"), ("counted", "<u4"), ("bytes", "<i8")]),
}  # fmt: skip


class Status(IntEnum):
    """Whether there is a GPU, or a job was carried out."""

    OK = 0
    FAILED = 1


class Op(IntEnum):
    """What a command of a job does."""

    NOTHING = 0
    LOAD = 1
    STORE = 2
    REDUCE = 3
    PREFETCH = 4
    GLOBAL_TO_SHARED = 5
    SHARED_TO_GLOBAL = 6
    SHARED_TO_SHARED = 7
    REDUCE_TO_GLOBAL = 8
    REDUCE_TO_SHARED = 9
    PREFETCH_BLOCK = 10


class Ending(IntEnum):
    """How a command of a job ended: ``Outcome`` in ``job.h``."""

    DONE = 0
    REFUSED = 1  #: the driver had refused its map
    NO_SUCH = 2  #: there is no such instruction
    UNFINISHED = 3  #: no number of bytes let its barrier end its phase
