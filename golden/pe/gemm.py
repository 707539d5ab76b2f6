"""Programs of the processing engine that compute products of matrices (docs/pe.md, "Order", "Higher ranks")."""

from itertools import groupby, zip_longest
from typing import NamedTuple

from tilewright.spec.pe import Compare, Operation, Source

from .checks import instruction_word
from .gemm_plan import OUTSIDE, Block, Plan

__all__ = ["lower_gemm"]

#: Predicates of threads that load a column, hold products, hold a product in a register that other threads leave out.
_LOADS, _HOLDS, _HOLDS_REST = 0, 1, 2
#: Uniform registers.
_A, _B, _C, _TABLE = range(4)


class _Visit(NamedTuple):
    """One mm: one issue of a part of K for a block of columns."""

    tile: int
    chunk: int
    slot: int
    block: Block
    issue: int


def lower_gemm(gemm, sizes, a, b, c, table):
    """The program of a :class:`Gemm` on operands in shared memory; it ends with a halt.

    A lies as M × K with K as dimension 0, C as M × N of 32 bits with N as dimension 0. Missing rows and columns are
    outside the segments and need no special case. Each thread loads its part of A for the next part of K while the
    current part is multiplied, and products are stored while the next blocks are computed. The blocks of a group
    (:meth:`Plan.take_turns`) take turns at a part of K.

    Parameters
    ----------
    gemm : Gemm
    sizes : PeSizes, or anything with its attributes
    a, b, c : int
        Numbers of the segments of the operands. A has rank 1 + ``len(gemm.rows)``, B 1 + ``len(gemm.columns)``, C 2.
    table : int
        Number of a segment of rank 1 with 32-bit elements that holds ``Plan(gemm, sizes).table``.

    Returns
    -------
    list of int
        Packed instructions.
    """
    return _Lowering(Plan(gemm, sizes)).run((a, b, c, table))


class _Lowering:
    def __init__(self, plan):
        self.plan, self.gemm = plan, plan.gemm
        self.parts = [range(plan.steps)[i : i + plan.depth] for i in range(0, plan.steps, plan.depth)]  # issues
        self.words = []
        self.known = {}  # contents of registers, where a mov or a load of the same contents can be left out
        self.pending = []  # last visits of blocks whose products are not stored yet
        self.since = 0  # mm's since a store, or since the first pending visit

    def run(self, segments):
        """All instructions."""
        self._prepare(segments)
        phases = [list(visits) for _, visits in groupby(self._visits(), lambda visit: (visit.tile, visit.chunk))]
        self._load_factors(phases[0][0], 0, self.parts[0])
        for number, (phase, following) in enumerate(zip_longest(phases, phases[1:])):
            loads = list(self.parts[following[0].chunk]) if following else []
            half, loaded = len(phase) // 2, 0
            for index, visit in enumerate(phase):
                self._visit(visit, number % 2)
                # In the second half, the mm's that read the other factor registers are done or nearly done. A few
                # registers at a time, so that columns do not wait long.
                due = max(0, index + 1 - half) * len(loads) // (len(phase) - half)
                if due > loaded:
                    self._load_factors(following[0], (number + 1) % 2, loads[loaded:due])
                    loaded = due
        while self.pending:
            self._store()
        self._emit(Operation.HALT)
        return self.words

    def _emit(self, operation, **fields):
        self.words.append(instruction_word(operation, **fields))

    def _look_up(self, register, name, index, by):
        """Loads the element ``index``, plus the contents of register ``by``, of the part ``name`` of the table."""
        self._emit(Operation.LD, rd=register, n=1, ur=_TABLE, rf=by, imm=self.plan.place(name) + index)

    def _mov(self, register, value):
        if self.known.get(register) != value:
            self.known[register] = value
            self._emit(Operation.MOV, rd=register, imm=value)

    def _prepare(self, segments):
        """Sets the registers that stay the same in the whole program."""
        plan = self.plan
        for uniform, segment in enumerate(segments):
            self._emit(Operation.MOVU, ud=uniform, imm=segment)
        self._emit(Operation.MOV, source=Source.THREAD, rd=plan.tid)
        for register, name in ((plan.a, "unit"), (plan.c, "member"), (plan.group, "group")):
            self._look_up(register, name, 0, plan.tid)
        for predicate in (_HOLDS, _HOLDS_REST):
            self._emit(Operation.SETP, pd=predicate, compare=Compare.EQ, rs=plan.a, imm=0)
        if plan.guarded:
            self._emit(Operation.SETP, pd=_LOADS, source=Source.THREAD, compare=Compare.LTU, imm=plan.width)
        if self.gemm.transpose:
            for issue in range(plan.depth):
                self._emit(Operation.MOV, source=Source.THREAD, rd=self._offsets(issue))
        else:
            for slot in range(plan.slots):
                self._mov(self._offsets(slot), 0)

    def _offsets(self, index):
        """The first offset register of B for a slot or, if B is transposed, for an issue of a part of K."""
        return self.plan.b + index * self.plan.b_registers

    def _visits(self):
        """All visits in order."""
        plan = self.plan
        for tile in range(plan.tiles):
            for first in range(0, len(plan.blocks), plan.slots):
                slots = list(enumerate(plan.blocks[first : first + plan.slots]))
                if self.gemm.order == "columns":
                    order = [
                        (chunk, issue, slot)
                        for slot in slots
                        for chunk, part in enumerate(self.parts)
                        for issue in part
                    ]
                else:
                    order = [
                        (chunk, issue, slot)
                        for chunk, part in enumerate(self.parts)
                        for group in self._groups(slots, part)
                        for issue in part
                        for slot in group
                    ]
                for chunk, issue, (slot, block) in order:
                    yield _Visit(tile, chunk, slot, block, issue)

    def _groups(self, slots, part):
        """Slots in groups; a group gets all of a part of K before the next group begins.

        If B is transposed, all slots share offset registers and each issue has its own, so one group is best, except
        where products are cleared or stored too: mm's between the groups' transfers then give them time.
        """
        transfers = part[0] == 0 or part[-1] == self.plan.steps - 1
        return [slots] if self.gemm.transpose and not transfers else self.plan.take_turns(slots)

    def _load_factors(self, visit, half, issues):
        """Loads rows of A for some issues of the part of K of ``visit`` into one half of the factor registers."""
        plan = self.plan
        self._find_rows(plan.a + 1, "row0", visit.tile, len(self.gemm.rows))
        count = plan.sizes.factor_regs
        for issue in issues:
            register = plan.factors[half] + issue % plan.depth * count
            self._emit(Operation.LD, rd=register, n=count, ur=_A, rf=plan.a, imm=issue * plan.step)

    def _find_rows(self, register, name, tile, count):
        """Loads the coordinates of the rows of ``tile`` from ``count`` parts of the table, from the part ``name``."""
        if self.known.get(register) != tile:
            self.known[register] = tile
            place = self.plan.place(name)
            length = self.plan.tiles * self.plan.groups
            for d in range(count):
                imm = place + d * length + tile * self.plan.groups
                self._emit(Operation.LD, rd=register + d, n=1, ur=_TABLE, rf=self.plan.group, imm=imm)

    def _visit(self, visit, half):
        plan = self.plan
        product = visit.slot * plan.products
        if visit.issue == 0:
            self._begin(visit, product)
        index, k = visit.issue % plan.depth, visit.issue * plan.step
        offsets, imm = self._find_columns(visit, index, k)
        self._emit(
            Operation.MM, guard=plan.guarded, predicate=_LOADS if plan.guarded else 0, ka=self.gemm.ka,
            kb=self.gemm.kb, transpose=self.gemm.transpose, type=self.gemm.type, rc=product,
            ra=plan.factors[half] + index * plan.sizes.factor_regs, ur=_B, rf=offsets, imm=imm,
        )  # fmt: skip
        self.since = self.since + 1 if self.pending else 0
        # A block gets this many mm's of a part of K, so the stores of a group spread over the mm's of the next one.
        if self.since >= len(self.parts[visit.chunk]):
            self._store()
        if visit.issue == plan.steps - 1:
            self.pending.append(visit)

    def _find_columns(self, visit, index, k):
        """Offset registers and immediate of B for the issue ``index`` of a visit, from ``k``."""
        plan, block = self.plan, visit.block
        if self.gemm.transpose:
            offsets = self._offsets(index)
            for d, value in enumerate((k, *block.outer), 1):
                self._mov(offsets + d, value)
            return offsets, block.inner
        offsets = self._offsets(visit.slot)
        if self.known.get(offsets + 1) != block.column:
            self.known[offsets + 1] = block.column
            for d in range(len(self.gemm.columns)):
                self._look_up(offsets + 1 + d, f"column{d}", block.column, plan.tid)
        return offsets, k

    def _begin(self, visit, product):
        """Loads the products of a block from C or, as zeros, from outside."""
        plan = self.plan
        while self.pending and (self.gemm.accumulate or visit.slot in [done.slot for done in self.pending]):
            self._store()
        if self.gemm.accumulate:
            self._find_rows(plan.c + 1, "row", visit.tile, 1)
            for register, count, imm in self._registers(visit):
                self._emit(Operation.LD, rd=register, n=count, ur=_C, rf=plan.c, imm=imm)
        else:
            self._emit(Operation.LD, rd=product, n=plan.products, ur=_C, rf=plan.c, imm=OUTSIDE)

    def _registers(self, visit):
        """Accumulators that are neighbours in a row of C: the first, their number, and the column of the first."""
        product, block, ka = visit.slot * self.plan.products, visit.block, self.gemm.ka
        if ka == 1:
            return [(product, block.count, block.column)]
        return [(product + index, 1, block.column + index * ka) for index in range(-(-block.count // ka))]

    def _store(self):
        """Stores the products of the first pending visit."""
        visit, self.since = self.pending.pop(0), 0
        plan, block = self.plan, visit.block
        self._find_rows(plan.c + 1, "row", visit.tile, 1)
        rest = block.count % self.gemm.ka
        for register, count, imm in self._registers(visit):
            holds = _HOLDS
            if rest and imm + self.gemm.ka > block.column + block.count:
                # The other threads hold columns of the next block here.
                self._emit(
                    Operation.SETP, guard=1, predicate=_HOLDS, pd=_HOLDS_REST, compare=Compare.LTU, rs=plan.c, imm=rest
                )
                holds = _HOLDS_REST
            self._emit(Operation.ST, guard=1, predicate=holds, rs=register, n=count, ur=_C, rf=plan.c, imm=imm)
