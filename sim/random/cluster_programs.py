"""Random garbage for the command processors of two cores: programs whose commands name the other core too."""

import random
from typing import NamedTuple

import numpy as np

from tilewright.golden import delivery_bits, program_bytes
from tilewright.golden.core.checks import kind_of
from tilewright.golden.spec.core.word import PROGRAM_WORDS, WORD_BYTES, Kind

from .programs import GLOBAL_BYTES, PROGRAM_AT, garbage_programs

__all__ = ["GarbagePair", "garbage_pairs"]

#: Of the second program, behind the first one and the instructions of both.
_OTHER_AT = GLOBAL_BYTES - 24 * WORD_BYTES
#: Bits of a loop's count that are too many for a program to end soon.
_ROUNDS = PROGRAM_WORDS[Kind.LOOP].pack(count=(1 << 32) - 4)


class GarbagePair(NamedTuple):
    """Programs of two cores: global memory before them (uint8), and of each its address and number of words."""

    gmem: np.ndarray
    starts: list


def garbage_pairs(seed, params, smem_bytes, count):
    """Yields so many pairs; a function of its arguments alone, which are those of ``garbage_programs``."""
    rng = random.Random(seed)
    programs = garbage_programs(seed, params, smem_bytes, 2 * count)
    for first, second in zip(programs, programs, strict=True):
        gmem, starts = first.gmem, []
        for address, program in ((PROGRAM_AT, first), (_OTHER_AT, second)):
            raw = program_bytes([_changed(rng, word) for word in _words(program)])[: GLOBAL_BYTES - address]
            gmem[address:][: len(raw)] = raw
            starts.append((address, program.words))
        yield GarbagePair(gmem, starts)


def _words(program):
    raw = program.gmem[PROGRAM_AT:].tobytes()
    return [int.from_bytes(raw[WORD_BYTES * place :][:WORD_BYTES], "little") for place in range(program.words)]


def _changed(rng, word):
    """The word: a command may bring bytes to other cores, or read their shared memory; and no loop has many rounds."""
    kind = kind_of(word)
    if kind == Kind.LOOP:
        return word & ~_ROUNDS
    if kind != Kind.TMAU or rng.random() < 0.3:
        return word
    cores = rng.choice([None, 1, 2, 3, 3, 3, rng.getrandbits(16)])
    source = rng.choice([None, None, 0, 1, rng.randrange(16)])
    return word | delivery_bits(cores, source)
