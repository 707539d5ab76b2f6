"""What the command processor refuses before it carries a word out (docs/core.md, "Errors")."""

from ..spec import BARRIER, BarrierOp
from ..spec.core.errors import ProgramError
from ..spec.core.registers import WRITABLE
from ..spec.core.word import BARRIER_VALUES, PAGER_TAG_BIT, PROGRAM_ALIGNMENT, PROGRAM_WORDS, Engine, Kind

__all__ = ["INSTRUCTION_BYTES", "check_range", "check_word", "kind_of"]

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
