"""Every instruction ends with exactly one record; no lane with an error leaves; no error is left out of its record."""

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal
from amaranth.lib import data

from support.formal import Spec
from tilewright.hw.pe.address.faults import FaultCollector
from tilewright.hw.pe.layouts import NUMBER_BITS, AccessKind
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.spec.pe import PeError
from tilewright.verify.formal import prove

PARAMS = PE_PRESETS["unit"]
#: An access takes two cycles.
PACED = PARAMS.replace(smem=PARAMS.smem.replace(chunks_a_cycle=4))


class FaultsSpec(Spec):
    """Follows the codes of every access, the records of any one instruction, and any one code into the record."""

    given, made = "i", "o faults"

    def __init__(self, params=PARAMS):
        self.dut = FaultCollector(params)
        self.number = AnyConst(NUMBER_BITS)
        self.code = AnyConst(4)

    def specify(self, m, dut):
        for code in dut.i.payload.codes:
            m.d.comb += Assume((code == 0) | ((code >= PeError.PRODUCT) & (code <= PeError.MEMORY)))
        self.accepted = dut.i.valid & dut.i.ready
        self.moves = dut.valid & dut.advance
        self.count_records(m)
        self.follow_codes(m)
        self.follow_code(m)
        m.d.comb += [
            # Two sinks that are ready hold nothing up, but for every other cycle.
            Assert(dut.i.ready | (dut.valid if dut.params.paced else ~(dut.o.ready & dut.faults.ready))),
            Cover(dut.faults.valid & (dut.faults.payload.code == PeError.UNMAPPED) & dut.o.payload.on.any()),
            Cover(dut.faults.valid & ~dut.faults.ready & ~dut.advance & dut.o.valid),
        ]

    def count_records(self, m):
        """Records are due for exactly the instructions whose last access is in the block."""
        dut = self.dut
        middle, beside = dut.valid & dut.stage.access.last, dut.finding_valid & dut.finding.last
        numbers = (dut.stage.number, dut.finding.number, dut.faults.payload.number, dut.i.payload.number)
        for name, of in (("all", lambda number: 1), ("one", lambda number: number == self.number)):
            owed = Signal(range(4), name=f"owed_{name}")
            ends = self.accepted & dut.i.payload.access.last & of(numbers[3])
            answered = dut.faults.valid & dut.faults.ready & of(numbers[2])
            m.d.sync += owed.eq(owed + ends - answered)
            m.d.comb += Assert(
                owed == (middle & of(numbers[0])) + (beside & of(numbers[1])) + (dut.faults.valid & of(numbers[2]))
            )

    def follow_codes(self, m):
        """Codes beside the stage in the middle and beside the output."""
        dut = self.dut
        middle, out = (Signal(data.ArrayLayout(4, LANES), name=name) for name in ("middle", "out"))
        enable, on = Signal(LANES), Signal(LANES)  # enabled and on before
        kind, kb = Signal(3), Signal(2)
        with m.If(self.accepted):
            m.d.sync += middle.eq(dut.i.payload.codes)
        with m.If(self.moves):
            m.d.sync += [
                out.eq(middle),
                enable.eq(Cat(lane.enable for lane in dut.stage.access.lanes)),
                on.eq(dut.stage.access.on),
                kind.eq(dut.stage.access.kind),
                kb.eq(dut.stage.access.kb),
            ]
        for lane in range(LANES):
            place = self.column_of(m, f"middle{lane}", dut.stage.access.kind, dut.stage.access.kb, lane)
            has = Cat(errors.any() for errors in dut.errors).bit_select(place, 1)
            m.d.comb += Assert(~dut.valid | (middle[lane] == 0) | has)
        # Nothing has an error that no lane has.
        for column in range(LANES):
            m.d.comb += Assert(~dut.valid | ~dut.errors[column].any() | Cat(code != 0 for code in middle).any())
        of_all = (Cat(errors[k] for errors in dut.errors).any() for k in range(len(dut.all_errors)))
        m.d.comb += Assert(~dut.valid | (dut.all_errors == Cat(of_all)))
        with m.If(dut.o.valid):
            access = dut.o.payload
            clean = (kind != AccessKind.PICK) & ~Cat(code != 0 for code in out).any()
            enabled = Cat(lane.enable for lane in access.lanes)
            m.d.comb += [
                Assert((access.kind == kind) & (access.kb == kb)),
                Assert((enabled & ~enable) == 0),
                Assert((access.on & ~on) == 0),
                Assert(~clean | ((enabled == enable) & (access.on == on))),
            ]
            for lane in range(LANES):
                m.d.comb += Assert(~access.lanes[lane].enable | (out[lane] == 0))
                place = self.column_of(m, f"out{lane}", kind, kb, lane)
                is_on = (kind != AccessKind.FILL) & access.on.bit_select(place, 1)
                m.d.comb += Assert(~is_on | (out[lane] == 0))

    @staticmethod
    def column_of(m, name, kind, kb, lane):
        """The column of a lane, or the lane."""
        column = Signal(3, name=f"column_{name}")
        with m.Switch(Mux((kind == AccessKind.COLUMNS) | (kind == AccessKind.PICK), kb, 0)):
            for units in range(1, 5):
                with m.Case(units - 1):
                    m.d.comb += column.eq(lane // units)
        return column

    def follow_code(self, m):
        """Once any lane had the code, but for a row of a block, the record's is it or a lower one."""
        dut = self.dut
        middle, beside, so_far, reported = (
            Signal(name=f"met_{name}") for name in ("middle", "beside", "so_far", "end")
        )
        adds = dut.finding_valid & (~dut.finding.last | ~dut.faults.valid | dut.faults.ready)
        with m.If(self.accepted):
            met = Cat(code == self.code for code in dut.i.payload.codes).any()
            m.d.sync += middle.eq(met & (self.code != 0) & (dut.i.payload.access.kind != AccessKind.FILL))
        with m.If(self.moves):
            m.d.sync += beside.eq(middle)
        with m.If(adds):
            m.d.sync += so_far.eq((so_far | beside) & ~dut.finding.last)
            with m.If(dut.finding.last):
                m.d.sync += reported.eq(so_far | beside)

        def counts(code):
            return (code != 0) & (code <= self.code)

        has = Signal()
        place = {code: k for k, code in enumerate(range(PeError.PRODUCT, PeError.MEMORY + 1))}
        for code, k in place.items():
            with m.If(self.code == code):
                m.d.comb += has.eq(Cat(errors[k] for errors in dut.errors).any())
        m.d.comb += [
            Assert(~(dut.valid & middle) | (has & (dut.stage.access.kind != AccessKind.FILL))),
            Assert(~(dut.finding_valid & beside) | counts(dut.finding.code)),
            Assert(~so_far | counts(dut.record.code)),
            Assert(~(dut.faults.valid & reported) | counts(dut.faults.payload.code)),
        ]


@pytest.mark.long
@pytest.mark.parametrize(("name", "params"), [("faults", PARAMS), ("faults-paced", PACED)])
def test_one_record_an_instruction_and_nothing_with_an_error(name, params):
    prove(FaultsSpec(params), name=name, depth=1)


@pytest.mark.long
def test_records_are_reached():
    prove(FaultsSpec(), name="faults-cover", mode="cover", depth=8)
