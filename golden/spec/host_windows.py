"""Registers of the windows through which a processor commands an access unit (docs/from_a_processor.md)."""

from .barrier import BarrierOp
from .fields import Field
from .registers import Access, Register

__all__ = ["BARRIER_WINDOW_REGISTERS", "COMMAND_WINDOW_REGISTERS", "COMMAND_WINDOW_WORDS"]

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
