"""Registers of the command processor: the region ``program`` (docs/core.md, "Registers")."""

from ..conv.registers import CONV_REGISTERS
from ..fields import Field
from ..pe.registers import PE_REGISTERS
from ..registers import Access, Register, counter, identification, interrupts
from ..tmau.registers import TMAU_REGISTERS, WINDOW_REGISTERS
from .word import Engine

__all__ = ["PROGRAM_ID_VALUE", "PROGRAM_REGISTERS", "WRITABLE", "built_with"]


PROGRAM_REGISTERS = (
    *identification("TWCP", "command processor"),
    Register("params0", 0x08, Access.RO, "Parameters that the hardware was built with.", (
        Field("bus_bytes", 0, 8, "Bytes of a bus word."),
        Field("addr_width", 8, 8, "Bits of a global byte address."),
        Field("conv", 16, 1, "There is a convolution engine."),
    )),
    Register("params1", 0x0C, Access.RO, "Parameters that the hardware was built with.",
             (Field("smem_bytes", 0, 32, "Bytes of shared memory."),)),
    Register("control", 0x20, Access.WO, "Acts once.", (
        Field("clear_counters", 0, 1, "Set all performance counters to zero."),
        Field("clear_error", 1, 1, "Forget the error record and its count."),
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
        Field("tag", 16, 16, "Tag of the word, or that of the engine's record."),
    )),
    Register("error_word", 0x34, Access.RO, "Error record: which word.",
             (Field("index", 0, 32, "Counted from 0 on, from the program's first."),)),
    Register("error_count", 0x38, Access.RO, "Programs that stopped with an error since clear_error.",
             (Field("count", 0, 32, "Stays at its largest value."),)),
    Register("word", 0x3C, Access.RO, "Where the program is.",
             (Field("index", 0, 32, "Of the word that is carried out, or was last."),)),
    counter("words", 0x40, "Words carried out."),
    counter("busy_cycles", 0x44, "Cycles in which a program ran."),
    counter("wait_cycles", 0x48, "Cycles in which the program waited: for a barrier, for engines, at its end."),
    counter("stall_engine", 0x4C, "Cycles in which an engine did not take what it was handed."),
    counter("stall_fetch", 0x50, "Cycles in which the next word or instruction had not come."),
    counter("beats", 0x54, "Bus words read."),
    Register("windows", 0x70, Access.RW, "Whether a window confines programs. Change it only while idle.", (
        Field("confine", 0, 1, "Programs and instructions must lie in the window."),
    )),
    *(
        Register(f"window_{name}_{half}", offset, Access.RW, f"Window: {what}, {half} half.",
                 (Field("address", 0, 32, "A multiple of 4096; low bits are ignored."),))
        for name, what, first in (("base", "first byte", 0x74), ("limit", "last byte", 0x7C))
        for half, offset in (("lo", first), ("hi", first + 4))
    ),
    *(
        Register(f"program_{half}", offset, Access.RW, f"Address of the program, {half} half.",
                 (Field("address", 0, 32, "Byte address in global memory: a multiple of 64."),))
        for half, offset in (("lo", 0x90), ("hi", 0x94))
    ),
    Register("program_words", 0x98, Access.RW, "Words of the program.", (Field("count", 0, 32, "How many."),)),
    Register("watchdog", 0x9C, Access.RW, "How long a word may take.", (Field("cycles", 0, 32, "0: for ever."),)),
)  # fmt: skip
#: What register ``id`` holds.
PROGRAM_ID_VALUE = PROGRAM_REGISTERS[0].reset

#: Registers that programs may write, by engine and byte offset: all that can be written, but not those of windows.
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
    """Fields of the registers that show parameters of a core, CoreParams, by register."""
    tmau = params.tmau
    return {
        "params0": {"bus_bytes": tmau.bus_bytes, "addr_width": tmau.addr_width, "conv": int(params.conv is not None)},
        "params1": {"smem_bytes": params.smem.size_bytes},
    }
