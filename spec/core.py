"""Errors, program words and registers of the command processor (docs/core.md)."""

from enum import IntEnum

from .conv import CONV_REGISTERS
from .fields import Field, Format
from .memory import BarrierOp
from .pe import PE_REGISTERS
from .registers import (
    CLEAR_COUNTERS,
    CLEAR_ERROR,
    Access,
    Register,
    address_halves,
    counter,
    identification,
    interrupts,
    parameters,
)
from .tmau_registers import TMAU_REGISTERS, WINDOW_REGISTERS

__all__ = [
    "ARGUMENTS", "BARRIER_VALUES", "JOB_WORDS", "LOOPS", "PAGER_TAG_BIT", "PROGRAM_ALIGNMENT", "PROGRAM_ID_VALUE",
    "PROGRAM_REGISTERS", "PROGRAM_WORDS", "WORD_BITS", "WORD_BYTES", "WRITABLE", "Engine", "Kind", "ProgramError",
    "built_with",
]  # fmt: skip


class ProgramError(IntEnum):
    """Code of an error record: why a program stopped. If several rules are broken, the lowest code is recorded."""

    NONE = 0
    KIND = 1  #: a word of an unknown kind
    RESERVED = 2  #: a reserved bit is set
    MISSING = 3  #: the engine was not built
    COUNT = 4  #: a count of instructions or of rounds is 0
    ADDRESS = 5  #: program or instructions do not begin at a multiple of 64, or end outside the address space
    WINDOW = 6  #: program or instructions lie outside the window
    LOOP = 7  #: an empty body, one that begins before the program, or a loop inside four others
    REGISTER = 8  #: a register that does not exist, that programs may not write, or that refused the value
    BARRIER = 9  #: an operation that does not exist, a wrong address or value, or the barrier refused
    BUS = 10  #: the bus answered a read of the program or of instructions with an error
    NO_END = 11  #: the program continued past its last word
    ENGINE = 12  #: an engine has recorded an error; the record has engine and tag
    WATCHDOG = 13  #: a word took longer than the watchdog allows
    STOPPED = 14  #: the host stopped the program, or its core


#: Bits and bytes of a word.
WORD_BITS, WORD_BYTES = 512, 64
#: Alignment of programs and of instructions in global memory.
PROGRAM_ALIGNMENT = 64
#: Words after one of kind ``CONV``: the job, its low half first.
JOB_WORDS = 2
#: Most arguments of a kernel.
ARGUMENTS = 12
#: Most nested loops.
LOOPS = 4
#: Upper bound, exclusive, of values of barrier operations.
BARRIER_VALUES = 1 << 20
#: Bit of a word of kind ``TMAU`` that must be 0: tags with this bit belong to page moves.
PAGER_TAG_BIT = 31


class Kind(IntEnum):
    """Kind of a word. There is no kind 0, so an empty word is refused."""

    TMAU = 1  #: a command of the TMAU
    CONV = 2  #: a job of the convolution engine, which is in the next two words
    PE = 3  #: instructions of the processing engine in global memory
    BARRIER = 4  #: an operation on a barrier
    WAIT_ALL = 5  #: wait until engines have finished all of their work
    REGISTER = 6  #: write a register of an engine
    LOOP = 7  #: repeat the preceding words a number of times
    END = 8  #: the program ends
    KERNEL = 9  #: start a kernel of the processing engine


class Engine(IntEnum):
    """An engine; 0 is none."""

    NONE = 0
    TMAU = 1
    PE = 2
    CONV = 3


_KIND = Field("kind", 508, 4, "Kind of the word.", enum=Kind)
_TAG = Field("tag", 16, 16, "Chosen by the issuer; returned in error records.")


def _word(kind, doc, *fields):
    return Format(kind.name.lower(), WORD_BITS, doc, (*fields, _KIND))


#: Format of every kind. Reserved bits must be zero, except in a command.
PROGRAM_WORDS = {
    Kind.TMAU: _word(
        Kind.TMAU, "A command of the TMAU, handed over unchanged, with zeros in place of the kind.",
        Field("tag", 16, 15, "Tag of the command. The bit above must be zero: tags from 0x8000 on belong to page "
              "moves. All other bits are the command's.")),
    Kind.CONV: _word(
        Kind.CONV, "A job of the convolution engine. The next two words are the job, its low half first; they have "
        "no kind.", _TAG),
    Kind.PE: _word(
        Kind.PE, "Instructions of the processing engine: 16 bytes each, contiguous in global memory.",
        _TAG,
        Field("count", 32, 32, "Instructions, 1 or more."),
        Field("address", 64, 64, "Global byte address of the first one: a multiple of 64.")),
    Kind.BARRIER: _word(
        Kind.BARRIER, "An operation on a barrier. TRY_WAIT waits: the program continues when it is true.",
        Field("operation", 4, 4, "Operation.", enum=BarrierOp),
        _TAG,
        Field("value", 32, 32, "Arrivals, bytes or parity, below 2^20; a parity is 0 or 1."),
        Field("barrier", 64, 32, "Byte address of the barrier in shared memory: a multiple of 8.")),
    Kind.WAIT_ALL: _word(
        Kind.WAIT_ALL, "Waits until engines have finished all of their work.",
        Field("engines", 4, 3, "A bit each: TMAU, processing engine, convolution engine. 0: all."),
        _TAG),
    Kind.REGISTER: _word(
        Kind.REGISTER, "Writes a register of an engine.",
        Field("engine", 4, 4, "Engine.", enum=Engine),
        _TAG,
        Field("value", 32, 32, "New value."),
        Field("offset", 64, 32, "Byte offset of the register in the engine's region.")),
    Kind.LOOP: _word(
        Kind.LOOP, "End of the body of a loop.",
        _TAG,
        Field("count", 32, 32, "Rounds in all, 1 or more."),
        Field("back", 64, 32, "Words of the body, 1 or more, which end before this one.")),
    Kind.KERNEL: _word(
        Kind.KERNEL, "Sets uniform registers of the processing engine, and calls a kernel.",
        Field("first", 4, 8, "The uniform register that gets the first argument."),
        Field("count", 12, 4, "Arguments, at most 12."),
        _TAG,
        Field("entry", 32, 32, "Index of the kernel's first instruction in instruction memory."),
        Field("argument", 64, 32, "The arguments; 0 beyond their number.", count=ARGUMENTS, pitch=32)),
    Kind.END: _word(
        Kind.END, "Waits until all engines have finished all of their work; then the program has ended.",
        Field("interrupt", 4, 1, "1: sets ``irq_status.done``."),
        _TAG),
}  # fmt: skip


PROGRAM_REGISTERS = (
    *identification("TWCP", "command processor"),
    parameters(0,
        Field("bus_bytes", 0, 8, "Bytes of a bus word."),
        Field("addr_width", 8, 8, "Bits of a global byte address."),
        Field("conv", 16, 1, "There is a convolution engine."),
    ),
    parameters(1, Field("smem_bytes", 0, 32, "Bytes of shared memory.")),
    Register("control", 0x20, Access.WO, "Acts once.", (
        CLEAR_COUNTERS,
        CLEAR_ERROR,
        Field("start", 2, 1, "Run the program. Without effect while one runs."),
        Field("stop", 3, 1, "Stop the program with ``STOPPED``. Without effect while none runs."),
    )),
    Register("status", 0x24, Access.RO, "What the processor does now.", reset=1, fields=(
        Field("idle", 0, 1, "No program runs."),
        Field("error", 1, 1, "The error record holds an error."),
        Field("done", 2, 1, "The last program came to its end."),
    )),
    *interrupts(
        Field("error", 0, 1, "A program stopped with an error."),
        Field("done", 1, 1, "A program came to an END that says so."),
    ),
    Register("error", 0x30, Access.RO, "Error record: of the first program that stopped since clear_error.", (
        Field("code", 0, 8, "ProgramError; 0 if there was none."),
        Field("engine", 8, 8, "Engine whose error it is, or 0."),
        Field("tag", 16, 16, "Tag of the word, or the tag in the engine's record."),
    )),
    Register("error_word", 0x34, Access.RO, "Error record: the word.",
             (Field("index", 0, 32, "Counted from 0, from the first word of the program."),)),
    Register("error_count", 0x38, Access.RO, "Programs that stopped with an error since clear_error.",
             (Field("count", 0, 32, "Stays at its largest value."),)),
    Register("word", 0x3C, Access.RO, "Position in the program.",
             (Field("index", 0, 32, "Index of the current word, or the last one."),)),
    counter("words", 0x40, "Words executed."),
    counter("busy_cycles", 0x44, "Cycles in which a program ran."),
    counter("wait_cycles", 0x48, "Cycles in which the program waited: for a barrier, for engines, at its end."),
    counter("stall_engine", 0x4C, "Cycles in which an engine did not accept its work."),
    counter("stall_fetch", 0x50, "Cycles in which the next word or instruction had not arrived."),
    counter("beats", 0x54, "Bus words read."),
    Register("windows", 0x70, Access.RW, "Whether a window confines programs. Change it only while idle.", (
        Field("confine", 0, 1, "Programs and instructions must lie in the window."),
    )),
    *address_halves("window_base", 0x74, "Window: first byte", "A multiple of 4096; low bits are ignored."),
    *address_halves("window_limit", 0x7C, "Window: last byte", "A multiple of 4096; low bits are ignored."),
    *address_halves("program", 0x90, "Address of the program", "Byte address in global memory: a multiple of 64."),
    Register("program_words", 0x98, Access.RW, "Words of the program.", (Field("count", 0, 32, "Their number."),)),
    Register("watchdog", 0x9C, Access.RW, "How long a word may take.", (Field("cycles", 0, 32, "0: for ever."),)),
)  # fmt: skip
#: Constant in register ``id``.
PROGRAM_ID_VALUE = PROGRAM_REGISTERS[0].reset

#: Registers that programs may write, by engine and byte offset: all writable ones except windows.
WRITABLE = {
    engine: {
        register.offset: register
        for register in registers
        if register.access in (Access.RW, Access.W1C, Access.WO) and register.name not in WINDOW_REGISTERS
    }
    for engine, registers in (
        (Engine.TMAU, TMAU_REGISTERS), (Engine.PE, PE_REGISTERS), (Engine.CONV, CONV_REGISTERS),
    )
}  # fmt: skip


def built_with(params):
    """Fields of the parameter registers for a core, CoreParams, by register."""
    tmau = params.tmau
    return {
        "params0": {"bus_bytes": tmau.bus_bytes, "addr_width": tmau.addr_width, "conv": int(params.conv is not None)},
        "params1": {"smem_bytes": params.smem.size_bytes},
    }
