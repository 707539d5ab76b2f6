"""Registers of the second-level cache of a cluster (docs/cluster.md, "L2")."""

from ..fields import Field
from ..registers import Access, Register, counter, identification

__all__ = ["L2_REGISTERS"]

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
