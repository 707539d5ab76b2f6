"""Registers of an access unit that several processors share (docs/cluster.md, "Several processors")."""

from dataclasses import replace

from ..fields import Field
from ..registers import Access, Register
from .registers import TMAU_REGISTERS, WINDOW_REGISTERS

__all__ = [
    "MOST_PROCESSORS",
    "PROCESSOR_REGISTERS",
    "PROCESSOR_STRIDE",
    "own_tag_bits",
    "processor_of",
    "processor_registers",
]

MOST_PROCESSORS = 16

_FIRST, PROCESSOR_STRIDE = 0x200, 0x20
_WINDOWS = sorted(
    (register for register in TMAU_REGISTERS if register.name in WINDOW_REGISTERS), key=lambda register: register.offset
)

#: Windows of processor 0; those of the next one lie ``PROCESSOR_STRIDE`` bytes behind.
PROCESSOR_REGISTERS = tuple(
    replace(register, offset=_FIRST + 4 * number) for number, register in enumerate(_WINDOWS)
)  # fmt: skip

_COUNT = Register("processors", 0x1C, Access.RO, "Its reset value is in the hardware.", (
    Field("count", 0, 8, "Processors that share the unit."),
))  # fmt: skip


def processor_registers(count, windows=True):
    """Registers of a unit that ``count`` processors share; none of one. Names of windows end with their processor."""
    if count == 1:
        return ()
    return (_COUNT,) + tuple(
        replace(register, name=f"{register.name}_{number}", offset=register.offset + PROCESSOR_STRIDE * number)
        for number in range(count if windows else 0)
        for register in PROCESSOR_REGISTERS
    )


def own_tag_bits(count):
    """Bits of a tag that are a processor's own where ``count`` share the unit; those above are its number."""
    return 16 - (count - 1).bit_length()


def processor_of(tag, count):
    """Number of the processor whose command has the tag; ValueError if there is none of that number."""
    number = tag >> own_tag_bits(count)
    if number >= count:
        raise ValueError(f"a tag must have the number of one of {count} processors in its upper bits, not {tag:#06x}")
    return number
