"""Registers of the TMAU (docs/integration.md, "Registers and interrupt")."""

from ..fields import Field
from ..registers import Access, Register, counter, identification, interrupts
from .features import FEATURE_FIELDS

__all__ = ["TMAU_ID_VALUE", "TMAU_REGISTERS", "WINDOW_REGISTERS"]


TMAU_REGISTERS = (
    *identification("TWRT", "TMAU"),
    Register("params0", 0x08, Access.RO, "Parameters that the hardware was built with.", (
        Field("bus_bytes", 0, 8, "Bytes of a bus word."),
        Field("addr_width", 8, 8, "Bits of a global byte address."),
        Field("queue_depth", 16, 8, "Commands that wait."),
        Field("cache_entries", 24, 8, "Descriptors kept."),
    )),
    Register("params1", 0x0C, Access.RO, "Parameters that the hardware was built with.", (
        Field("max_outstanding", 0, 16, "Read bursts in flight at most."),
        Field("commands_in_flight", 16, 16, "Commands whose data are under way at most."),
    )),
    Register("params2", 0x10, Access.RO, "Parameters that the hardware was built with.",
             (Field("smem_bytes", 0, 32, "Bytes of shared memory."),)),
    Register("features", 0x14, Access.RO, "Features that the hardware was built with.", FEATURE_FIELDS),
    Register("control", 0x20, Access.WO, "Acts once.", (
        Field("clear_counters", 0, 1, "Set all performance counters to zero."),
        Field("invalidate_descriptors", 1, 1, "Drop every descriptor from the cache."),
        Field("clear_error", 2, 1, "Forget the error record and its count."),
    )),
    Register("status", 0x24, Access.RO, "What the unit does now.", reset=1, fields=(
        Field("idle", 0, 1, "No command is under way."),
        Field("error", 1, 1, "The error record holds an error."),
        Field("queue_level", 8, 8, "Commands that wait in the queue."),
    )),
    *interrupts(
        Field("error", 0, 1, "A command ended with an error."),
        Field("done", 1, 1, "A command ended without one."),
    ),
    Register("error", 0x30, Access.RO, "Error record: the first error since clear_error.", (
        Field("code", 0, 8, "Error; 0 if there was none."),
        Field("field", 8, 8, "Number in the descriptor, or 128 plus number in the command."),
        Field("tag", 16, 16, "Tag of the command."),
    )),
    Register("error_address_lo", 0x34, Access.RO, "Error record: the address, low half.",
             (Field("address", 0, 32, "Of a bus error or a refused barrier operation; otherwise 0."),)),
    Register("error_address_hi", 0x38, Access.RO, "Error record: the address, high half.",
             (Field("address", 0, 32, "Of a bus error; otherwise 0."),)),
    Register("error_count", 0x3C, Access.RO, "Errors since clear_error.",
             (Field("count", 0, 32, "Stays at its largest value."),)),
    counter("busy_cycles", 0x40, "Cycles in which a command was under way."),
    counter("commands", 0x44, "Commands accepted."),
    counter("requests", 0x48, "Read bursts of data that the bus accepted."),
    counter("beats", 0x4C, "Bus words of data that came."),
    counter("bytes", 0x50, "Bytes landed in shared memory, fill included."),
    counter("stall_credit", 0x54, "Cycles in which a burst waited because max_outstanding were in flight."),
    counter("stall_ar", 0x58, "Cycles in which a request waited for the bus."),
    counter("stall_data", 0x5C, "Cycles in which the load path waited for a bus word."),
    counter("stall_smem", 0x60, "Cycles in which a line waited for shared memory."),
    counter("descriptor_hits", 0x64, "Loads that found their descriptor in the cache."),
    counter("descriptor_misses", 0x68, "Loads that had to read their descriptor."),
    counter("bank_conflicts", 0x6C, "Cycles that reads of the consumer took longer because of bank conflicts."),
    Register("windows", 0x70, Access.RW, "Which windows confine commands. Change windows only while idle.", (
        Field("confine_global", 0, 1, "Tensors, blocks and descriptors must lie in the global window."),
        Field("confine_shared", 1, 1, "Transfers and barriers must lie in the shared window."),
    )),
    *(
        Register(f"global_{name}_{half}", offset, Access.RW, f"Global window: {what}, {half} half.",
                 (Field("address", 0, 32, "A multiple of 4096; low bits are ignored."),))
        for name, what, first in (("base", "first byte", 0x74), ("limit", "last byte", 0x7C))
        for half, offset in (("lo", first), ("hi", first + 4))
    ),
    Register("shared_base", 0x84, Access.RW, "Shared window: first byte.",
             (Field("address", 0, 32, "A multiple of 128; low bits are ignored."),)),
    Register("shared_limit", 0x88, Access.RW, "Shared window: last byte.",
             (Field("address", 0, 32, "One less than a multiple of 128; low bits are taken as ones."),)),
    counter("write_requests", 0x90, "Write bursts that the bus accepted."),
    counter("write_beats", 0x94, "Bus words written."),
    counter("write_bytes", 0x98, "Bytes of transfers to global memory that are complete."),
)  # fmt: skip
#: What register ``id`` holds.
TMAU_ID_VALUE = TMAU_REGISTERS[0].reset

#: Those that hardware without the feature ``windows`` lacks.
WINDOW_REGISTERS = frozenset(
    register.name for register in TMAU_REGISTERS if register.name.startswith(("windows", "global_", "shared_"))
)
