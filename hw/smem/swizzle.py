"""The chunk permutation of shared memory (docs/tmau.md, "Swizzle")."""

from amaranth.hdl import Cat

from tilewright.golden.spec import Swizzle

__all__ = ["chunk_flips"]


def chunk_flips(swizzle, row):
    """What a chunk's place in its line is exclusive-ored with (docs/tmau.md, "Swizzle"): three bits.

    Parameters
    ----------
    swizzle : Value
        ``golden.spec.Swizzle``.
    row : Value
        The line's address in shared memory: byte address >> 7.
    """
    return Cat(row[0] & (swizzle >= Swizzle.B32), row[1] & (swizzle >= Swizzle.B64), row[2] & (swizzle == Swizzle.B128))
