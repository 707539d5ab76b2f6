"""Runs products on the processing engine, in programs that fit shared memory, and compares every one."""

import ml_dtypes
import numpy as np

from tilewright.golden.dot_product import dot
from tilewright.golden.pe.gemm_plan import Plan
from tilewright.golden.pe.program import gemm_program
from tilewright.spec.pe import MmType

from ..session.products import PeProgram
from .findings import Totals, Worker

__all__ = ["Multiplier", "expected_product"]

_WORD_BYTES = 4  # of an element of C

_KINDS = {
    (np.int8, np.int8): MmType.S8S8,
    (np.int8, np.uint8): MmType.S8U8,
    (np.uint8, np.int8): MmType.U8S8,
    (np.uint8, np.uint8): MmType.U8U8,
    (np.int16, np.int16): MmType.S16S16,
    (np.int16, np.uint16): MmType.S16U16,
    (np.uint16, np.int16): MmType.U16S16,
    (np.uint16, np.uint16): MmType.U16U16,
    (np.float16, np.float16): MmType.F16,
    (ml_dtypes.bfloat16, ml_dtypes.bfloat16): MmType.BF16,
}


class Multiplier(Worker):
    """Runs products of matrices as programs, one after the other, each with all of its operands in shared memory.

    All of shared memory is written before a program. After it only the result may have changed: it must equal, bit for
    bit, numpy's result for integers and the golden dot product for floats. No instruction may report an error.

    Parameters and attributes are those of a ``Worker``, whose session is of a core with a processing engine alone.

    Attributes
    ----------
    params : PeParams
    """

    def __init__(self, session, **options):
        super().__init__(session, **options)
        self.params = session.params.pe

    def takes(self, a, b):
        """Whether the engine multiplies elements of these numpy types."""
        return _KINDS[a, b].family in self.params.types

    def product(self, a, b, c=None, *, case=None, **options):
        """Computes A × B, or C + A × B, and returns the result from shared memory, as raw 32-bit words.

        If operands and result do not fit shared memory together, the product is cut in two halves, and so on. If K is
        cut, the second half is added to the result of the first one.

        Parameters
        ----------
        a, b : arrays of shape (m, k) and (k, n)
            Their types determine the ``mm``.
        c : uint32 array of shape (m, n), optional
        case : str, optional
            Name of its totals in ``cases``.
        options : optional
            Options of ``gemm_program``.
        """
        kind = _KINDS[a.dtype.type, b.dtype.type]
        size = self.params.smem.size_bytes
        try:
            program = gemm_program(_raw(a), _raw(b), kind, c=c, sizes=self.params, size_bytes=size, **options)
        except ValueError:
            if a.shape == b.shape == (1, 1):  # it is not the size
                raise
            return self._cut(a, b, c, case=case, **options)
        return self._run(program, expected_product(a, b, c, Plan(program.gemm, self.params).step), case)

    def _cut(self, a, b, c, **options):
        """The product in two halves: along the longer side of C or, if A or B is larger than C, along K."""
        (m, k), n = a.shape, b.shape[1]
        if m == n == 1 or a.itemsize * k * max(m, n) > _WORD_BYTES * m * n:
            first, second = _halves(k)
            return self.product(a[:, second], b[second], self.product(a[:, first], b[first], c, **options), **options)
        if m >= n:
            return np.concatenate([self.product(a[part], b, _part(c, part), **options) for part in _halves(m)])
        parts = [self.product(a, b[:, part], _part(c, np.s_[:, part]), **options) for part in _halves(n)]
        return np.concatenate(parts, axis=1)

    def _run(self, program, expected, case):
        """Runs a program, compares it, adds to the totals; returns the result."""
        session, placement = self.session, program.placement
        words = PeProgram.of_product(program)
        session.shared_memory.write(0, placement.smem)
        run = session.run(program=words.words, segments=words.segments, pages=words.pages)
        seen = session.shared_memory.read(0, len(placement.smem))
        placement.put(program.c, expected)

        one = Totals("MACs", parts=1, work=_macs(program.gemm), cycles=run.span, limit=self._limit(program.gemm))
        where = f"after {self.totals.parts} programs"
        one.require(seen, placement.smem, f"shared memory {where}")
        one.problems += [f"{fault.code.name} of instruction {fault.number} {where}" for fault in run.faults]
        self.count(one, case)
        return program.result(seen)

    def _limit(self, gemm):
        """Cycles of the product if all multipliers of all threads are busy."""
        return -(-_macs(gemm) * gemm.type.bytes // (self.params.threads * self.params.unit_bytes))


def expected_product(a, b, c, step):
    """C + A × B as raw 32-bit words: integers exactly, floats with one rounding for every ``step`` elements of K."""
    sums = np.zeros((len(a), b.shape[1]), np.uint32) if c is None else c
    kind = _KINDS[a.dtype.type, b.dtype.type]
    if not kind.is_float:
        return (sums + a.astype(np.int64) @ b.astype(np.int64)).astype(np.uint32)
    rows, columns = _raw(a)[:, np.newaxis], _raw(b).T[np.newaxis]
    for first in range(0, a.shape[1], step):
        issue = np.s_[..., first : first + step]
        sums = dot(sums, rows[issue], columns[issue], kind)
    return sums


def _raw(array):
    return array.view(np.uint8 if array.itemsize == 1 else np.uint16)


def _macs(gemm):
    return gemm.m * gemm.n * gemm.k


def _halves(count):
    """The first half and the rest of ``count`` elements."""
    return slice(0, (count + 1) // 2), slice((count + 1) // 2, count)


def _part(c, index):
    return None if c is None else c[index]
