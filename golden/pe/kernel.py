"""Kernels of the processing engine: its instruction memory and lookup memory, calls, loops and loads.

Specification: docs/pe.md, "Kernels".
"""

import numpy as np

from tilewright.spec.arithmetic import Operand
from tilewright.spec.pe import Operation, PeError, Target

__all__ = ["CONTROLS", "Kernels"]

#: Operations that decide which instruction of a kernel is the next one; after an error of theirs the kernel ends.
CONTROLS = frozenset({Operation.CALL, Operation.RETURN, Operation.LOOP, Operation.END})

_NESTED = 2  # loops
_ENTRIES = 4  # of lookup memory in a word
_REGISTER = 0xFFFF


class Kernels:
    """Instruction memory, lookup memory, and the place in the current kernel.

    Parameters
    ----------
    sizes : PeSizes, or anything with its attributes

    Attributes
    ----------
    code : list
        The packed instructions, None before one is loaded.
    lookup : uint32 array
        The entries of the lookup memory.
    lookup_open : bool array
        Which of them were not loaded.
    index : int or None
        Of the next instruction of the kernel that is executed; None outside kernels.
    """

    def __init__(self, sizes):
        self.code = [None] * sizes.kernel_words
        self.lookup = np.zeros(sizes.lookup_words, np.uint32)
        self.lookup_open = np.ones(sizes.lookup_words, bool)
        self.index = None
        self._loops = []  # the first instruction of each body, and its remaining rounds with the current one
        self._load = None  # a generator that takes the words after a load

    @property
    def active(self):
        """Whether a kernel is executed."""
        return self.index is not None

    @property
    def is_past_end(self):
        """Whether the kernel has left instruction memory."""
        return self.active and self.index >= len(self.code)

    @property
    def register(self):
        """The register in an error record of the current instruction."""
        return (self.index or 0) & _REGISTER

    def end(self):
        """The kernel ends."""
        self.index = None
        self._loops.clear()

    def refusal(self, operation, values, uniform):
        """The code and the register of the error CONTROL of an instruction, or ``PeError.NONE`` and 0."""
        wrong = False
        if operation == Operation.CALL:
            if not self.active and values["imm"] >= len(self.code):
                return PeError.CONTROL, values["imm"] & _REGISTER
            wrong = self.active
        elif operation in CONTROLS:
            wrong = not self.active
            if operation == Operation.END:
                wrong = wrong or not self._loops
            elif operation == Operation.LOOP:
                wrong = wrong or len(self._loops) == _NESTED or not _rounds(uniform, **values)
        elif operation == Operation.LOAD:
            wrong = self.active or self._wrong_load(**values)
        return (PeError.CONTROL, self.register) if wrong else (PeError.NONE, 0)

    def _wrong_load(self, target, n, imm, **_):
        if target == Target.CODE:
            return imm + n > len(self.code)
        return imm % _ENTRIES != 0 or imm + _ENTRIES * n > len(self.lookup)

    def execute(self, operation, values, uniform):
        """Executes one of ``CONTROLS`` that has no error."""
        if operation == Operation.CALL:
            self.index = values["imm"]
        elif operation == Operation.RETURN:
            self.end()
        elif operation == Operation.LOOP:
            self.index += 1
            self._loops.append([self.index, _rounds(uniform, **values)])
        else:
            self._loops[-1][1] -= 1
            first, rounds = self._loops[-1]
            self.index = first if rounds else self.index + 1
            if not rounds:
                self._loops.pop()

    def load(self, target, n, imm, *, dropped=False, **_):
        """The next ``n`` words of the stream belong to a load; if it is ``dropped``, they go nowhere."""
        self._load = self._words(target, n, imm, dropped)
        next(self._load)

    def take(self, word):
        """Takes ``word`` if it belongs to a load; returns whether it does."""
        if self._load is None:
            return False
        if not self._load.send(word):
            self._load = None
        return True

    def _words(self, target, count, index, dropped):
        """Receives the words of a load; yields whether more belong to it."""
        word = yield True
        for number in range(count):
            if not dropped and target == Target.CODE:
                self.code[index + number] = word
            elif not dropped:
                place = slice(index + _ENTRIES * number, index + _ENTRIES * (number + 1))
                self.lookup[place] = [word >> 32 * entry & 0xFFFFFFFF for entry in range(_ENTRIES)]
                self.lookup_open[place] = False
            word = yield number + 1 < count


def _rounds(uniform, b, rb, imm, **_):
    """Rounds of a LOOP."""
    return uniform[rb] if b == Operand.UNIFORM else imm
