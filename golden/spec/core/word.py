"""Words of a program: what the command processor carries out one after the other (docs/core.md, "Words").

A word has 512 bits. Its kind tells which of :data:`PROGRAM_WORDS` it is.
"""

from enum import IntEnum

from ..barrier import BarrierOp
from ..fields import Field, Format

__all__ = [
    "BARRIER_VALUES",
    "JOB_WORDS",
    "LOOPS",
    "PAGER_TAG_BIT",
    "PROGRAM_ALIGNMENT",
    "PROGRAM_WORDS",
    "WORD_BITS",
    "WORD_BYTES",
    "Engine",
    "Kind",
]

#: Bits and bytes of a word.
WORD_BITS, WORD_BYTES = 512, 64
#: What the addresses of programs and of instructions are multiples of.
PROGRAM_ALIGNMENT = 64
#: Words that follow one of kind ``CONV``: the job, its low half first.
JOB_WORDS = 2
#: Loops inside each other, at most.
LOOPS = 4
#: Values of operations on barriers are below this.
BARRIER_VALUES = 1 << 20
#: Bit of a word of kind ``TMAU`` that must be 0: tags that have it belong to page moves.
PAGER_TAG_BIT = 31


class Kind(IntEnum):
    """What a word is. Zero is no kind, so that an empty word is refused."""

    TMAU = 1  #: a command of the TMAU
    CONV = 2  #: a job of the convolution engine, which is in the next two words
    PE = 3  #: instructions of the processing engine, which lie in global memory
    BARRIER = 4  #: an operation on a barrier
    WAIT_ALL = 5  #: wait until engines have ended what they were handed
    REGISTER = 6  #: write a register of an engine
    LOOP = 7  #: go back to the beginning of a loop, so many times
    END = 8  #: the program ends


class Engine(IntEnum):
    """An engine. Zero is none."""

    NONE = 0
    TMAU = 1
    PE = 2
    CONV = 3


_KIND = Field("kind", 508, 4, "What the word is.", enum=Kind)
_TAG = Field("tag", 16, 16, "Chosen by the issuer; returned in error records.")


def _word(kind, doc, *fields):
    return Format(kind.name.lower(), WORD_BITS, doc, (*fields, _KIND))


#: Format of every kind. Bits in no field must be zero, but those of a command.
PROGRAM_WORDS = {
    Kind.TMAU: _word(
        Kind.TMAU, "A command of the TMAU, handed over as it is, with zeros in place of the kind.",
        Field("tag", 16, 15, "Tag of the command. The bit above must be zero: tags from 0x8000 on belong to page "
              "moves. All other bits are the command's.")),
    Kind.CONV: _word(
        Kind.CONV, "A job of the convolution engine. The next two words are the job, its low half first, whatever "
        "their kinds seem to be.", _TAG),
    Kind.PE: _word(
        Kind.PE, "Instructions of the processing engine: 16 bytes each, one behind the other in global memory.",
        _TAG,
        Field("count", 32, 32, "Instructions, 1 or more."),
        Field("address", 64, 64, "Global byte address of the first one: a multiple of 64.")),
    Kind.BARRIER: _word(
        Kind.BARRIER, "An operation on a barrier. TRY_WAIT waits: the program goes on when it is true.",
        Field("operation", 4, 4, "Which.", enum=BarrierOp),
        _TAG,
        Field("value", 32, 32, "Arrivals, bytes or parity, below 2^20; a parity is 0 or 1."),
        Field("barrier", 64, 32, "Byte address of the barrier in shared memory: a multiple of 8.")),
    Kind.WAIT_ALL: _word(
        Kind.WAIT_ALL, "Waits until engines have ended everything that they were handed.",
        Field("engines", 4, 3, "Which, a bit each: TMAU, processing engine, convolution engine. 0: all."),
        _TAG),
    Kind.REGISTER: _word(
        Kind.REGISTER, "Writes a register of an engine.",
        Field("engine", 4, 4, "Whose.", enum=Engine),
        _TAG,
        Field("value", 32, 32, "What is written."),
        Field("offset", 64, 32, "Byte offset of the register in the engine's region.")),
    Kind.LOOP: _word(
        Kind.LOOP, "End of the body of a loop.",
        _TAG,
        Field("count", 32, 32, "Rounds in all, 1 or more."),
        Field("back", 64, 32, "Words of the body, 1 or more: it begins so many before this one.")),
    Kind.END: _word(
        Kind.END, "Waits until all engines have ended everything; then the program has ended.",
        Field("interrupt", 4, 1, "1: sets ``irq_status.done``."),
        _TAG),
}  # fmt: skip
