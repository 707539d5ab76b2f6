"""Programs of networks with a few wrong bits, as of a memory that has lost them."""

from tilewright.spec.core import WORD_BYTES

__all__ = ["flip_bits"]


def flip_bits(rng, memory, starts, core):
    """A copy of global memory in which one to three bits of the program of a core are flipped.

    Parameters
    ----------
    rng : numpy.random.Generator
    memory : uint8 array
    starts : sequence of (int, int)
        For each core the address of its program and the number of words.
    core : int
    """
    address, words = starts[core]
    damaged = memory.copy()
    for bit in rng.choice(8 * WORD_BYTES * words, int(rng.integers(1, 4)), replace=False).tolist():
        damaged[address + bit // 8] ^= 1 << bit % 8
    return damaged
