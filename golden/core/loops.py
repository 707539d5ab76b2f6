"""Loops of a program: which are under way, and how many rounds each has left (docs/core.md, "Loops")."""

from ..spec.core.errors import ProgramError
from ..spec.core.word import LOOPS

__all__ = ["Loops"]


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
