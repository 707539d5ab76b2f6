"""Random kernels: contents of instruction memory and of the lookup memory, and calls."""

from tilewright.golden.pe.checks import instruction_word as word
from tilewright.spec.arithmetic import Operand
from tilewright.spec.pe import Operation, Target

__all__ = ["LONGEST_LOAD", "RandomKernels", "load_entries"]

#: Words of the longest load in a program's body.
LONGEST_LOAD = 3

_LONGEST = 48  # instructions of all kernels of a program
_WORD_BITS = 128
_ENTRIES = 4  # of lookup memory in a word
_NESTED = 2


def _load_words(rng, target, index, words):
    """Instructions that load ``words`` from ``index`` on, in one part or in two, with the words."""
    middle = rng.randint(0, len(words)) if rng.random() < 0.3 else 0
    for part, place in ((words[:middle], 0), (words[middle:], middle)):
        if part:
            step = 1 if target == Target.CODE else _ENTRIES
            yield word(Operation.LOAD, target=target, imm=index + step * place, n=len(part))
            yield from part


def load_entries(rng, params):
    """The same for the whole lookup memory, with random entries."""
    words = [rng.getrandbits(_WORD_BITS) for _ in range(params.lookup_words // _ENTRIES)]
    yield from _load_words(rng, Target.LOOKUP, 0, words)


class RandomKernels:
    """Kernels at the end of instruction memory.

    Parameters
    ----------
    rng : random.Random
    params : PeParams
    simple : callable
        Makes an instruction that may be executed any number of times, at any time.
    count_register : int
        The uniform register with numbers of rounds.
    clean : bool
        Hardly any instruction meets an error.

    Attributes
    ----------
    first : int
        Index of the first word that is loaded; all after it are.
    """

    def __init__(self, rng, params, simple, count_register, clean):
        self._rng, self._params, self._simple = rng, params, simple
        self._count_register, self._clean = count_register, clean
        self._starts = []  # of each kernel, in the list of all words
        self._words = []
        while not self._words or rng.random() < 0.6:
            kernel = [*self._block(0, rng.randint(1, 8)), word(Operation.RETURN)]
            if len(self._words) + len(kernel) > min(_LONGEST, params.kernel_words):
                break
            self._starts.append(len(self._words))
            self._words += kernel
        if not self._words:
            self._starts, self._words = [0], [word(Operation.RETURN)]
        if not clean and len(self._words) > 1 and rng.random() < 0.2:
            self._words.pop()  # the last kernel goes on past the end of instruction memory
        self.first = params.kernel_words - len(self._words)

    def setup(self):
        """The instructions, and words after them, that load the kernels; not clean, perhaps after a refused load."""
        if not self._clean and self._rng.random() < 0.2:
            yield from self.refused()
        yield from _load_words(self._rng, Target.CODE, self.first, self._words)

    def refused(self):
        """A load at a wrong place, with the words that it drops."""
        rng, params = self._rng, self._params
        n, target = rng.randint(1, LONGEST_LOAD), rng.choice(list(Target))
        places = [params.kernel_words - n + 1, params.kernel_words, (1 << 32) - 1]
        if target == Target.LOOKUP:
            places = [params.lookup_words - _ENTRIES * (n - 1), 1, 2, 3, params.lookup_words, (1 << 32) - 4]
        yield word(Operation.LOAD, target=target, imm=rng.choice(places), n=n)
        for _ in range(n):
            yield rng.choice([0, rng.getrandbits(_WORD_BITS), word(Operation.FENCE), word(Operation.CALL)])

    def reload(self):
        """A load of some words of a kernel, as they are."""
        place = self._rng.randrange(len(self._words))
        part = self._words[place : place + self._rng.randint(1, LONGEST_LOAD)]
        yield word(Operation.LOAD, target=Target.CODE, imm=self.first + place, n=len(part))
        yield from part

    def call(self):
        """A call, mostly of a kernel's first instruction."""
        index = self.first + self._rng.choice(self._starts)
        if not self._clean and self._rng.random() < 0.15:
            beyond = [self._params.kernel_words, (1 << 32) - 1, 0x10000 | index]
            index = self._rng.choice([self.first + self._rng.randrange(len(self._words)), *beyond])
        return word(Operation.CALL, imm=index)

    def count(self):
        """The instruction that sets the uniform register with a number of rounds."""
        zero = not self._clean and self._rng.random() < 0.1
        return word(Operation.MOVU, ud=self._count_register, imm=0 if zero else self._rng.randint(1, 3))

    def _block(self, depth, length):
        """Instructions, with whole loops among them; not clean, with controls at wrong places."""
        rng, words = self._rng, []
        for _ in range(length):
            kind = rng.random()
            if kind < 0.15 and (depth < _NESTED or not self._clean):
                words += [self._loop(), *self._block(depth + 1, rng.randint(0, 4)), word(Operation.END)]
            elif kind < 0.2 and not self._clean:
                words.append(self._misplaced())
            elif kind < 0.24:
                words.append(self.count())
            else:
                words.append(self._simple())
        return words

    def _loop(self):
        rng = self._rng
        if rng.random() < 0.3:
            wrong = not self._clean and rng.random() < 0.1
            return word(Operation.LOOP, b=Operand.UNIFORM, rb=255 if wrong else self._count_register)
        return word(Operation.LOOP, b=Operand.IMMEDIATE, imm=rng.randint(1, 3))

    def _misplaced(self):
        rng = self._rng
        call = word(Operation.CALL, imm=self._params.kernel_words - 1)
        load = word(Operation.LOAD, target=rng.choice(list(Target)), n=rng.randint(1, 3))
        return rng.choice([word(Operation.END), word(Operation.RETURN), call, load, self._loop(), self._undecodable()])

    def _undecodable(self):
        """An instruction with the error OPCODE, also one that ends its kernel."""
        operations = [0, Operation.RETURN, Operation.END, Operation.CALL, Operation.LOOP, Operation.MOV]
        return self._rng.choice(operations) | 1 << 90
