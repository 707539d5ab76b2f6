"""A processing engine without cycles: registers, predicates, and instructions that complete one after another.

Specification: docs/pe.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tilewright.spec import BARRIER
from tilewright.spec.cluster import MOST_CORES
from tilewright.spec.pe import (
    INSTRUCTIONS,
    MEMORY_OPERATIONS,
    MM_FAMILIES,
    PAGE_ENTRY,
    SEGMENT,
    Compare,
    MmType,
    Operation,
    PeError,
    Source,
    families,
)

from ..arguments import integer, listed, member, packed, shown
from ..dot_product import dot
from ..memory import OpenBytes, check_shared
from ..smem import Barrier
from .access import OpenState, lowest, read_columns, read_words, write_words
from .segment import PageTable, Segment, wrong_segment

__all__ = [
    "BarrierNotCompleteError", "Fault", "Pe", "PeSizes", "decode", "instruction_word", "refusal", "sizes_or_default",
]  # fmt: skip

_RESERVED = {operation: fmt.reserved_mask for operation, fmt in INSTRUCTIONS.items()}
_NUMBERS = {
    operation: {field.name: frozenset(field.enum) for field in fmt.fields if field.enum}
    for operation, fmt in INSTRUCTIONS.items()
}
_PREDICATES = 8
_COMPARE = {
    Compare.EQ: np.equal, Compare.NE: np.not_equal, Compare.LT: np.less, Compare.LE: np.less_equal,
    Compare.GT: np.greater, Compare.GE: np.greater_equal, Compare.LTU: np.less, Compare.LEU: np.less_equal,
    Compare.GTU: np.greater, Compare.GEU: np.greater_equal,
}  # fmt: skip


def decode(word):
    """The fields of a packed instruction, or None if it has the error OPCODE."""
    opcode = word & 0xFF
    if opcode not in INSTRUCTIONS or word & _RESERVED[opcode]:
        return None
    values = INSTRUCTIONS[opcode].unpack(word)
    if values.get("n") == 0 or any(values[name] not in numbers for name, numbers in _NUMBERS[opcode].items()):
        return None
    return values


def refusal(values, pe):
    """The error that stops the whole instruction with these fields on ``pe``, in the order of docs/pe.md, "Errors".

    Returns its code and register; the code is ``PeError.NONE`` if the instruction can be executed.
    """
    operation, sizes = values["opcode"], pe.sizes
    if operation == Operation.MM and MmType(values["type"]).family not in sizes.types:
        return PeError.UNSUPPORTED, values["type"]
    if operation == Operation.MM and values["ka"] * values["kb"] > sizes.threads:
        return PeError.MERGE, 0
    if operation in MEMORY_OPERATIONS:
        return _refusal_of_access(operation, values, pe)
    if operation == Operation.MOVU and values["ud"] >= sizes.uniform_regs:
        return PeError.UNIFORM, values["ud"]
    register = values.get("rd", values.get("rs", 0))
    if register >= sizes.regs:
        return PeError.REGISTER, register
    if operation == Operation.BAR_WAIT and (values["imm"] % BARRIER.bytes or values["imm"] >= len(pe.smem)):
        return PeError.BARRIER, 0
    return PeError.NONE, 0


def _refusal_of_access(operation, values, pe):
    """The same for an instruction with a logical address."""
    sizes, ur = pe.sizes, values["ur"]
    number = pe.uniform[ur] if ur < sizes.uniform_regs else None
    if number is None:
        return PeError.UNIFORM, ur
    segment = pe.segments[number] if number < sizes.segments else None
    if segment is None:
        return PeError.SEGMENT, ur
    if operation == Operation.MM:
        misfit = segment.element.bytes != MmType(values["type"]).bytes
        if misfit or (values["transpose"] and segment.rank == 1):
            return PeError.SEGMENT, ur
        first, count = values["ra"], sizes.factor_regs
    else:
        first, count = values.get("rd", values.get("rs")), values["n"]
    if first + count > sizes.regs:
        return PeError.REGISTER, first
    if values["rf"] + segment.rank > sizes.regs:
        return PeError.REGISTER, values["rf"]
    return PeError.NONE, 0


class BarrierNotCompleteError(RuntimeError):
    """A bar.wait for a phase that is not complete: hardware would wait for it."""


class Fault(NamedTuple):
    """An error record: the first error of instruction ``number``, in the threads ``first`` to ``last``."""

    code: PeError
    number: int
    first: int
    last: int
    register: int


@dataclass(frozen=True)
class PeSizes:
    """Sizes of a machine, by the names of the hardware's parameters."""

    threads: int = 16
    regs: int = 320
    factor_regs: int = 2
    uniform_regs: int = 8
    segments: int = 16
    pages: int = 256
    types: tuple = MM_FAMILIES

    def __post_init__(self):
        for name in self.__dataclass_fields__:
            if name != "types":
                integer(name, getattr(self, name), 1)
        object.__setattr__(self, "types", families(self.types))


def sizes_or_default(sizes):
    """``sizes``, or default ones if None; TypeError if they lack an attribute of :class:`PeSizes`."""
    if sizes is None:
        return PeSizes()
    if not all(hasattr(sizes, name) for name in PeSizes.__dataclass_fields__):
        raise TypeError(f"sizes must be golden.PeSizes, or have its attributes, not {shown(sizes)}")
    return sizes


def instruction_word(operation, **fields):
    """A packed instruction of 128 bits; omitted fields have their lowest value."""
    operation = member("operation", Operation, operation)
    fmt = INSTRUCTIONS[operation]
    lowest = {field.name: field.range[0] for field in fmt.fields}
    return fmt.pack(**lowest | fields | {"opcode": operation})


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
        self.predicates = np.zeros((_PREDICATES, sizes.threads), bool)
        open_bytes = OpenBytes(smem) if open_bytes is None else open_bytes
        self.open = OpenState(self.registers.shape, self.predicates.shape, open_bytes)
        self.uniform = [None] * sizes.uniform_regs
        self.segments = [None] * sizes.segments
        self.pages = PageTable(sizes.pages)
        self.faults = []
        self.number = 0
        self.halts = 0
        self.stopped = False

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
        """Executes one packed instruction; returns its :class:`Fault`, or None.

        Raises :class:`BarrierNotCompleteError` or ``PageNotLoadedError``, and changes nothing, if hardware would wait.
        """
        values = decode(packed("word", word, INSTRUCTIONS[Operation.HALT].bits))
        if self.stopped:
            code, register = PeError.STOPPED, 0
        else:
            code, register = (PeError.OPCODE, 0) if values is None else refusal(values, self)
        if code == PeError.NONE:
            operation = Operation(values.pop("opcode"))
            fault = getattr(self, f"_{operation.name.lower()}")(**values)
        else:
            fault = Fault(code, self.number, 0, self.sizes.threads - 1, register)
        self.number += 1
        if fault is not None:
            self.faults.append(fault)
        return fault

    def _taking_part(self, guard, predicate):
        """The threads that take part, a bool each."""
        return self.predicates[predicate].copy() if guard else np.ones(self.sizes.threads, bool)

    def _address(self, guard, predicate, ur, rf, imm, words=None):
        """The segment, and the coordinates of each thread's first element; notes open addresses.

        A thread accesses one element, or ``words`` words of elements.
        """
        segment = self.segments[self.uniform[ur]]
        coordinates = self.registers[:, rf : rf + segment.rank].astype(np.int64)
        coordinates[:, 0] = coordinates[:, 0] + imm & 0xFFFFFFFF
        threads, unsure = self._taking_part(guard, predicate), self.open.guards(guard, predicate)
        count = 4 * words // segment.element.bytes if words else 1
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
        on = self._taking_part(guard, predicate) & segment.inside(coordinates)
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

    def _ld(self, guard, predicate, rd, n, rf, ur, imm):
        threads = self._taking_part(guard, predicate)
        address = self._address(guard, predicate, ur, rf, imm, n)
        words, codes = read_words(self.smem, self.pages, *address, threads, n)
        targets, loaded = self.registers[:, rd : rd + n], threads[:, np.newaxis] & (codes == 0)
        targets[...] = np.where(loaded, words, targets)
        self.open.load(self.pages, *address, threads, loaded, rd)
        return self._fault(lowest(codes), rd)

    def _st(self, guard, predicate, rs, n, rf, ur, imm):
        threads = self._taking_part(guard, predicate)
        words, address = self.registers[:, rs : rs + n], self._address(guard, predicate, ur, rf, imm, n)
        codes, contested = write_words(self.smem, self.pages, *address, threads, words)
        self.open.store(self.pages, *address, threads, rs, n, contested)
        return self._fault(lowest(codes), rs)

    def _mov(self, guard, predicate, source, core, rd, imm):
        values = np.arange(self.sizes.threads) if source == Source.THREAD else imm | core * self.core
        threads = self._taking_part(guard, predicate)
        self.registers[:, rd] = np.where(threads, values, self.registers[:, rd])
        self.open.set_register(rd, threads, self.open.guards(guard, predicate))

    def _movu(self, ud, imm):
        self.uniform[ud] = imm

    def _setp(self, guard, predicate, pd, source, compare, rs, imm):
        sizes = self.sizes
        values = np.arange(sizes.threads, dtype=np.uint32) if source == Source.THREAD else self.registers[:, rs]
        kind = np.uint32 if compare >= Compare.LTU else np.int32
        result = _COMPARE[compare](values.view(kind), np.uint32(imm).view(kind))
        threads = self._taking_part(guard, predicate)
        unsure = self.open.guards(guard, predicate)
        if source != Source.THREAD:
            unsure = unsure | self.open.registers[:, rs] & threads
        self.open.predicates[pd] = np.where(threads, False, self.open.predicates[pd]) | unsure
        self.predicates[pd] = np.where(threads, result, self.predicates[pd])

    def _bar_wait(self, parity, imm):
        name = f"the barrier that instruction {self.number} waits for"
        self.open.memory.rely_on(slice(imm, imm + BARRIER.bytes), name)
        if not Barrier.read(self.smem, imm).try_wait(parity):
            raise BarrierNotCompleteError(f"the phase of parity {parity} of the barrier at {imm:#x} is not complete")

    def _fence(self):
        pass

    def _halt(self):
        self.halts += 1
