"""Registers of the processing engine, as ``registers`` has those of the TMAU (docs/pe.md, "State")."""

from enum import IntEnum

from ..fields import Field
from ..registers import Access, Register, counter, identification, interrupts

__all__ = ["DATA_WORDS", "PE_ID_VALUE", "PE_REGISTERS", "Put"]

#: Words that are put together: a command of the TMAU is the longest.
DATA_WORDS = 16


class Put(IntEnum):
    """What the words of ``data0`` on are, or what is done with a page."""

    INSTRUCTION = 1  #: four words: an instruction to be issued
    SEGMENT = 2  #: eight words: segment ``index``
    PAGE = 3  #: two words: page entry ``index``
    PAGE_IN = 4  #: sixteen words: a command of the TMAU that brings page ``index`` to ``page_address``
    PAGE_OUT = 5  #: sixteen words: a command that takes it away; then its entry is deleted
    PAGE_DROP = 6  #: no words: the entry is deleted


PE_REGISTERS = (
    *identification("TWPE", "processing engine"),
    Register("params0", 0x08, Access.RO, "Parameters that the hardware was built with.", (
        Field("threads", 0, 16, "Rows of C, each with a dot-product unit."),
        Field("regs", 16, 16, "Registers of a thread."),
    )),
    Register("params1", 0x0C, Access.RO, "Parameters that the hardware was built with.", (
        Field("factor_regs", 0, 8, "Registers of A that one issue multiplies."),
        Field("uniform_regs", 8, 8, "Uniform registers."),
        Field("mm_in_flight", 16, 8, "Multiplies under way at most."),
        Field("types", 24, 4, "Elements that mm takes, a bit each: 8-bit integers, 16-bit integers, fp16, bf16."),
    )),
    Register("params2", 0x10, Access.RO, "Parameters that the hardware was built with.", (
        Field("segments", 0, 16, "Entries of the segment table."),
        Field("pages", 16, 16, "Entries of the page table."),
    )),
    Register("params3", 0x14, Access.RO, "Parameters that the hardware was built with.",
             (Field("smem_bytes", 0, 32, "Bytes of shared memory."),)),
    Register("control", 0x20, Access.WO, "Acts once.", (
        Field("clear_counters", 0, 1, "Set all performance counters to zero."),
        Field("clear_error", 1, 1, "Forget the error record and its count."),
    )),
    Register("status", 0x24, Access.RO, "What the unit does now.", reset=1, fields=(
        Field("idle", 0, 1, "No instruction is under way."),
        Field("error", 1, 1, "The error record holds an error."),
        Field("put_busy", 2, 1, "What was put has not been taken: writes from data0 on are refused."),
    )),
    *interrupts(
        Field("error", 0, 1, "An instruction had an error."),
        Field("halt", 1, 1, "A halt was performed."),
    ),
    Register("error", 0x30, Access.RO, "Error record: of the first instruction in program order that had an error.", (
        Field("code", 0, 8, "PeError; 0 if there was none since clear_error."),
        Field("register", 16, 16, "The register that the code tells of, or 0."),
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
    *(
        Register(f"data{word}", 0x100 + 4 * word, Access.RW, f"Word {word} of what is put next.",
                 (Field("word", 0, 32, "Little-endian, the lowest bits in data0."),))
        for word in range(DATA_WORDS)
    ),
    Register("put", 0x140, Access.WO, "Hands over what is in the words. Refused if there is no such index.", (
        Field("kind", 0, 3, "What they are.", enum=Put),
        Field("index", 16, 16, "Of the segment, or the page entry; 0 for an instruction."),
    )),
    Register("page_address", 0x144, Access.RW, "Where PAGE_IN brings the page.",
             (Field("address", 0, 32, "Byte address in shared memory, a multiple of 16."),)),
)  # fmt: skip
#: What register ``id`` holds.
PE_ID_VALUE = PE_REGISTERS[0].reset
