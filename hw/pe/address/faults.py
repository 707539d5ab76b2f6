"""The fault collector: disables lanes with an error, and reports every instruction (docs/pe.md, "Errors")."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import PeError

from ..layouts import NUMBER_BITS, AccessKind, AccessLayout, FaultLayout
from ..params import LANES
from .lanes import stage_ready
from .translate import TranslatedLayout

__all__ = ["FaultCollector"]

#: Errors of single threads, by priority. A set of them is one bit each, in this order.
_CODES = (PeError.PRODUCT, PeError.ALIGNMENT, PeError.UNMAPPED, PeError.OFF_CHIP, PeError.MEMORY)
_SLOTS = 2


class _FindingLayout(data.StructLayout):
    """The error of one access."""

    def __init__(self, params):
        super().__init__(
            {
                "code": unsigned(4),  # the lowest code
                "first": unsigned(3),  # the first lane, or column, with this code
                "final": unsigned(3),  # the last one
                "last": 1,  # the access is the last of its instruction
                "thread": unsigned(params.thread_width),  # of lane, or column, 0
                "number": unsigned(NUMBER_BITS),
                "inside": 1,
                "register": unsigned(16),
            }
        )


class FaultCollector(wiring.Component):
    """Disables lanes and columns with an error, and sends one record for each instruction.

    In COLUMNS and PICK, a column with an error in any of its units is disabled as a whole: all of its lanes, and its
    bit of ``on``. In FILL, the lane is disabled, and its error stays with the slot until the next FILL of the slot with
    octet 0: a PICK of that slot has the error in all columns that are on. In LOAD and STORE, single lanes are disabled.

    Latency: 2 cycles. Throughput: one access a cycle, or every other cycle with ``params.paced``. ``o`` and ``faults``
    are registered. The record of an instruction follows its last access by one cycle. It has the lowest code, and the
    first and the last thread with that code; code 0 without an error.
    """

    def __init__(self, params):
        self.params = params
        # The middle stage: an access and the errors of its columns, or lanes.
        self.stage = Signal(TranslatedLayout(params))
        self.valid = Signal()
        self.errors = Signal(data.ArrayLayout(len(_CODES), LANES))
        self.all_errors = Signal(len(_CODES))  # their union
        # In parallel with the output: the error of the access that moved there, to be added to the record.
        self.finding = Signal(_FindingLayout(params))
        self.finding_valid = Signal()
        self.record = Signal(FaultLayout(params))  # of the instruction so far
        self.advance = Signal()  # the middle stage is empty, or becomes empty
        super().__init__(
            {
                "i": In(stream.Signature(TranslatedLayout(params))),
                "o": Out(stream.Signature(AccessLayout(params))),
                "faults": Out(stream.Signature(FaultLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        added = Signal()  # the finding is added to the record, or there is none
        m.d.comb += [
            added.eq(~(self.finding_valid & self.finding.last) | ~self.faults.valid | self.faults.ready),
            self.advance.eq(stage_ready(self.params, self.o.valid, self.o.ready) & added),
            self.i.ready.eq(stage_ready(self.params, self.valid, self.advance)),
        ]
        self._gather(m)
        self._disable(m, self._slots(m))
        with m.If(self.advance):
            m.d.sync += [self.o.valid.eq(self.valid), self.finding_valid.eq(self.valid)]
        with m.Else():
            with m.If(self.o.ready):
                m.d.sync += self.o.valid.eq(0)
            with m.If(added):
                m.d.sync += self.finding_valid.eq(0)
        self._add(m, added)
        return m

    def _gather(self, m):
        """Stage 1: the errors of each column, or lane, as a set."""
        access = self.i.payload.access
        sets = Signal(data.ArrayLayout(len(_CODES), LANES))
        by_column = (access.kind == AccessKind.COLUMNS) | (access.kind == AccessKind.PICK)
        for errors, code in zip(sets, self.i.payload.codes, strict=True):
            m.d.comb += errors.eq(Cat(code == known for known in _CODES))
        with m.If(self.advance):
            m.d.sync += self.valid.eq(0)
        with m.If(self.i.ready):
            m.d.sync += [
                self.valid.eq(self.i.valid),
                self.stage.eq(self.i.payload),
                self.all_errors.eq(reduce(or_, sets)),  # every lane is in a column
            ]
            for column in range(LANES):
                with m.Switch(Mux(by_column, access.kb, 0)):
                    for kb in range(1, 5):
                        lanes = [sets[lane] for lane in range(column * kb, column * kb + kb) if lane < LANES]
                        with m.Case(kb - 1):
                            m.d.sync += self.errors[column].eq(reduce(or_, lanes, 0))

    def _slots(self, m):
        """Errors of the rows of the blocks in the line cache."""
        access = self.stage.access
        slots = [Signal(len(_CODES), name=f"slot{k}") for k in range(_SLOTS)]
        with m.If(self.advance & self.valid & (access.kind == AccessKind.FILL)):
            for k, slot in enumerate(slots):
                with m.If(access.slot == k):
                    m.d.sync += slot.eq(self.all_errors | Mux(access.octet == 0, 0, slot))
        return slots

    def _disable(self, m, slots):
        """Stage 2: the access without lanes and columns that have an error, and its lowest error."""
        stage, access, finding = self.stage, self.stage.access, self.finding
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

        union, lowest, lanes = Signal(len(_CODES)), Signal(len(_CODES)), Signal(LANES)
        m.d.comb += [
            # Errors of rows are reported by the columns of their block.
            union.eq(Mux(fills, 0, self.all_errors | Mux(access.on.any(), block, 0))),
            lowest.eq(Cat(union[n] & ~union[:n].any() for n in range(len(_CODES)))),
            lanes.eq(Cat((column & lowest).any() for column in errors)),
        ]
        with m.If(self.advance):
            out = self.o.payload
            m.d.sync += [out.eq(access), out.on.eq(Mux(fills, access.on, access.on & ~bad))]
            for lane in range(LANES):
                m.d.sync += out.lanes[lane].enable.eq(access.lanes[lane].enable & ~off[lane])
            m.d.sync += [
                finding.code.eq(reduce(or_, (Mux(bit, code, 0) for bit, code in zip(lowest, _CODES, strict=True)))),
                finding.last.eq(access.last),
                finding.thread.eq(stage.thread),
                finding.number.eq(stage.number),
                finding.inside.eq(stage.inside),
                finding.register.eq(stage.fault_register),
            ]
            for lane in range(LANES):
                with m.If(lanes[lane]):
                    m.d.sync += finding.final.eq(lane)
                with m.If(lanes[LANES - 1 - lane]):
                    m.d.sync += finding.first.eq(LANES - 1 - lane)

    def _add(self, m, added):
        """In parallel with the output: adds the finding to the record of the instruction, and sends the record."""
        finding, record, faults = self.finding, self.record, self.faults
        width = self.params.thread_width
        first, final = Signal(width), Signal(width)
        lower, same = Signal(), Signal()
        total = Signal(FaultLayout(self.params))
        m.d.comb += [
            first.eq(finding.thread + finding.first),
            final.eq(finding.thread + finding.final),
            lower.eq((finding.code != 0) & ((record.code == 0) | (finding.code < record.code))),
            same.eq((finding.code != 0) & (finding.code == record.code)),
            total.eq(record),
            total.number.eq(finding.number),
            total.inside.eq(finding.inside),
            total.register.eq(finding.register),
        ]
        with m.If(lower):
            m.d.comb += [total.code.eq(finding.code), total.first.eq(first), total.last.eq(final)]
        with m.Elif(same):
            m.d.comb += [
                total.first.eq(Mux(first < record.first, first, record.first)),
                total.last.eq(Mux(final > record.last, final, record.last)),
            ]
        with m.If(faults.ready):
            m.d.sync += faults.valid.eq(0)
        with m.If(self.finding_valid & added):
            m.d.sync += record.eq(total)
            with m.If(finding.last):
                m.d.sync += [faults.valid.eq(1), faults.payload.eq(total), record.code.eq(PeError.NONE)]
