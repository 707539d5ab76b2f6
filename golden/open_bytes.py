"""Bytes of a memory that the specification leaves open (docs/golden.md, "What is left open")."""

import numpy as np

__all__ = ["OpenBytes", "whole_elements"]

_ANY = 255  # mark of a byte that may hold anything


def whole_elements(marks, element_bytes):
    """``marks``, bools whose last axis holds whole elements, with all bytes marked of an element of which one is."""
    elements = marks.reshape(*marks.shape[:-1], -1, element_bytes)
    return elements.any(axis=-1).repeat(element_bytes, axis=-1)


class OpenBytes:
    """Which bytes of a memory the specification leaves open, and what they may hold.

    An open byte may hold anything; or it belongs to an element that is either as the memory has it or as it was before,
    as a whole. Places are indices of bytes in the memory, in arrays of any shape.

    Parameters
    ----------
    memory : uint8 array
        The memory itself, which the model goes on changing.

    Attributes
    ----------
    undecided : str or None
        The first thing that depended on an open byte beyond the contents of memory: after it nothing is certain.
    """

    def __init__(self, memory):
        self._memory = memory
        self._marks = None  # 0, _ANY, or the bytes of an element of which there is a choice
        self._kept = None  # the other choice
        self.undecided = None

    def __bool__(self):
        """Whether a byte is open."""
        return self._marks is not None and bool(self._marks.any())

    def at(self, places):
        """Which of the bytes at ``places`` are open, as a bool array."""
        return np.zeros(np.shape(places), bool) if self._marks is None else self._marks[places] != 0

    def spoil(self, places):
        """The bytes at ``places`` may hold anything from now on."""
        self._allocate()
        self._marks[places] = _ANY

    def write(self, places, marks=None, element_bytes=0):
        """Notes that bytes have been written.

        Parameters
        ----------
        places : integers
        marks : bool array or None
            Of the same shape: which of them come from open bytes; None: none.
        element_bytes : int
            0: they were written as they are. Otherwise elements of so many bytes were made of old and new ones, and the
            last axis holds whole elements.
        """
        if not self and (marks is None or not marks.any()):
            return
        self._allocate()
        marks = np.zeros(np.shape(places), bool) if marks is None else marks
        if element_bytes:
            marks = whole_elements(marks | self.at(places), element_bytes)
        self._marks[places] = np.where(marks, _ANY, 0)

    def choose(self, places, kept):
        """Each element at ``places``, elements by bytes, is as it is or as ``kept`` has it. What is open stays open."""
        closed = ~self.at(places).any(axis=-1)
        self._allocate()
        self._marks[places[closed]] = places.shape[-1]
        self._kept[places[closed]] = kept[closed]

    @property
    def marks(self):
        """A uint8 array as large as the memory: 0 for bytes that are not open. Who opens a byte writes 255 there."""
        self._allocate()
        return self._marks

    def rely_on(self, places, what):
        """Notes it if ``what``, words for a sentence, depends on open bytes among those at ``places``."""
        if self.at(places).any():
            self.undecide(what)

    def undecide(self, what):
        """Notes that ``what``, words for a sentence, depends on what is open."""
        self.undecided = self.undecided or f"{what} depends on what is open"

    def wrong(self, seen):
        """Which bytes of ``seen`` the specification does not allow, as a bool array.

        ``seen`` is another such memory, or as much of its beginning as is to be compared.
        """
        count = len(seen)
        differs = seen != self._memory[:count]
        if not self:
            return differs
        marks, kept = self._marks[:count], self._kept[:count]
        wrong = differs & (marks == 0)
        for size in np.unique(marks[(marks != 0) & (marks != _ANY)]).tolist():
            chosen = marks == size
            element = np.flatnonzero(chosen) // size
            # Of an element that was written in part since, what is left of it still is of one of both.
            torn = np.zeros(count // size + 1, bool), np.zeros(count // size + 1, bool)
            torn[0][element[differs[chosen]]] = True
            torn[1][element[(seen != kept)[chosen]]] = True
            wrong[chosen] = (torn[0] & torn[1])[element] & differs[chosen]
        return wrong

    def settled(self, seen):
        """``seen``, as of :meth:`wrong`, with what this memory has wherever a byte is open; a new array."""
        count = len(seen)
        return np.where(self.at(slice(count)), self._memory[:count], seen) if self else seen.copy()

    def _allocate(self):
        if self._marks is None:
            self._marks, self._kept = np.zeros_like(self._memory), np.zeros_like(self._memory)
