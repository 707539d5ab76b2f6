"""A kernel for any function of two bytes, which is a table of all pairs (docs/network.md, "Kernels")."""

import numpy as np

from tilewright.sim.kernels.text import kernel_words

from .kernels import Blocks, Kernel, Operand, Table, UnfitError, engine_of, fitting

__all__ = ["pairs_kernel"]

_TEXT = """
// Thread i computes rows i, i + T, ….
// ur0  segment a: bytes, columns × rows; results take their place      ur1  segment b: bytes, the same size
// ur2  segment of the table: bytes, 256 × 256: the result of a and b is at column b of row a
// ur3  blocks of T rows   ur4  chunks of 4 columns   ur5  T
// r0, r1: column and row; r4, r5: four bytes of a and of b; r8 to r15: four places in the table
mov r1, tid
mov r2, 0
loop ur3
  mov r0, 0
  ld r4, ur0:rf0:0, 1
  ld r5, ur1:rf0:0, 1
  loop ur4
    xbu.0 r9, r4, 0
    xbu.0 r8, r5, 0
    xbu.1 r11, r4, 0
    xbu.1 r10, r5, 0
    xbu.2 r13, r4, 0
    xbu.2 r12, r5, 0
    xbu.3 r15, r4, 0
    xbu.3 r14, r5, 0
    ld.e r16, ur2:rf8:0, 1
    ld.e r17, ur2:rf10:0, 1
    ld.e r18, ur2:rf12:0, 1
    ld.e r19, ur2:rf14:0, 1
    ld r4, ur0:rf0:4, 1
    ld r5, ur1:rf0:4, 1
    packbu.0 r20, r16, r17, r2
    packbu.1 r20, r18, r19, r20
    st r20, ur0:rf0:0, 1
    add r0, r0, 4
  end
  add r1, r1, ur5
end
return
"""
#: Shared memory for two bands of one row of a page each.
_LEAST = 2 * 128
#: Expected cycles of sixteen columns of a row in each thread, of a block, and of a call.
_CYCLES = 420


def pairs_kernel(node, width, x_dtypes, y_dtype, pe, room):
    """The :class:`Kernel` of a ``Pairs`` of rows of ``width`` bytes; UnfitError if there is none for an engine."""
    threads = engine_of(pe).threads
    if node.table.size + _LEAST > room:
        raise UnfitError(f"its table of {node.table.size:,} results does not fit {room:,} bytes of shared memory")
    code, words = tuple(kernel_words(_TEXT, {})), -(-width // 4)
    constants = (np.ascontiguousarray(node.table).view(np.uint32).reshape(-1),)
    arguments = (Operand(0, "uint8"), Operand(1, "uint8"), Table(0), Blocks(threads), words, threads)
    cycles = 60 + _CYCLES * words // 4
    return fitting(Kernel("pairs", code, (), constants, arguments, width, (1, 1, 1), threads, cycles), pe)
