"""What the command processor refuses before it carries a word out (docs/core.md, "Errors")."""

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
from tilewright.spec.pe import DATA_WORDS, PAGE_ENTRY, SEGMENT, Put

__all__ = ["INSTRUCTION_BYTES", "EngineRegisters", "Loops", "PutWord", "check_range", "check_word", "kind_of"]

#: Bytes of an instruction of the processing engine.
INSTRUCTION_BYTES = 16

_KIND = PROGRAM_WORDS[Kind.END]["kind"]
#: Bits that must be zero. What else a command may not have the TMAU says.
_RESERVED = {kind: fmt.reserved_mask for kind, fmt in PROGRAM_WORDS.items()} | {Kind.TMAU: 1 << PAGER_TAG_BIT}


def kind_of(word):
    """The kind of a word, or None if it has none."""
    number = word >> _KIND.lsb
    return Kind(number) if number in PROGRAM_WORDS else None


def check_range(address, count, window, addr_width):
    """The first rule that a read of ``count`` bytes of program or instructions breaks, a ProgramError, or None."""
    if address % PROGRAM_ALIGNMENT or address + count > 1 << addr_width:
        return ProgramError.ADDRESS
    return None if window.hold_global(address, count, addr_width) else ProgramError.WINDOW


def check_word(word, has_conv, smem_bytes, window, addr_width):
    """The first rule that a word breaks of those that look at it alone, a ProgramError, or None.

    Parameters
    ----------
    word : int
    has_conv : bool
        Whether there is a convolution engine.
    smem_bytes : int
        Bytes of shared memory.
    window : Windows
        Whose global window programs are confined to.
    addr_width : int
        Bits of a global address.
    """
    kind = kind_of(word)
    if kind is None:
        return ProgramError.KIND
    if word & _RESERVED[kind]:
        return ProgramError.RESERVED
    fields = PROGRAM_WORDS[kind].unpack(word)
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


def _wrong_barrier(fields, smem_bytes):
    most = 1 if fields["operation"] == BarrierOp.TRY_WAIT else BARRIER_VALUES - 1
    in_memory = fields["barrier"] % BARRIER.bytes == 0 and fields["barrier"] < smem_bytes
    return fields["operation"] not in set(BarrierOp) or fields["value"] > most or not in_memory


class Loops:
    """Loops that have gone back and are not done, the innermost last."""

    def __init__(self):
        self._stack = []  # of a loop's word and its rounds left, that under way included

    def next(self, index, count, back):
        """Where a program goes on behind the loop word at ``index``, as an index; or the :class:`ProgramError`."""
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


#: Bits of what is put, by its kind.
_BITS = {Put.INSTRUCTION: 128, Put.SEGMENT: SEGMENT.bits, Put.PAGE: PAGE_ENTRY.bits,
         Put.PAGE_IN: 512, Put.PAGE_OUT: 512, Put.PAGE_DROP: 0}  # fmt: skip


class PutWord:
    """What the processing engine is handed over its registers.

    Attributes
    ----------
    kind : Put
    index : int
        Of the segment or the page entry.
    word : int
        Packed: instruction, segment, page entry or command.
    address : int
        Where a page comes to lie.
    """

    def __init__(self, kind, index, word, address):
        self.kind, self.index, self.word, self.address = kind, index, word, address


class EngineRegisters:
    """Registers of engines that a program writes, as far as they matter: interrupts and counters are not modelled.

    Parameters
    ----------
    sizes : PeSizes, or anything with its attributes
        Of the processing engine.
    """

    def __init__(self, sizes):
        self._data = [0] * DATA_WORDS
        self._page_address = 0
        pages = sizes.pages
        self._limits = {Put.INSTRUCTION: 1, Put.SEGMENT: sizes.segments, Put.PAGE: pages, Put.PAGE_IN: pages,
                        Put.PAGE_OUT: pages, Put.PAGE_DROP: pages}  # fmt: skip

    def write(self, engine, offset, value):
        """Writes a register, one of ``WRITABLE``.

        Returns what is handed to the processing engine, a :class:`PutWord`; True if the engine's error record is
        forgotten; False if the engine refuses the value; otherwise None.
        """
        register = WRITABLE[engine][offset]
        fields = register.format.unpack(value)
        if register.name == "control":
            return True if fields["clear_error"] else None
        if engine == Engine.PE and register.name == "put":
            return self._put(**fields)
        if register.name == "page_address":
            self._page_address = value
        elif register.name.startswith("data"):
            self._data[int(register.name[4:])] = value
        return None

    def _put(self, kind, index):
        if index >= self._limits.get(kind, 0):
            return False
        word = sum(value << 32 * number for number, value in enumerate(self._data))
        return PutWord(Put(kind), index, word & (1 << _BITS[kind]) - 1, self._page_address)
