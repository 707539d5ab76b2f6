"""Errors that only a cluster has; codes continue those of the TMAU (docs/cluster.md, "Errors")."""

from enum import IntEnum

from .fields import Field, Format
from .registers import Access, Register, counter, identification

__all__ = ["CLUSTER_REGISTERS", "DELIVERY", "L2_REGISTERS", "MOST_CORES", "ClusterError"]


class ClusterError(IntEnum):
    """Code of an error record; its lower-case name is the ``error`` of a replay result."""

    CORES = 38  #: the mask names no core, or a core that does not exist or may not be named
    REMOTE = 39  #: cores that the command named refused it; value is their mask
    STOPPED = 40  #: the core was stopped before the command began


MOST_CORES = 16

#: Bits of a command that belong to no field of a core alone, which ignores them.
DELIVERY = Format(
    "delivery",
    512,
    "What LOAD and COPY_BLOCK have in a cluster beside their own fields.",
    (
        Field("multicast", 400, 1, "1: what lands in shared memory goes to the cores of ``cores``; 0: to the issuer."),
        Field("remote_source", 401, 1, "COPY_BLOCK from shared memory: 1: that of ``source_core``; 0: the issuer's."),
        Field("cores", 416, MOST_CORES, "Mask of the receivers: bit i is core i."),
        Field("source_core", 432, 4, "Number of the core that is read."),
    ),
)


_ALL = (1 << MOST_CORES) - 1

CLUSTER_REGISTERS = (
    Register("core", 0x18, Access.RO, "Where the unit is. Its reset value is in the hardware.", (
        Field("number", 0, 8, "Number of this core."),
        Field("cores", 8, 8, "Cores of the cluster."),
    )),
    Register("isolation", 0x8C, Access.RW, "Masks of cores. Change them only while the cluster is idle.", (
        Field("reach", 0, MOST_CORES, "Cores that commands of this one may name."),
        Field("accepts", MOST_CORES, MOST_CORES, "Cores whose commands may write here."),
    ), reset=_ALL << MOST_CORES | _ALL),
    Register("stop", 0xA0, Access.RW, "Whether the core is stopped. It is when it is idle too.", (
        Field("stop", 0, 1, "Take no command, instruction or job at ports; refuse those that have not begun."),
    )),
    counter("bytes_received", 0x9C, "Bytes of transfers that have landed here, whichever core issued them."),
)  # fmt: skip


L2_REGISTERS = (
    *identification("TWL2", "second-level cache"),
    Register("params0", 0x08, Access.RO, "Parameters that the hardware was built with.",
             (Field("bytes", 0, 32, "Data it holds."),)),
    Register("params1", 0x0C, Access.RO, "Parameters that the hardware was built with.", (
        Field("ways", 0, 8, "Lines in a set."),
        Field("misses", 8, 8, "Lines that memory may have been asked for at once."),
    )),
    Register("control", 0x20, Access.WO, "Acts once.", (
        Field("clear_counters", 0, 1, "Set all counters to zero."),
        Field("flush", 1, 1, "Write back what was written, and drop every line."),
        Field("invalidate", 2, 1, "Drop every line; what was written is lost."),
        Field("range", 3, 1, "With one of these: only lines with a byte of the range."),
    )),
    Register("status", 0x24, Access.RO, "What the cache does now.",
             (Field("busy", 0, 1, "It flushes or invalidates, as after a reset, or is about to."),), reset=1),
    *(
        Register(f"range_{name}_{half}", offset, Access.RW, f"Range of addresses: {name} byte, {half} half.",
                 (Field("address", 0, 32, "Low bits are ignored. Change it only while not busy."),))
        for name, at in (("first", 0x30), ("last", 0x38)) for half, offset in (("lo", at), ("hi", at + 4))
    ),
    counter("hits", 0x40, "Lines, of a burst each, that were here or on their way."),
    counter("misses", 0x44, "Lines, of a burst each, that were not."),
    counter("evictions", 0x48, "Lines written back, for another one or by a flush."),
    counter("prefetches", 0x4C, "Lines that a prefetch asked memory for."),
    counter("write_errors", 0x50, "Lines written back that memory answered with an error: what they held is lost."),
)  # fmt: skip
