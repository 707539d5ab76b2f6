"""Registers, predicates and bytes that hold what the specification leaves open (docs/pe.md, "State")."""

import numpy as np

from .access import read_columns, read_words, write_words

__all__ = ["OpenState"]

_OPEN_WORD = 0xFFFFFFFF


class OpenState:
    """What instructions make of registers that nothing has written, and of bytes that are open.

    Parameters
    ----------
    registers, predicates : (int, int)
        Shapes of the arrays of the engine.
    memory : OpenBytes
        Of shared memory.

    Attributes
    ----------
    registers, predicates : bool arrays
        Which are open: all of them at first.
    memory : OpenBytes
    """

    def __init__(self, registers, predicates, memory):
        self.registers, self.predicates = np.ones(registers, bool), np.ones(predicates, bool)
        self.memory = memory

    def guards(self, guard, predicate):
        """In which threads it is open whether they take part."""
        return self.predicates[predicate] if guard else np.zeros(len(self.registers), bool)

    def rely_on_address(self, segment, coordinates, threads, unsure, rf, count, what):
        """Notes if it is open what ``threads`` access: ``count`` elements, whose coordinates they have from ``rf`` on.

        Of threads that are ``unsure`` it is open whether they take part.

        Where a coordinate that is not open lies outside, the others do not matter.
        """
        unknown = self.registers[:, rf : rf + segment.rank]
        size = np.array(segment.size)
        outside = ~unknown & (coordinates >= size)
        first = coordinates[:, 0]
        # Elements along dimension 0 wrap modulo 2^32.
        outside[:, 0] = ~unknown[:, 0] & (first >= size[0]) & (first + count <= 1 << 32)
        if ((threads & unknown.any(axis=1) | unsure) & ~outside.any(axis=1)).any():
            self.memory.undecide(what)

    def set_register(self, rd, threads, unsure=False):
        """Notes that a register has been set in ``threads``; it is open where ``unsure`` is true."""
        self.registers[:, rd] = np.where(threads, False, self.registers[:, rd]) | unsure

    def load(self, pages, segment, coordinates, threads, loaded, first):
        """Notes a load of words into the registers from ``first`` on; ``loaded`` says which words were."""
        marks = np.zeros(loaded.shape, bool)
        if self.memory:
            marks = read_words(self.memory.marks, pages, segment, coordinates, threads, loaded.shape[1])[0] != 0
        kept = self.registers[:, first : first + loaded.shape[1]]
        kept[...] = np.where(loaded, marks, kept)

    def store(self, pages, segment, coordinates, threads, first, count, contested):
        """Notes a store of the registers from ``first`` on; at ``contested`` places threads wrote different bytes."""
        sources = self.registers[:, first : first + count] & threads[:, np.newaxis]
        if self.memory or sources.any():
            words = np.where(sources, _OPEN_WORD, 0).astype(np.uint32)
            write_words(self.memory.marks, pages, segment, coordinates, threads, words)
        if contested.size:
            self.memory.spoil(contested)

    def columns(self, pages, segment, coordinates, on, count, dimension):
        """Which columns have an open element, as a bool array."""
        if not self.memory:
            return np.zeros(len(on), bool)
        return read_columns(self.memory.marks, pages, segment, coordinates, on, count, dimension)[0].any(axis=1)
