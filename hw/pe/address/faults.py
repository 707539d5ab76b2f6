"""The fault collector: nothing with an error gets any further, and every instruction is answered for (docs/pe.md)."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import PeError

from ..layouts import NUMBER_BITS, AccessKind, AccessLayout, FaultLayout
from ..params import LANES
from .lanes import takes
from .translate import TranslatedLayout

__all__ = ["FaultCollector"]

#: Errors of single threads, the ones that count first in front. A set of them is one bit each, in this order.
_CODES = (PeError.PRODUCT, PeError.ALIGNMENT, PeError.UNMAPPED, PeError.OFF_CHIP, PeError.MEMORY)
_SLOTS = 2


class _FoundLayout(data.StructLayout):
    """What is wrong with one access."""

    def __init__(self, params):
        super().__init__(
            {
                "code": unsigned(4),  # the lowest code
                "first": unsigned(3),  # the first lane, or column, that has it
                "final": unsigned(3),  # the last one
                "last": 1,  # the access is the last of its instruction
                "thread": unsigned(params.thread_width),  # of lane, or column, 0
                "number": unsigned(NUMBER_BITS),
                "register": unsigned(16),
            }
        )


class FaultCollector(wiring.Component):
    """Turns off what has an error, and sends one record for each instruction.

    In COLUMNS and PICK a column with an error in any of its units is turned off as a whole: none of its lanes is
    enabled, and its bit of ``on`` is 0. In FILL the lane is turned off, and its error stays with the slot until the
    next FILL of it with octet 0: columns that are on in a PICK of that slot have it. In LOAD and STORE a lane is turned
    off by itself, and of LOAD not written.

    Latency 2, one access a cycle while both sinks are ready, every other cycle if ``params.paced``. The record of an
    instruction comes one cycle after its last access.

    Members
    -------
    i : In(stream of TranslatedLayout)
    o : Out(stream of AccessLayout)
        Registered. No lane that is enabled has an error.
    faults : Out(stream of FaultLayout)
        Registered. After the last access of every instruction one record, with code 0 if there was no error: of the
        lowest code, with the first and the last thread that met it.
    """

    def __init__(self, params):
        self.params = params
        # The stage in the middle: an access and the errors of its columns, or lanes.
        self.held = Signal(TranslatedLayout(params))
        self.valid = Signal()
        self.errors = Signal(data.ArrayLayout(len(_CODES), LANES))
        self.rows = Signal(len(_CODES))  # those of all of them
        # Beside the output: what was wrong with the access that went there, to be added to the record.
        self.found = Signal(_FoundLayout(params))
        self.found_valid = Signal()
        self.record = Signal(FaultLayout(params))  # of the instruction so far
        self.advance = Signal()  # the stage in the middle is free, or becomes free
        super().__init__(
            {
                "i": In(stream.Signature(TranslatedLayout(params))),
                "o": Out(stream.Signature(AccessLayout(params))),
                "faults": Out(stream.Signature(FaultLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        added = Signal()  # what was found goes into the record, or there is nothing
        m.d.comb += [
            added.eq(~(self.found_valid & self.found.last) | ~self.faults.valid | self.faults.ready),
            self.advance.eq(takes(self.params, self.o.valid, self.o.ready) & added),
            self.i.ready.eq(takes(self.params, self.valid, self.advance)),
        ]
        self._gather(m)
        slots = self._slots(m)
        self._turn_off(m, slots)
        with m.If(self.advance):
            m.d.sync += [self.o.valid.eq(self.valid), self.found_valid.eq(self.valid)]
        with m.Else():
            with m.If(self.o.ready):
                m.d.sync += self.o.valid.eq(0)
            with m.If(added):
                m.d.sync += self.found_valid.eq(0)
        self._add(m, added)
        return m

    def _gather(self, m):
        """The first stage: the errors of each column, or lane, as a set."""
        access = self.i.p.access
        sets = Signal(data.ArrayLayout(len(_CODES), LANES))
        by_column = Signal()
        m.d.comb += by_column.eq((access.kind == AccessKind.COLUMNS) | (access.kind == AccessKind.PICK))
        for errors, code in zip(sets, self.i.p.codes, strict=True):
            m.d.comb += errors.eq(Cat(code == known for known in _CODES))
        with m.If(self.advance):
            m.d.sync += self.valid.eq(0)
        with m.If(self.i.ready):
            # Every lane is in a column, however many it takes for one.
            m.d.sync += [self.valid.eq(self.i.valid), self.held.eq(self.i.p), self.rows.eq(_union(sets))]
            for column in range(LANES):
                with m.Switch(Mux(by_column, access.kb, 0)):
                    for kb in range(1, 5):
                        lanes = [sets[lane] for lane in range(column * kb, column * kb + kb) if lane < LANES]
                        with m.Case(kb - 1):
                            m.d.sync += self.errors[column].eq(_union(lanes))

    def _slots(self, m):
        """What has been wrong with the rows of the blocks of the line cache."""
        access = self.held.access
        slots = [Signal(len(_CODES), name=f"slot{k}") for k in range(_SLOTS)]
        with m.If(self.advance & self.valid & (access.kind == AccessKind.FILL)):
            for k, slot in enumerate(slots):
                with m.If(access.slot == k):
                    m.d.sync += slot.eq(self.rows | Mux(access.octet == 0, 0, slot))
        return slots

    def _turn_off(self, m, slots):
        """The second stage: the access without what has an error, and the lowest error of it."""
        access, held = self.held.access, self.held
        errors = Signal(data.ArrayLayout(len(_CODES), LANES))
        block, bad, off = Signal(len(_CODES)), Signal(LANES), Signal(LANES)
        by_column, picks, fills = (
            access.kind == kind for kind in (AccessKind.COLUMNS, AccessKind.PICK, AccessKind.FILL)
        )
        m.d.comb += [block.eq(Mux(picks, Mux(access.slot, slots[1], slots[0]), 0)), off.eq(bad)]
        for column in range(LANES):
            m.d.comb += errors[column].eq(self.errors[column] | (block & access.on[column].replicate(len(_CODES))))
            m.d.comb += bad[column].eq(errors[column].any())
        with m.If(by_column | picks):
            with m.Switch(access.kb):
                for kb in range(1, 5):
                    with m.Case(kb - 1):
                        m.d.comb += off.eq(Cat(bad[lane // kb] for lane in range(LANES)))

        lowest, having = Signal(len(_CODES)), Signal(LANES)
        every = Signal(len(_CODES))
        m.d.comb += [
            every.eq(Mux(fills, 0, self.rows | Mux(access.on.any(), block, 0))),  # columns report the errors of rows
            lowest.eq(Cat(every[n] & ~every[:n].any() for n in range(len(_CODES)))),
            having.eq(Cat((column & lowest).any() for column in errors)),
        ]
        with m.If(self.advance):
            out = self.o.p
            m.d.sync += [out.eq(access), out.on.eq(Mux(fills, access.on, access.on & ~bad))]
            for lane in range(LANES):
                m.d.sync += out.lanes[lane].enable.eq(access.lanes[lane].enable & ~off[lane])
            m.d.sync += [
                self.found.code.eq(_union(Mux(bit, code, 0) for bit, code in zip(lowest, _CODES, strict=True))),
                self.found.last.eq(access.last),
                self.found.thread.eq(held.thread),
                self.found.number.eq(held.number),
                self.found.register.eq(held.fault_register),
            ]
            for lane in range(LANES):
                with m.If(having[lane]):
                    m.d.sync += self.found.final.eq(lane)
                with m.If(having[LANES - 1 - lane]):
                    m.d.sync += self.found.first.eq(LANES - 1 - lane)

    def _add(self, m, added):
        """Beside the output: the record of the instruction, and its end."""
        found, record, faults = self.found, self.record, self.faults
        width = self.params.thread_width
        first, final = Signal(width), Signal(width)
        lower, same = Signal(), Signal()
        total = Signal(FaultLayout(self.params))
        m.d.comb += [
            first.eq(found.thread + found.first),
            final.eq(found.thread + found.final),
            lower.eq((found.code != 0) & ((record.code == 0) | (found.code < record.code))),
            same.eq((found.code != 0) & (found.code == record.code)),
            total.eq(record),
            total.number.eq(found.number),
            total.register.eq(found.register),
        ]
        with m.If(lower):
            m.d.comb += [total.code.eq(found.code), total.first.eq(first), total.last.eq(final)]
        with m.Elif(same):
            m.d.comb += [
                total.first.eq(Mux(first < record.first, first, record.first)),
                total.last.eq(Mux(final > record.last, final, record.last)),
            ]
        with m.If(faults.ready):
            m.d.sync += faults.valid.eq(0)
        with m.If(self.found_valid & added):
            m.d.sync += record.eq(total)
            with m.If(found.last):
                m.d.sync += [faults.valid.eq(1), faults.p.eq(total), record.code.eq(PeError.NONE)]


def _union(sets):
    """Everything that is in one of the sets."""
    union = 0
    for one in sets:
        union = union | one
    return union
