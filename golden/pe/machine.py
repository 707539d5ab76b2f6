"""A processing engine without cycles: registers, predicates, and instructions that complete one after another.

Specification: docs/pe.md.
"""

from typing import NamedTuple

import numpy as np

from tilewright.spec import BARRIER
from tilewright.spec.cluster import MOST_CORES
from tilewright.spec.pe import INSTRUCTIONS, PAGE_ENTRY, SEGMENT, Compare, MmType, Operation, PeError, Source

from ..arguments import integer, listed, packed
from ..dot_product import dot
from ..memory import OpenBytes, check_shared
from ..smem import Barrier
from .access import OpenState, elements_of_word, lowest, read_columns, read_words, write_words
from .checks import PREDICATES, decode, refusal
from .kernel import CONTROLS, Kernels
from .lanes import execute_arithmetic
from .segment import PageTable, Segment, wrong_segment
from .sizes import sizes_or_default

__all__ = ["BarrierNotCompleteError", "Fault", "Pe"]

_COMPARE = {
    Compare.EQ: np.equal, Compare.NE: np.not_equal, Compare.LT: np.less, Compare.LE: np.less_equal,
    Compare.GT: np.greater, Compare.GE: np.greater_equal, Compare.LTU: np.less, Compare.LEU: np.less_equal,
    Compare.GTU: np.greater, Compare.GEU: np.greater_equal,
}  # fmt: skip


class BarrierNotCompleteError(RuntimeError):
    """A bar.wait for a phase that is not complete: hardware would wait for it."""


class Fault(NamedTuple):
    """An error record: the first error of instruction ``number``, in the threads ``first`` to ``last``."""

    code: PeError
    number: int
    first: int
    last: int
    register: int


class Pe:
    """A processing engine; each instruction is complete when :meth:`execute` returns.

    Parameters
    ----------
    smem : uint8 array
        Shared memory, changed in place.
    sizes : PeSizes, or anything with its attributes
    core : int
        Number of its core in the cluster (docs/cluster.md, "Programs").
    open_bytes : OpenBytes or None
        Bytes of shared memory that the specification leaves open, if other engines share this record.

    Attributes
    ----------
    core : int
    registers : uint32 array of shape (threads, regs)
        Zeros at first; the specification leaves them open.
    open : OpenState
        The registers, predicates and bytes of shared memory that the specification leaves open.
    predicates : bool array of shape (8, threads)
        False at first; the specification leaves them open.
    uniform : list
        The number in each uniform register, None before it is set.
    kernels : Kernels
        Instruction memory, lookup memory, and the place in the current kernel.
    segments : list
        Each :class:`Segment`, None if it is wrong or was not written.
    pages : PageTable
    faults : list of Fault
        One for each instruction with an error, in program order.
    number : int
        Of the next instruction.
    halts : int
        Executed halts; a program may go on after one.
    stopped : bool
        Whether all instructions are refused (docs/cluster.md, "Stopping one core").
    """

    def __init__(self, smem, sizes=None, core=0, open_bytes=None):
        check_shared(smem)
        self.core = integer("core", core, 0, MOST_CORES - 1)
        self.smem = smem
        self.sizes = sizes = sizes_or_default(sizes)
        self.registers = np.zeros((sizes.threads, sizes.regs), np.uint32)
        self.predicates = np.zeros((PREDICATES, sizes.threads), bool)
        open_bytes = OpenBytes(smem) if open_bytes is None else open_bytes
        self.open = OpenState(self.registers.shape, self.predicates.shape, open_bytes)
        self.uniform = [None] * sizes.uniform_regs
        self.kernels = Kernels(sizes)
        self.segments = [None] * sizes.segments
        self.pages = PageTable(sizes.pages)
        self.faults = []
        self.number = 0
        self.halts = 0
        self.stopped = False
        self._called = None  # the last instruction outside kernels, and the number of faults before it

    def write_segment(self, index, word):
        """A processor writes segment ``index``, a packed word; a wrong segment is refused when it is used."""
        index, word = self._entry("segment", index, self.sizes.segments, word, SEGMENT)
        self.segments[index] = None if wrong_segment(word, self.sizes.pages) else Segment.unpack(word)

    def write_page(self, index, word):
        """A processor, or the pager, writes page entry ``index``, a packed word."""
        self.pages.write(*self._entry("page entry", index, self.sizes.pages, word, PAGE_ENTRY))

    @staticmethod
    def _entry(name, index, count, word, fmt):
        return integer(f"the number of a {name}", index, 0, count - 1), packed(name, word, fmt.bits)

    def run(self, words):
        """Executes all of ``words``."""
        for word in listed("words", words):
            self.execute(word)

    def execute(self, word):
        """Executes one packed instruction, a CALL with its whole kernel, or takes a word after a LOAD.

        Returns its :class:`Fault`, the first one of a kernel, or None. Raises :class:`BarrierNotCompleteError` or
        ``PageNotLoadedError``, and changes nothing, if hardware would wait. If an instruction of a kernel waits, the
        kernel stays before it, and executing the same CALL again continues there.
        """
        word, kernels = packed("word", word, INSTRUCTIONS[Operation.HALT].bits), self.kernels
        if kernels.take(word):
            return None
        if kernels.active and word != self._called[0]:
            raise ValueError(f"a kernel waits at index {kernels.index}: its call must be executed again, not {word:#x}")
        if not kernels.active:
            self._called = word, len(self.faults)
            self.step(word)
        while kernels.active:
            self.step(self._next_of_kernel())
        faults = self.faults[self._called[1] :]
        return faults[0] if faults else None

    def _next_of_kernel(self):
        """The next word of the kernel; None after the last one of instruction memory."""
        if self.kernels.is_past_end:
            return None
        word = self.kernels.code[self.kernels.index]
        if word is None:
            self.open.memory.undecide(f"what instruction {self.number} is")
        return word or 0

    def step(self, word):
        """Executes one instruction, of a kernel or of the stream; returns its :class:`Fault`, or None.

        ``word`` is None after the last instruction of instruction memory.
        """
        kernels, values = self.kernels, word and decode(word)
        opcode, inside, register = word and word & 0xFF, kernels.active, 0
        if self.stopped:
            code = PeError.STOPPED
        elif word is None:
            code, register = PeError.CONTROL, kernels.register
        else:
            code, register = refusal(word, self)
        if code == PeError.NONE:
            fields = {name: value for name, value in values.items() if name != "opcode"}
            fault = self._perform(Operation(opcode), fields)
        else:
            fault = Fault(code, self.number, 0, self.sizes.threads - 1, register)
            if opcode == Operation.LOAD and values and not inside and "alu" in self.sizes.units:
                kernels.load(**values, dropped=True)
        if inside and (code == PeError.STOPPED or word is None or (code and opcode in CONTROLS)):
            kernels.end()
        elif inside and opcode not in CONTROLS:
            kernels.index += 1
        self.number += 1
        if fault is not None:
            self.faults.append(fault)
        return fault

    def _perform(self, operation, fields):
        """Executes an instruction that nothing refuses; returns its :class:`Fault`, or None."""
        if operation in CONTROLS:
            return self.kernels.execute(operation, fields, self.uniform)
        if operation == Operation.LOAD:
            return self.kernels.load(**fields)
        return getattr(self, f"_{operation.name.lower()}")(**fields)

    def taking_part(self, guard, predicate):
        """The threads that take part, a bool each."""
        return self.predicates[predicate].copy() if guard else np.ones(self.sizes.threads, bool)

    def _address(self, guard, predicate, ur, rf, imm, words=None, element=False):
        """The segment, and the coordinates of each thread's first element; notes open addresses.

        A thread accesses one element, or ``words`` words of elements, or of one ``element`` each.
        """
        segment = self.segments[self.uniform[ur]]
        coordinates = self.registers[:, rf : rf + segment.rank].astype(np.int64)
        coordinates[:, 0] = coordinates[:, 0] + imm & 0xFFFFFFFF
        threads, unsure = self.taking_part(guard, predicate), self.open.guards(guard, predicate)
        count = words * elements_of_word(segment, element) if words else 1
        name = f"what instruction {self.number} accesses"
        self.open.rely_on_address(segment, coordinates, threads, unsure, rf, count, name)
        return segment, coordinates

    def _fault(self, codes, register):
        """The record of the errors of threads, a code each; None if there is none."""
        if not codes.any():
            return None
        code = codes[codes != PeError.NONE].min()
        threads = np.flatnonzero(codes == code)
        return Fault(PeError(code), self.number, int(threads[0]), int(threads[-1]), register)

    def _mm(self, guard, predicate, ka, kb, transpose, type, rc, ra, rf, ur, imm):  # noqa: A002 - a field
        sizes, type = self.sizes, MmType(type)  # noqa: A001 - a field
        k = 4 * sizes.factor_regs // type.bytes
        segment, coordinates = self._address(guard, predicate, ur, rf, imm)
        on = self.taking_part(guard, predicate) & segment.inside(coordinates)
        product = rc + np.arange(sizes.threads) // ka
        misaligned = on & (coordinates[:, 0] % k != 0) & (not transpose)
        codes = np.where(misaligned, int(PeError.ALIGNMENT), 0)
        codes = np.where(on & (product >= sizes.regs), int(PeError.PRODUCT), codes)
        columns, access_codes = read_columns(
            self.smem, self.pages, segment, coordinates, on & (codes == 0), kb * k, transpose
        )
        codes = np.where(codes == 0, access_codes, codes)
        on &= codes == 0
        open_columns = self.open.columns(self.pages, segment, coordinates, on, kb * k, transpose)

        groups = sizes.threads // (ka * kb)
        view = self.registers[: groups * ka * kb].reshape(groups, ka, kb, sizes.regs)
        # Elements of A by group and qa, in the order of qb; read before any product changes.
        rows = np.ascontiguousarray(view[..., ra : ra + sizes.factor_regs].astype("<u4")).view(f"<u{type.bytes}")
        rows = rows.reshape(groups, ka, kb * k)
        open_view = self.open.registers[: groups * ka * kb].reshape(groups, ka, kb, sizes.regs)
        open_rows = open_view[..., ra : ra + sizes.factor_regs].any(axis=(2, 3))
        for qa in range(ka):
            threads = np.flatnonzero(on[qa::ka]) * ka + qa
            target = np.s_[:, qa, 0, product[threads]]
            view[target] = dot(view[target], rows[:, qa, np.newaxis], columns[threads], type)
            open_view[target] |= open_columns[threads] | open_rows[:, qa, np.newaxis]
        return self._fault(codes, rc)

    def _ld(self, guard, predicate, element, rd, n, rf, ur, imm):
        threads = self.taking_part(guard, predicate)
        address = self._address(guard, predicate, ur, rf, imm, n, element)
        words, codes = read_words(self.smem, self.pages, *address, threads, n, element)
        targets, loaded = self.registers[:, rd : rd + n], threads[:, np.newaxis] & (codes == 0)
        targets[...] = np.where(loaded, words, targets)
        self.open.load(self.pages, *address, threads, loaded, rd, element)
        return self._fault(lowest(codes), rd)

    def _st(self, guard, predicate, element, rs, n, rf, ur, imm):
        threads = self.taking_part(guard, predicate)
        words, address = self.registers[:, rs : rs + n], self._address(guard, predicate, ur, rf, imm, n, element)
        codes, contested = write_words(self.smem, self.pages, *address, threads, words, element)
        self.open.store(self.pages, *address, threads, rs, n, contested, element)
        return self._fault(lowest(codes), rs)

    def _mov(self, guard, predicate, source, core, rd, imm):
        values = np.arange(self.sizes.threads) if source == Source.THREAD else imm | core * self.core
        threads = self.taking_part(guard, predicate)
        self.registers[:, rd] = np.where(threads, values, self.registers[:, rd])
        self.open.set_register(rd, threads, self.open.guards(guard, predicate))

    def _movu(self, ud, imm):
        self.uniform[ud] = imm

    def _setp(self, guard, predicate, pd, source, compare, rs, imm):
        sizes = self.sizes
        values = np.arange(sizes.threads, dtype=np.uint32) if source == Source.THREAD else self.registers[:, rs]
        kind = np.uint32 if compare >= Compare.LTU else np.int32
        result = _COMPARE[compare](values.view(kind), np.uint32(imm).view(kind))
        threads = self.taking_part(guard, predicate)
        unsure = self.open.guards(guard, predicate)
        if source != Source.THREAD:
            unsure = unsure | self.open.registers[:, rs] & threads
        self.open.predicates[pd] = np.where(threads, False, self.open.predicates[pd]) | unsure
        self.predicates[pd] = np.where(threads, result, self.predicates[pd])

    def _arith(self, **fields):
        execute_arithmetic(self, **fields)

    def _bar_wait(self, parity, imm):
        name = f"the barrier that instruction {self.number} waits for"
        self.open.memory.rely_on(slice(imm, imm + BARRIER.bytes), name)
        if not Barrier.read(self.smem, imm).try_wait(parity):
            raise BarrierNotCompleteError(f"the phase of parity {parity} of the barrier at {imm:#x} is not complete")

    def _fence(self):
        pass

    def _halt(self):
        self.halts += 1
