"""Errors of the command processor (docs/core.md, "Errors"). Of several broken rules the lowest code is recorded."""

from enum import IntEnum

__all__ = ["ProgramError"]


class ProgramError(IntEnum):
    """Code of an error record: why a program stopped."""

    NONE = 0
    KIND = 1  #: a word of no kind
    RESERVED = 2  #: a bit of no field is set
    MISSING = 3  #: the engine was not built
    COUNT = 4  #: no instruction, or a loop of no rounds
    ADDRESS = 5  #: program or instructions begin at no multiple of 64, or end outside the address space
    WINDOW = 6  #: program or instructions do not lie in the window
    LOOP = 7  #: a body of no words, one that begins before the program, or a loop inside four others
    REGISTER = 8  #: a register that does not exist, that programs do not write, or that refused the value
    BARRIER = 9  #: an operation that does not exist, a wrong address or value, or the barrier refused
    BUS = 10  #: the bus answered a read of the program or of instructions with an error
    NO_END = 11  #: the program went on past its last word
    ENGINE = 12  #: an engine has recorded an error: which, and its tag
    WATCHDOG = 13  #: a word took longer than the watchdog allows
    STOPPED = 14  #: the host stopped the program, or its core
