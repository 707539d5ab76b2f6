"""Errors, instructions, segments and registers of the processing engine (docs/pe.md)."""

from enum import IntEnum

from .arithmetic import Function, Operand
from .fields import Field, Format, one_line
from .memory import Swizzle
from .registers import CLEAR_COUNTERS, CLEAR_ERROR, Access, Register, counter, identification, interrupts, parameters

__all__ = [
    "DATA_WORDS", "GUARDED", "INSTRUCTIONS", "MAX_PAGE_LOG2", "MEMORY_OPERATIONS", "MM_FAMILIES", "PAGE_ENTRY",
    "PE_ID_VALUE", "PE_REGISTERS", "SEGMENT", "Compare", "MmType", "Operation", "PeError", "Put", "SegmentElement",
    "Source", "Target", "families",
]  # fmt: skip


class PeError(IntEnum):
    """Code of an error record.

    If an instruction has several errors, the lowest code is recorded, but ``STOPPED`` before all. With a code up to
    ``BARRIER``, or ``STOPPED``, the instruction does nothing, and the record names all threads. From ``PRODUCT`` to
    ``MEMORY`` only the failing accesses are left out, and the record names the first and the last thread with one. The
    record's ``register`` is as in the comment, or 0.
    """

    NONE = 0
    OPCODE = 1  #: unknown operation, unknown value of an enumeration, a reserved bit set, or a count of 0
    UNSUPPORTED = 2  #: elements of a type that the hardware was built without; register: number of the type
    MERGE = 3  #: ka times kb exceeds the number of threads
    UNIFORM = 4  #: a uniform register that does not exist or is not set; register: its number
    SEGMENT = 5  #: its segment does not exist, is wrong, or does not fit the instruction; register: its number
    REGISTER = 6  #: a register past the end of the file; register: the first of its group (factor, then offset)
    BARRIER = 7  #: a barrier's address that is not a multiple of 8 or not in shared memory
    PRODUCT = 8  #: columns whose accumulator is past the end of the file; register: rc
    ALIGNMENT = 9  #: an innermost offset that does not begin a whole issue, or a whole register; register: rc, rd or rs
    UNMAPPED = 10  #: a page whose entry is not valid; register: rc, rd or rs
    OFF_CHIP = 11  #: a loaded page that is not in shared memory; register: rc, rd or rs
    MEMORY = 12  #: an address past the end of shared memory; register: rc, rd or rs
    STOPPED = 13  #: the core of a cluster was stopped before the instruction began, or while it waited for a barrier
    CONTROL = 14  #: a call, loop, end, return or load at a wrong place; register: the index in instruction memory


class Operation(IntEnum):
    """Operation of an instruction; its format is ``INSTRUCTIONS[operation]``."""

    MM = 1  #: multiply rows of A with columns of B and accumulate
    LD = 2  #: registers from memory
    ST = 3  #: registers to memory
    MOV = 4  #: an immediate, the index of the thread or the number of the core to a register
    MOVU = 5  #: an immediate to a uniform register
    SETP = 6  #: a comparison to a predicate
    BAR_WAIT = 7  #: wait until a phase of a barrier is complete
    FENCE = 8  #: wait until all earlier instructions are performed
    HALT = 9  #: a fence that raises the interrupt
    ARITH = 10  #: a function of registers (``spec.arithmetic``)
    CALL = 11  #: execute a kernel, which is in instruction memory
    RETURN = 12  #: the kernel ends
    LOOP = 13  #: repeat the instructions up to END
    END = 14  #: the end of a loop's body
    LOAD = 15  #: the following words of the stream go to instruction memory, or to the lookup memory


class Target(IntEnum):
    """Where LOAD puts words."""

    CODE = 0  #: instruction memory: an instruction a word
    LOOKUP = 1  #: lookup memory: four entries of 32 bits a word, the first in the low bits


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
        """Its family of ``MM_FAMILIES``: a machine supports all types of a family, or none."""
        return self.name.lower() if self.is_float else f"i{8 * self.bytes}"


#: Families of types, in the order of their bits in register ``params1``.
MM_FAMILIES = ("i8", "i16", "f16", "bf16")


def families(types):
    """``types``, a list of some of ``MM_FAMILIES``, as a tuple in their order; TypeError or ValueError otherwise."""
    if not isinstance(types, list | tuple):
        raise TypeError(f"types must be a list or tuple, not {one_line(types)}")
    if not types or any(family not in MM_FAMILIES for family in types):
        raise ValueError(f"types must be one or more of {', '.join(MM_FAMILIES)}, not {one_line(types)}")
    return tuple(family for family in MM_FAMILIES if family in types)


class Compare(IntEnum):
    """Comparison of SETP: source with immediate, in two's complement, or unsigned if the name ends in U."""

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
    """First operand of MOV and SETP."""

    GIVEN = 0  #: the immediate of MOV, the register of SETP
    THREAD = 1  #: the index of the thread


_OPCODE = Field("opcode", 0, 8, "Operation.", enum=Operation)
_GUARD = Field("guard", 8, 1, "1: only threads whose predicate is true take part.")
_PREDICATE = Field("predicate", 9, 3, "The guarding predicate; 0 without a guard.")
_SEGMENT = Field("ur", 80, 8, "Uniform register that names the segment.")
_OFFSETS = Field("rf", 64, 16, "First offset register: one for each dimension of the segment, innermost first.")
_IMMEDIATE = Field("imm", 96, 32, "Added to the innermost offset, modulo 2^32.")
_COUNT = Field("n", 48, 16, "Registers a thread moves, 1 or more.")
_ELEMENT = Field("element", 16, 1, "1: a register is one element, widened or cut off. 0: it is four bytes.")
_REGISTER = "register of every thread that takes part."


def _format(operation, doc, *fields):
    return Format(operation.name.lower(), 128, doc, (_OPCODE, *fields))


#: Format of every operation. Reserved bits must be zero.
INSTRUCTIONS = {
    Operation.MM: _format(
        Operation.MM, "Multiplies and accumulates.", _GUARD, _PREDICATE,
        Field("ka", 16, 2, "Threads that share a row of C, each with its own columns.", bias=1),
        Field("kb", 18, 2, "Threads that share a product, each with a part of K.", bias=1),
        Field("transpose", 20, 1, "0: K is dimension 0 of B. 1: N is dimension 0 and K is dimension 1."),
        Field("type", 24, 4, "Elements of A and B.", enum=MmType),
        Field("rc", 32, 16, "Accumulator of column 0."),
        Field("ra", 48, 16, "First factor register."),
        _OFFSETS, _SEGMENT, _IMMEDIATE),
    Operation.LD: _format(
        Operation.LD, "Loads registers.", _GUARD, _PREDICATE, _ELEMENT, Field("rd", 32, 16, "First " + _REGISTER),
        _COUNT, _OFFSETS, _SEGMENT, _IMMEDIATE),
    Operation.ST: _format(
        Operation.ST, "Stores registers.", _GUARD, _PREDICATE, _ELEMENT, Field("rs", 32, 16, "First " + _REGISTER),
        _COUNT, _OFFSETS, _SEGMENT, _IMMEDIATE),
    Operation.MOV: _format(
        Operation.MOV, "Sets a register.", _GUARD, _PREDICATE,
        Field("source", 16, 1, "Source of the value.", enum=Source),
        Field("core", 17, 1, "1: `imm` is ORed with the number of the core; 0 if it is the thread's index."),
        Field("rd", 32, 16, "The " + _REGISTER),
        Field("imm", 96, 32, "Its new value; 0 if that is the thread's index.")),
    Operation.MOVU: _format(
        Operation.MOVU, "Sets a uniform register.",
        Field("ud", 80, 8, "The uniform register."),
        Field("imm", 96, 32, "Its new value: the number of a segment.")),
    Operation.SETP: _format(
        Operation.SETP, "Sets a predicate, of threads that take part.", _GUARD, _PREDICATE,
        Field("pd", 16, 3, "The predicate."),
        Field("source", 19, 1, "Left operand.", enum=Source),
        Field("compare", 20, 4, "Comparison.", enum=Compare),
        Field("rs", 32, 16, "The register that is compared; 0 if that is the thread's index."),
        Field("imm", 96, 32, "Right operand.")),
    Operation.BAR_WAIT: _format(
        Operation.BAR_WAIT, "Waits for a barrier.",
        Field("parity", 16, 1, "Parity of the phase that must be complete."),
        Field("imm", 96, 32, "Byte address of the barrier in shared memory, a multiple of 8.")),
    Operation.FENCE: _format(Operation.FENCE, "Waits for all earlier instructions."),
    Operation.HALT: _format(Operation.HALT, "Waits for all earlier instructions, and raises the interrupt."),
    Operation.ARITH: _format(
        Operation.ARITH, "Computes a function of registers. Fields that the function does not use are 0.",
        _GUARD, _PREDICATE,
        Field("function", 16, 8, "The function.", enum=Function),
        Field("b", 24, 2, "What operand b is.", enum=Operand),
        Field("part", 26, 3, "Byte, half, bit of the thread's number, or second predicate: see the function."),
        Field("ps", 29, 3, "The predicate that the function reads."),
        Field("rd", 32, 16, "The register, or the predicate, that is written."),
        Field("ra", 48, 16, "Operand a."),
        Field("rb", 64, 16, "Register, or uniform register, of operand b; 0 if that is the immediate."),
        Field("rc", 80, 16, "Operand c."),
        Field("imm", 96, 32, "Operand b, if it is the immediate; else 0.")),
    Operation.CALL: _format(
        Operation.CALL, "Executes a kernel.",
        Field("imm", 96, 32, "Index of its first instruction in instruction memory.")),
    Operation.RETURN: _format(Operation.RETURN, "The kernel ends."),
    Operation.LOOP: _format(
        Operation.LOOP, "Begins the body of a loop.",
        Field("b", 24, 2, "What gives the number of rounds: the immediate or a uniform register.", enum=Operand),
        Field("rb", 64, 16, "The uniform register; 0 for the immediate."),
        Field("imm", 96, 32, "Rounds, 1 or more; 0 if a uniform register gives them.")),
    Operation.END: _format(Operation.END, "Ends the body of a loop."),
    Operation.LOAD: _format(
        Operation.LOAD, "Loads instructions, or entries of the lookup memory: the words that follow in the stream.",
        Field("target", 16, 1, "Where they go.", enum=Target),
        Field("n", 48, 16, "Words, 1 or more."),
        Field("imm", 96, 32, "Index of the first instruction, or of the first entry, a multiple of 4.")),
}  # fmt: skip

#: Operations that a predicate can guard.
GUARDED = frozenset(op for op, fmt in INSTRUCTIONS.items() if _GUARD in fmt.fields)
#: Operations with a logical address.
MEMORY_OPERATIONS = frozenset({Operation.MM, Operation.LD, Operation.ST})


#: Log2 of the bytes of the largest page.
MAX_PAGE_LOG2 = 20


class SegmentElement(IntEnum):
    """Type of a segment's elements; the low two bits are log2 of the bytes of an element."""

    S8 = 0
    S16 = 1
    S32 = 2
    U8 = 4
    U16 = 5
    U32 = 6
    F16 = 9
    F32 = 10
    BF16 = 13

    @property
    def bytes(self):
        """Bytes of an element."""
        return 1 << (self & 3)


SEGMENT = Format("segment", 256, "A tensor, or a part of one, that instructions address by element.", (
    Field("element", 0, 4, "Element type.", enum=SegmentElement),
    Field("rank", 4, 2, "Dimensions, 1 to 4.", bias=1),
    Field("swizzle", 6, 2, "Permutation of the chunks in shared memory, as the TMAU stored them.", enum=Swizzle),
    Field("paged", 8, 1, "1: page entries hold the addresses of pages. 0: there is one page, at `base`."),
    Field("first_entry", 16, 16, "Entry of page 0; 0 if not paged."),
    Field("base", 32, 32, "Byte address of the only page, a multiple of 16; 0 if paged."),
    Field("size", 64, 16, "Elements of each dimension, innermost first; 0 beyond the rank.", count=4, pitch=16),
    Field("page_log2", 128, 4, "Log2 of a page's elements in each dimension; 0 beyond the rank.", count=4, pitch=4),
))  # fmt: skip

PAGE_ENTRY = Format("page_entry", 64, "Where a page is.", (
    Field("address", 0, 32, "Byte address, a multiple of 16."),
    Field("valid", 32, 1, "The page exists."),
    Field("loaded", 33, 1, "Its data are present; an access to a valid page waits for this."),
    Field("on_chip", 34, 1, "The address lies in shared memory."),
))  # fmt: skip


#: Words of register ``data``: as many as the longest format, a command of the TMAU, has.
DATA_WORDS = 16


class Put(IntEnum):
    """Kind of what is put: the format of the words from ``data0`` on, or an operation on a page."""

    INSTRUCTION = 1  #: four words: an instruction to be issued
    SEGMENT = 2  #: eight words: segment ``index``
    PAGE = 3  #: two words: page entry ``index``
    PAGE_IN = 4  #: sixteen words: a command of the TMAU that brings page ``index`` to ``page_address``
    PAGE_OUT = 5  #: sixteen words: a command that takes it away; then its entry is deleted
    PAGE_DROP = 6  #: no words: the entry is deleted


PE_REGISTERS = (
    *identification("TWPE", "processing engine"),
    parameters(0,
        Field("threads", 0, 16, "Rows of C, each with a dot-product unit."),
        Field("regs", 16, 16, "Registers of a thread."),
    ),
    parameters(1,
        Field("factor_regs", 0, 8, "Registers of A that one issue multiplies."),
        Field("uniform_regs", 8, 8, "Uniform registers."),
        Field("mm_in_flight", 16, 8, "Multiplies in flight at most."),
        Field("types", 24, 4, "Elements that mm supports, a bit each: 8-bit integers, 16-bit integers, fp16, bf16."),
    ),
    parameters(2,
        Field("segments", 0, 16, "Entries of the segment table."),
        Field("pages", 16, 16, "Entries of the page table."),
    ),
    parameters(3, Field("smem_bytes", 0, 32, "Bytes of shared memory.")),
    Register("control", 0x20, Access.WO, "Acts once.", (CLEAR_COUNTERS, CLEAR_ERROR)),
    Register("status", 0x24, Access.RO, "What the unit does now.", reset=1, fields=(
        Field("idle", 0, 1, "No instruction is under way."),
        Field("error", 1, 1, "The error record holds an error."),
        Field("put_busy", 2, 1, "The last put has not been accepted: writes from data0 on are refused."),
    )),
    *interrupts(
        Field("error", 0, 1, "An instruction had an error."),
        Field("halt", 1, 1, "A halt was performed."),
    ),
    Register("error", 0x30, Access.RO, "Error record: of the first instruction in program order that had an error.", (
        Field("code", 0, 8, "PeError; 0 if there was none since clear_error."),
        Field("register", 16, 16, "The register that the code is about, or 0."),
    )),
    Register("error_number", 0x34, Access.RO, "Error record: which instruction.",
             (Field("number", 0, 32, "Counted from 0 on after reset."),)),
    Register("error_threads", 0x38, Access.RO, "Error record: threads that met the error.", (
        Field("first", 0, 16, "Lowest of them."),
        Field("last", 16, 16, "Highest of them."),
    )),
    Register("error_count", 0x3C, Access.RO, "Instructions that had an error since clear_error.",
             (Field("count", 0, 32, "Stays at its largest value."),)),
    counter("instructions", 0x40, "Instructions accepted."),
    counter("busy_cycles", 0x44, "Cycles in which an instruction was under way."),
    counter("steps", 0x48, "Steps of multiplies: broadcasts of columns."),
    counter("stall_columns", 0x4C, "Cycles in which a multiply waited for its columns."),
    counter("stall_factors", 0x50, "Cycles in which a multiply waited for its factors."),
    counter("stall_product", 0x54, "Cycles in which a step waited for the result of an earlier one."),
    counter("line_fills", 0x58, "Chunks of rows of B that were read into the line cache."),
    counter("bank_conflicts", 0x5C, "Cycles that reads of shared memory took longer because of bank conflicts."),
    counter("translation_misses", 0x60, "Accesses that had to look into the page table."),
    Register("params4", 0x64, Access.RO, "Parameters that the hardware was built with.", (
        Field("kernel_words", 0, 16, "Instructions in instruction memory."),
        Field("lookup_words", 16, 12, "Entries of the lookup memory."),
        Field("units", 28, 4, "Units of the arithmetic, a bit each: alu, div, f32, lookup."),
    )),
    counter("arithmetic", 0x68, "Arithmetic instructions that were executed."),
    counter("stall_operand", 0x6C, "Cycles in which an arithmetic instruction waited for a register or predicate."),
    counter("stall_port", 0x70, "Cycles in which one waited for a port of the registers, or a unit."),
    *(
        Register(f"data{word}", 0x100 + 4 * word, Access.RW, f"Word {word} of the next put.",
                 (Field("word", 0, 32, "Little-endian, the lowest bits in data0."),))
        for word in range(DATA_WORDS)
    ),
    Register("put", 0x140, Access.WO, "Hands over the contents of the words. Refused if there is no such index.", (
        Field("kind", 0, 3, "Kind of the contents.", enum=Put),
        Field("index", 16, 16, "Of the segment, or the page entry; 0 for an instruction."),
    )),
    Register("page_address", 0x144, Access.RW, "Address to which PAGE_IN brings the page.",
             (Field("address", 0, 32, "Byte address in shared memory, a multiple of 16."),)),
)  # fmt: skip
#: Constant in register ``id``.
PE_ID_VALUE = PE_REGISTERS[0].reset
