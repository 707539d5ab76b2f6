"""Features and registers of the TMAU (docs/tmau.md, "Features"; docs/integration.md, "Registers and interrupt")."""

from dataclasses import replace

from .fields import Field, one_line
from .memory import BarrierOp
from .registers import (
    CLEAR_COUNTERS,
    Access,
    Register,
    address_halves,
    counter,
    identification,
    interrupts,
    parameters,
)  # fmt: skip
from .tmau import Element

__all__ = [
    "BARRIER_WINDOW_REGISTERS", "COMMAND_WINDOW_REGISTERS", "COMMAND_WINDOW_WORDS", "FEATURES", "FEATURE_FIELDS",
    "FLOAT_SUMS", "HOST_WINDOWS", "MOST_PROCESSORS", "PROCESSOR_REGISTERS", "PROCESSOR_STRIDE", "TMAU_ID_VALUE",
    "TMAU_REGISTERS", "WINDOW_REGISTERS", "features", "own_tag_bits", "processor_of", "processor_registers",
]  # fmt: skip

#: Features that hardware may be built without, in the order of their bits in register ``features``.
FEATURES = {
    "im2col": "Descriptors in im2col mode.",
    "interleave": "Descriptors with 16-byte or 32-byte interleave.",
    "unaligned": "Descriptors with the bit unaligned.",
    "gather": "In tile mode, traversals other than 1, and the bit gather0.",
    "swizzle": "Descriptors with a swizzle.",
    "stores": "Whatever writes global memory.",
    "reductions_global": "Reductions into global memory, and REPLACE, which is made of them.",
    "reductions_shared": "Reductions into shared memory.",
    "reductions_float": "Reductions of f16, bf16 and f32.",
    "lanes": "LANES.",
    "local_copies": "Copies within one memory.",
    "windows": "The windows that confine commands.",
    "tf32": "Descriptors with elements of tf32, which loads round.",
}

#: Windows of a processor, which no command needs, and their bits in the same register: the highest ones.
HOST_WINDOWS = {"command_window": 30, "barrier_window": 31}

#: Bits of register ``features``.
FEATURE_FIELDS = (
    *(Field(name, bit, 1, doc) for bit, (name, doc) in enumerate(FEATURES.items())),
    Field("command_window", HOST_WINDOWS["command_window"], 1, "Commands are written in the region ``commands``."),
    Field("barrier_window", HOST_WINDOWS["barrier_window"], 1, "Barriers are operated on in the region ``barriers``."),
)

#: Elements whose reductions are floating-point.
FLOAT_SUMS = (Element.F16, Element.BF16, Element.F32)

#: Features that need at least one of some others.
_NEEDS = {
    "reductions_global": ("stores",),
    "reductions_float": ("reductions_global", "reductions_shared"),
    "local_copies": ("stores",),
}


def features(names):
    """A list of features as a tuple in their order; TypeError or ValueError if there is no such hardware."""
    if not isinstance(names, list | tuple):
        raise TypeError(f"features must be a list or tuple, not {one_line(names)}")
    for name in names:
        if not isinstance(name, str) or name not in FEATURES:
            raise ValueError(f"features must be of {', '.join(FEATURES)}, not {one_line(name)}")
    for name, needed in _NEEDS.items():
        if name in names and not set(needed) & set(names):
            raise ValueError(f"feature {name} needs {' or '.join(needed)}")
    return tuple(name for name in FEATURES if name in names)


TMAU_REGISTERS = (
    *identification("TWRT", "TMAU"),
    parameters(0,
        Field("bus_bytes", 0, 8, "Bytes of a bus word."),
        Field("addr_width", 8, 8, "Bits of a global byte address."),
        Field("queue_depth", 16, 8, "Commands that wait."),
        Field("cache_entries", 24, 8, "Descriptors kept."),
    ),
    parameters(1,
        Field("max_outstanding", 0, 16, "Read bursts in flight at most."),
        Field("commands_in_flight", 16, 16, "Commands whose data are under way at most."),
    ),
    parameters(2, Field("smem_bytes", 0, 32, "Bytes of shared memory.")),
    Register("features", 0x14, Access.RO, "Features that the hardware was built with.", FEATURE_FIELDS),
    Register("control", 0x20, Access.WO, "Acts once.", (
        CLEAR_COUNTERS,
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
    *address_halves("global_base", 0x74, "Global window: first byte", "A multiple of 4096; low bits are ignored."),
    *address_halves("global_limit", 0x7C, "Global window: last byte", "A multiple of 4096; low bits are ignored."),
    Register("shared_base", 0x84, Access.RW, "Shared window: first byte.",
             (Field("address", 0, 32, "A multiple of 128; low bits are ignored."),)),
    Register("shared_limit", 0x88, Access.RW, "Shared window: last byte.",
             (Field("address", 0, 32, "One less than a multiple of 128; low bits are taken as ones."),)),
    counter("write_requests", 0x90, "Write bursts that the bus accepted."),
    counter("write_beats", 0x94, "Bus words written."),
    counter("write_bytes", 0x98, "Bytes of transfers to global memory that are complete."),
)  # fmt: skip
#: Constant in register ``id``.
TMAU_ID_VALUE = TMAU_REGISTERS[0].reset

#: Registers that hardware without the feature ``windows`` lacks.
WINDOW_REGISTERS = frozenset(
    register.name for register in TMAU_REGISTERS if register.name.startswith(("windows", "global_", "shared_"))
)

# Several processors that share a unit (docs/cluster.md, "Several processors"), and how each of them commands it
# (docs/from_a_processor.md).

MOST_PROCESSORS = 16
PROCESSOR_STRIDE = 0x20

#: Windows of processor 0, from offset 0x200; each next processor's lie ``PROCESSOR_STRIDE`` bytes further.
PROCESSOR_REGISTERS = tuple(
    replace(register, offset=0x200 - 0x70 + register.offset)
    for register in TMAU_REGISTERS
    if register.name in WINDOW_REGISTERS
)
_COUNT = Register("processors", 0x1C, Access.RO, "Its reset value is in the hardware.", (
    Field("count", 0, 8, "Processors that share the unit."),
))  # fmt: skip

#: 32-bit words of a command.
COMMAND_WINDOW_WORDS = 16

#: The region ``commands`` (docs/from_a_processor.md, "The command window").
COMMAND_WINDOW_REGISTERS = (
    *(
        Register(f"word{number}", 4 * number, Access.WRITE, f"Bits {32 * number} to {32 * number + 31} of the command.",
                 (Field("word", 0, 32, "Kept for the next command." if number < COMMAND_WINDOW_WORDS - 1
                        else "Kept for the next command; writing it sends the command."),))
        for number in range(COMMAND_WINDOW_WORDS)
    ),
    Register("ended", 0x40, Access.RO, "Which command ended last.", (
        Field("tag", 0, 16, "Its tag."),
        Field("error", 16, 8, "Its error code; 0 if it did what it was to do."),
        Field("count", 24, 8, "Commands that have ended since the reset, modulo 256."),
    )),
)  # fmt: skip

#: The region ``barriers`` (docs/from_a_processor.md, "The barrier window").
BARRIER_WINDOW_REGISTERS = (
    Register("address", 0x00, Access.WRITE, "Which barrier the next operations are of.",
             (Field("address", 0, 32, "Byte address in shared memory, a multiple of 8; bits beyond it are ignored."),)),
    Register("operation", 0x04, Access.WRITE, "Writing it carries out an operation; answered when that is done.", (
        Field("op", 0, 3, "Which one.", enum=BarrierOp),
        Field("value", 8, 21, "Arrivals, bytes or parity, as the operation says."),
    )),
    Register("result", 0x08, Access.RO, "Answer to the last operation.", (
        Field("done", 0, 1, "Of TRY_WAIT: the phase of that parity is complete; of others: it completed now."),
        Field("error", 1, 1, "Refused: the barrier is unchanged, and BARRIER_OPERATION is reported."),
    )),
)  # fmt: skip


def processor_registers(count, windows=True):
    """Registers that a unit has in addition if ``count`` processors share it; window names end with the processor."""
    if count == 1:
        return ()
    return (_COUNT,) + tuple(
        replace(register, name=f"{register.name}_{number}", offset=register.offset + PROCESSOR_STRIDE * number)
        for number in range(count if windows else 0)
        for register in PROCESSOR_REGISTERS
    )


def own_tag_bits(count):
    """Bits of a tag that each of ``count`` processors may choose; the bits above are the number of the processor."""
    return 16 - (count - 1).bit_length()


def processor_of(tag, count):
    """Number of the processor whose command has the tag; ValueError if there are fewer processors."""
    number = tag >> own_tag_bits(count)
    if number >= count:
        raise ValueError(f"a tag must have the number of one of {count} processors in its upper bits, not {tag:#06x}")
    return number
