"""What a cluster adds to its cores: fields of commands, errors, registers, and its cache (docs/cluster.md)."""

from enum import IntEnum

from .fields import Field, Format
from .registers import Access, Register, address_halves, counter, identification, parameters

__all__ = ["CLUSTER_REGISTERS", "DELIVERY", "L2_REGISTERS", "MOST_CORES", "ClusterError"]

MOST_CORES = 16
_ALL = (1 << MOST_CORES) - 1


class ClusterError(IntEnum):
    """Code of an error record that only a cluster has; continues the codes of the TMAU (docs/cluster.md, "Errors")."""

    CORES = 38  #: the mask names no core, or a core that does not exist or may not be named
    REMOTE = 39  #: cores that the command named refused it; value is their mask
    STOPPED = 40  #: the core was stopped before the command began


#: Bits of a command that a core without a cluster ignores (docs/cluster.md, "Fields of a command").
DELIVERY = Format(
    "delivery",
    512,
    "Fields that LOAD and COPY_BLOCK have in a cluster in addition to their own.",
    (
        Field("multicast", 400, 1, "1: data for shared memory go to the cores of ``cores``; 0: to the issuer."),
        Field("remote_source", 401, 1, "COPY_BLOCK from shared memory: 1: of ``source_core``; 0: of the issuer."),
        Field("cores", 416, MOST_CORES, "Mask of the receivers: bit i is core i."),
        Field("source_core", 432, 4, "Number of the core that is read."),
    ),
)

#: Registers that a TMAU has in a cluster in addition to its own (docs/cluster.md, "Registers").
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

#: Registers of the second-level cache (docs/cluster.md, "L2").
L2_REGISTERS = (
    *identification("TWL2", "second-level cache"),
    parameters(0, Field("bytes", 0, 32, "Data it holds.")),
    parameters(1,
        Field("ways", 0, 8, "Lines in a set."),
        Field("misses", 8, 8, "Lines that memory may have been asked for at once."),
    ),
    Register("control", 0x20, Access.WO, "Acts once.", (
        Field("clear_counters", 0, 1, "Set all counters to zero."),
        Field("flush", 1, 1, "Write back what was written, and drop every line."),
        Field("invalidate", 2, 1, "Drop every line; what was written is lost."),
        Field("range", 3, 1, "With one of these: only lines with a byte of the range."),
    )),
    Register("status", 0x24, Access.RO, "What the cache does now.",
             (Field("busy", 0, 1, "It flushes or invalidates, as after a reset, or is about to."),), reset=1),
    *address_halves("range_first", 0x30, "Range of addresses: first byte", "Low bits are ignored. Change it only while "
                    "not busy."),
    *address_halves("range_last", 0x38, "Range of addresses: last byte", "Low bits are ignored. Change it only while "
                    "not busy."),
    counter("hits", 0x40, "Lines, of a burst each, that were here or on their way."),
    counter("misses", 0x44, "Lines, of a burst each, that were not."),
    counter("evictions", 0x48, "Lines written back, for another one or by a flush."),
    counter("prefetches", 0x4C, "Lines that a prefetch asked memory for."),
    counter("write_errors", 0x50, "Lines written back that memory answered with an error: what they held is lost."),
)  # fmt: skip
