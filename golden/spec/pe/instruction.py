"""Instructions of the processing engine: words of 128 bits (docs/pe.md, "Instructions")."""

from enum import IntEnum

from ..fields import Field, Format, one_line

__all__ = [
    "GUARDED",
    "INSTRUCTIONS",
    "MEMORY_OPERATIONS",
    "MM_FAMILIES",
    "Compare",
    "MmType",
    "Operation",
    "Source",
    "families",
]


class Operation(IntEnum):
    """What an instruction does; its format is ``INSTRUCTIONS[operation]``."""

    MM = 1  #: multiply rows of A with columns of B and accumulate
    LD = 2  #: registers from memory
    ST = 3  #: registers to memory
    MOV = 4  #: an immediate, or the index of the thread or of the core, to a register
    MOVU = 5  #: an immediate to a uniform register
    SETP = 6  #: a comparison to a predicate
    BAR_WAIT = 7  #: wait until a phase of a barrier is complete
    FENCE = 8  #: wait until all before is performed
    HALT = 9  #: a fence that tells the processor


class MmType(IntEnum):
    """Elements of A and of B.

    Below ``F16`` bit 0 says that B is unsigned, bit 1 that A is, and bit 2 that both have 16 bits.
    """

    S8S8 = 0
    S8U8 = 1
    U8S8 = 2
    U8U8 = 3
    S16S16 = 4
    S16U16 = 5
    U16S16 = 6
    U16U16 = 7
    F16 = 8
    BF16 = 9

    @property
    def bytes(self):
        """Bytes of an element."""
        return 1 if self < MmType.S16S16 else 2

    @property
    def is_float(self):
        """Products and sums are floating-point numbers."""
        return self >= MmType.F16

    @property
    def family(self):
        """The one of ``MM_FAMILIES`` that it belongs to: a machine takes all types of a family, or none."""
        return self.name.lower() if self.is_float else f"i{8 * self.bytes}"


#: Families of types, in the order of their bits in register ``params1``.
MM_FAMILIES = ("i8", "i16", "f16", "bf16")


def families(types):
    """``types``, a list of ``MM_FAMILIES``, as a tuple in their order; TypeError or ValueError if it is none."""
    if not isinstance(types, list | tuple):
        raise TypeError(f"types must be a list or tuple, not {one_line(types)}")
    if not types or any(family not in MM_FAMILIES for family in types):
        raise ValueError(f"types must be one or more of {', '.join(MM_FAMILIES)}, not {one_line(types)}")
    return tuple(family for family in MM_FAMILIES if family in types)


class Compare(IntEnum):
    """How SETP compares its source with the immediate: two's complement, or unsigned where the name ends in U."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    LTU = 6
    LEU = 7
    GTU = 8
    GEU = 9


class Source(IntEnum):
    """Where MOV and SETP take their first operand from."""

    GIVEN = 0  #: the immediate of MOV, the register of SETP
    THREAD = 1  #: the index of the thread


_OPCODE = Field("opcode", 0, 8, "What to do.", enum=Operation)
_GUARD = Field("guard", 8, 1, "1: only threads whose predicate is true take part.")
_PREDICATE = Field("predicate", 9, 3, "The guarding predicate; 0 without guard.")
_SEGMENT = Field("ur", 80, 8, "Uniform register that names the segment.")
_OFFSETS = Field("rf", 64, 16, "First offset register: one for each dimension of the segment, innermost first.")
_IMMEDIATE = Field("imm", 96, 32, "Added to the innermost offset, modulo 2^32.")
_COUNT = Field("n", 48, 16, "Registers a thread moves, 1 or more.")
_REGISTER = "register of every thread that takes part."


def _format(operation, doc, *fields):
    return Format(operation.name.lower(), 128, doc, (_OPCODE, *fields))


#: Format of every operation. Bits in no field must be zero.
INSTRUCTIONS = {
    Operation.MM: _format(
        Operation.MM, "Multiplies and accumulates.", _GUARD, _PREDICATE,
        Field("ka", 16, 2, "Threads that share a row of C, each with columns of its own.", bias=1),
        Field("kb", 18, 2, "Threads that share a product, each with a part of K.", bias=1),
        Field("transpose", 20, 1, "0: K is dimension 0 of B. 1: N is dimension 0 and K is dimension 1."),
        Field("type", 24, 4, "Elements of A and B.", enum=MmType),
        Field("rc", 32, 16, "Accumulator of column 0."),
        Field("ra", 48, 16, "First factor register."),
        _OFFSETS, _SEGMENT, _IMMEDIATE),
    Operation.LD: _format(
        Operation.LD, "Loads registers.", _GUARD, _PREDICATE, Field("rd", 32, 16, "First " + _REGISTER), _COUNT,
        _OFFSETS, _SEGMENT, _IMMEDIATE),
    Operation.ST: _format(
        Operation.ST, "Stores registers.", _GUARD, _PREDICATE, Field("rs", 32, 16, "First " + _REGISTER), _COUNT,
        _OFFSETS, _SEGMENT, _IMMEDIATE),
    Operation.MOV: _format(
        Operation.MOV, "Sets a register.", _GUARD, _PREDICATE,
        Field("source", 16, 1, "What it is set to.", enum=Source),
        Field("core", 17, 1, "1: `imm` is ORed with the number of the core; 0 if it is the thread's index."),
        Field("rd", 32, 16, "The " + _REGISTER),
        Field("imm", 96, 32, "Its new value; 0 if that is the thread's index.")),
    Operation.MOVU: _format(
        Operation.MOVU, "Sets a uniform register.",
        Field("ud", 80, 8, "The uniform register."),
        Field("imm", 96, 32, "Its new value: the number of a segment.")),
    Operation.SETP: _format(
        Operation.SETP, "Sets a predicate; threads that do not take part keep theirs.", _GUARD, _PREDICATE,
        Field("pd", 16, 3, "The predicate."),
        Field("source", 19, 1, "What is compared.", enum=Source),
        Field("compare", 20, 4, "How.", enum=Compare),
        Field("rs", 32, 16, "The register that is compared; 0 if that is the thread's index."),
        Field("imm", 96, 32, "What it is compared with.")),
    Operation.BAR_WAIT: _format(
        Operation.BAR_WAIT, "Waits for a barrier.",
        Field("parity", 16, 1, "Parity of the phase that must be complete."),
        Field("imm", 96, 32, "Byte address of the barrier in shared memory, a multiple of 8.")),
    Operation.FENCE: _format(Operation.FENCE, "Waits for all instructions before."),
    Operation.HALT: _format(Operation.HALT, "Waits for all instructions before, and raises the interrupt."),
}  # fmt: skip

#: Operations that a predicate can guard.
GUARDED = frozenset(op for op, fmt in INSTRUCTIONS.items() if _GUARD in fmt.fields)
#: Operations that have a logical address.
MEMORY_OPERATIONS = frozenset({Operation.MM, Operation.LD, Operation.ST})
