"""Parts of the command processor: checks of words, loops, and registers of the processing engine (docs/core.md)."""

from typing import NamedTuple

from tilewright.spec import BARRIER, BarrierOp
from tilewright.spec.core import (
    BARRIER_VALUES,
    LOOPS,
    PAGER_TAG_BIT,
    PROGRAM_ALIGNMENT,
    PROGRAM_WORDS,
    WRITABLE,
    Engine,
    Kind,
    ProgramError,
)
from tilewright.spec.pe import DATA_WORDS, INSTRUCTIONS, PAGE_ENTRY, SEGMENT, Operation, Put

__all__ = ["INSTRUCTION_BYTES", "Loops", "PutRegisters", "PutWord", "check_range", "check_word", "kind_of"]

#: Bytes of an instruction of the processing engine.
INSTRUCTION_BYTES = 16

_KIND = PROGRAM_WORDS[Kind.END]["kind"]
#: Bits that must be zero; the TMAU checks other bits of commands.
_RESERVED = {kind: fmt.reserved_mask for kind, fmt in PROGRAM_WORDS.items()} | {Kind.TMAU: 1 << PAGER_TAG_BIT}
#: Most uniform registers that an instruction can name.
_UNIFORM_REGISTERS = INSTRUCTIONS[Operation.MOVU]["ud"].mask + 1
#: Bits of the data of a write to ``put``.
_BITS = {
    Put.INSTRUCTION: 128, Put.SEGMENT: SEGMENT.bits, Put.PAGE: PAGE_ENTRY.bits, Put.PAGE_IN: 512, Put.PAGE_OUT: 512,
    Put.PAGE_DROP: 0,
}  # fmt: skip


def kind_of(word):
    """The :class:`Kind` of a word, or None if it is unknown."""
    number = word >> _KIND.lsb
    return Kind(number) if number in PROGRAM_WORDS else None


def check_range(address, count, window, addr_width):
    """The ProgramError of a read of ``count`` bytes of a program or of instructions, or None."""
    if address % PROGRAM_ALIGNMENT or address + count > 1 << addr_width:
        return ProgramError.ADDRESS
    return None if window.hold_global(address, count, addr_width) else ProgramError.WINDOW


def check_word(word, has_conv, smem_bytes, window, addr_width):
    """The first ProgramError of a word that does not depend on other words, or None.

    Parameters
    ----------
    word : int
    has_conv : bool
        Whether the core has a convolution engine.
    smem_bytes : int
        Bytes of shared memory.
    window : Windows
        Its global window confines programs.
    addr_width : int
        Bits of a global address.
    """
    kind = kind_of(word)
    if kind is None:
        return ProgramError.KIND
    if word & _RESERVED[kind]:
        return ProgramError.RESERVED
    fields = PROGRAM_WORDS[kind].unpack(word)
    if kind == Kind.KERNEL:
        return _wrong_kernel(**fields)
    if kind == Kind.PE:
        if not fields["count"]:
            return ProgramError.COUNT
        return check_range(fields["address"], fields["count"] * INSTRUCTION_BYTES, window, addr_width)
    if not has_conv and (kind == Kind.CONV or fields.get("engine") == Engine.CONV):
        return ProgramError.MISSING
    if kind == Kind.REGISTER and fields["offset"] not in WRITABLE.get(fields["engine"], ()):
        return ProgramError.REGISTER
    if kind == Kind.BARRIER and _wrong_barrier(fields, smem_bytes):
        return ProgramError.BARRIER
    return None


def _wrong_kernel(first, count, argument, **_):
    """The ProgramError of a call of a kernel, or None."""
    if any(argument[count:]):
        return ProgramError.RESERVED
    return ProgramError.COUNT if count > len(argument) or first + count > _UNIFORM_REGISTERS else None


def _wrong_barrier(fields, smem_bytes):
    limit = 1 if fields["operation"] == BarrierOp.TRY_WAIT else BARRIER_VALUES - 1
    in_memory = fields["barrier"] % BARRIER.bytes == 0 and fields["barrier"] < smem_bytes
    return fields["operation"] not in set(BarrierOp) or fields["value"] > limit or not in_memory


class Loops:
    """Loops of a program that have more rounds, the innermost last."""

    def __init__(self):
        self._stack = []  # index of the word of each loop, and its remaining rounds with the current one

    def next(self, index, count, back):
        """The index after the loop word at ``index``, or a :class:`ProgramError`."""
        if self._stack and self._stack[-1][0] == index:
            self._stack[-1][1] -= 1
            if self._stack[-1][1]:
                return index - back
            self._stack.pop()
            return index + 1
        if not count:
            return ProgramError.COUNT
        if not 1 <= back <= index:
            return ProgramError.LOOP
        if count == 1:
            return index + 1
        if len(self._stack) == LOOPS:
            return ProgramError.LOOP
        self._stack.append([index, count - 1])
        return index - back


class PutWord(NamedTuple):
    """A write to the register ``put`` of the processing engine.

    Attributes
    ----------
    kind : Put
    index : int
        Of the segment or the page entry.
    word : int
        Packed instruction, segment, page entry or command.
    address : int
        Of a page in shared memory.
    """

    kind: Put
    index: int
    word: int
    address: int


class PutRegisters:
    """Registers of the processing engine whose values a write to ``put`` uses.

    Parameters
    ----------
    sizes : PeSizes, or anything with its attributes
    """

    def __init__(self, sizes):
        self._data = [0] * DATA_WORDS
        self._page_address = 0
        pages = sizes.pages
        self._limits = {
            Put.INSTRUCTION: 1, Put.SEGMENT: sizes.segments, Put.PAGE: pages, Put.PAGE_IN: pages, Put.PAGE_OUT: pages,
            Put.PAGE_DROP: pages,
        }  # fmt: skip

    def write(self, name, value):
        """Writes the register ``name``, which is not ``put``."""
        if name == "page_address":
            self._page_address = value
        elif name.startswith("data"):
            self._data[int(name[4:])] = value

    def put(self, kind, index):
        """The :class:`PutWord` of a write to ``put``, or None if the engine refuses it."""
        if index >= self._limits.get(kind, 0):
            return None
        word = sum(value << 32 * number for number, value in enumerate(self._data))
        return PutWord(Put(kind), index, word & (1 << _BITS[kind]) - 1, self._page_address)
