"""What writes of a program to registers of engines do (docs/core.md, "Registers of engines")."""

from ..spec.core.registers import WRITABLE
from ..spec.core.word import Engine
from ..spec.pe.registers import DATA_WORDS, Put
from ..spec.pe.segment import PAGE_ENTRY, SEGMENT

__all__ = ["EngineRegisters", "PutWord"]

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
