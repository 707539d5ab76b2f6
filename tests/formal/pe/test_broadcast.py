"""Every column that is on is broadcast exactly once, to its member and its register; ``last`` once for every mm."""

import pytest
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Mux, Signal
from amaranth.lib import data

from support.formal import Spec
from tilewright.hw.pe.broadcast import STEP_UNITS, Broadcaster, unit_lanes
from tilewright.hw.pe.layouts import SHARINGS, SPLIT_COLUMNS, columns_per_item, is_split, of_sharing, sharing_code
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.verify.formal import prove

PARAMS = PE_PRESETS["unit"].replace(regs=16, factor_regs=1)

MM = data.StructLayout({"type": 4, "ka": 2, "kb": 2})


def mm_of(record):
    return Cat(record.type, record.ka, record.kb)


class BroadcastSpec(Spec):
    """Items are looked at where they leave the queue, which has a proof of its own.

    Columns and ends of mm are counted on both sides, and any one unit of any one column is followed: the solver chooses
    it. What is sent at least once, and as often as it came, is sent exactly once.
    """

    made = "steps"

    def __init__(self):
        self.dut = Broadcaster(PARAMS)
        self.choose = Signal()
        self.column = Signal(range(LANES))
        self.unit = Signal(2)

    def specify(self, m, dut):
        item = dut.queue.o
        self.taken, self.sent = Signal(), Signal()
        m.d.comb += [self.taken.eq(item.valid & item.ready), self.sent.eq(dut.steps.valid & dut.steps.ready)]
        self._well_formed(m)
        self._one_mm(m)
        self._count(m)
        self._merge(m)
        self._follow(m)
        step = dut.steps.payload
        m.d.comb += [
            Assert(~dut.steps.valid | step.on.any() | step.last),
            Cover(self.sent & (step.on == 15) & (step.kb == 2) & step.last & ~step.first),
        ]

    def _well_formed(self, m):
        """Items have whole columns of a sharing; those that are not there are off."""
        dut = self.dut
        came, stored = Signal(), Signal()
        m.d.comb += [
            came.eq(_is_item(dut.queue.o.payload, dut.multiplies.payload)),
            stored.eq(_is_item(dut.item, dut.mm)),
            Assume(came),
            Assert(~dut.item_valid | stored),
        ]

    def _one_mm(self, m):
        """What is between two lasts belongs to one mm; the first of it says so."""
        dut = self.dut
        more, mm = Signal(), Signal(len(mm_of(dut.mm)))  # items of this mm are to come
        with m.If(self.taken):
            m.d.sync += [more.eq(~dut.queue.o.payload.last), mm.eq(mm_of(dut.multiplies.payload))]
        # An mm waits until its last item is taken: a rule of streams.
        m.d.comb += Assume(~more | (dut.multiplies.valid & (mm_of(dut.multiplies.payload) == mm)))

        part, step = dut.part, dut.steps.payload
        behind, of_behind = more, mm
        for there, last, own in (
            (dut.item_valid, dut.item.last, mm_of(dut.mm)),
            (dut.part_valid, part.last, mm_of(part)),
            (dut.full, step.last, mm_of(step)),
        ):
            m.d.comb += Assert(~there | last | (behind & (of_behind == own)))
            behind, of_behind = Mux(there, 1, behind), Mux(there, own, of_behind)
        following = Signal(init=1)
        with m.If(self.sent):
            m.d.sync += following.eq(step.last)
        expected = following  # whether the next part or step is the first of an mm
        for there, first, last in ((dut.full, step.first, step.last), (dut.part_valid, part.first, part.last)):
            m.d.comb += Assert(~there | (first == expected))
            expected = Mux(there, last, expected)
        m.d.comb += Assert(dut.first == expected)

    def _merge(self, m):
        """A part is put to the step that is there if that does not end, and has the register and not the members."""
        dut = self.dut
        part, step, there = dut.part, dut.steps.payload, dut.part_valid
        fits = ((part.register == step.register) & ~(part.on & step.on).any()) | ~part.on.any()
        with m.If(there):
            m.d.comb += [
                Assert(part.merges == (dut.full & ~step.last & fits)),
                Assert(dut.members == (Mux(part.merges, step.on, 0) | part.on)),
            ]
        with m.Elif(dut.full & ~step.last):
            m.d.comb += [Assert(dut.members == step.on), Assert(part.register == step.register)]
        m.d.comb += Assert(there | dut.full | dut.first)

    def _count(self, m):
        """As many columns, and ends of mm, as came and have not left are on the way."""
        dut = self.dut
        part, step, came, item = dut.part, dut.steps.payload, dut.queue.o.payload, dut.item
        place = [Signal(range(LANES), name=f"place{column}") for column in range(LANES)]  # part of each column
        for ka in range(1, 5):
            with m.If((dut.mm.ka == ka - 1) & ~_splits(dut.mm)):
                m.d.comb += [place[column].eq(column // ka) for column in range(LANES)]
        for number in range(LANES):
            there = Cat(item.on[column] & (place[column] == number) for column in range(LANES)).any()
            m.d.comb += Assert(~(dut.item_valid & dut.remaining[number]) | there)
        unsent = Cat(
            dut.item_valid & item.on[column] & dut.remaining.bit_select(place[column], 1) for column in range(LANES)
        )

        # An item goes with its last part.
        m.d.comb += Assert(~dut.item_valid | dut.remaining.any() | ~item.on.any())

        columns, mms = Signal(8), Signal(8)
        m.d.sync += [
            columns.eq(columns + Mux(self.taken, _ones(came.on), 0) - Mux(self.sent, _ones(step.on), 0)),
            mms.eq(mms + (self.taken & came.last) - (self.sent & step.last)),
        ]
        in_part, in_step = Mux(dut.part_valid, _ones(part.on), 0), Mux(dut.full, _ones(step.on), 0)
        ends = (dut.item_valid & item.last) + (dut.part_valid & part.last) + (dut.full & step.last)
        m.d.comb += [
            Assert(columns == _ones(unsent) + in_part + in_step),
            Assert(mms == ends),
            Assert(dut.busy | ((columns == 0) & (mms == 0))),
            Assert(~dut.part_valid | part.on.any() | part.last),
            Assert(~dut.full | step.on.any() | step.last),
        ]

    def _follow(self, m):
        """One unit of one column: it is in the item, then in the part, then in the step, and leaves with it."""
        dut = self.dut
        came, mm, item, part, step = dut.queue.o.payload, dut.multiplies.payload, dut.item, dut.part, dut.steps.payload
        followed, where = Signal(), Signal(2)
        column, place, own = Signal(range(LANES)), Signal(range(LANES)), Signal(len(mm_of(mm)))
        lane, unit, value = Signal(range(LANES)), Signal(range(STEP_UNITS)), Signal(PARAMS.unit_bits)
        member, register = Signal(2), Signal(PARAMS.reg_width)
        chosen_lane = Signal(6)
        m.d.comb += chosen_lane.eq(self.column * (mm.kb + 1) + self.unit)
        chosen = self.choose & ~followed & (came.on >> self.column)[0] & (self.unit <= mm.kb)
        with m.If(self.taken & chosen):
            m.d.sync += [
                *(followed.eq(1), where.eq(0), column.eq(self.column), own.eq(mm_of(mm)), lane.eq(chosen_lane)),
                value.eq(Array(came.units)[chosen_lane[:3]]),
            ]
            for ka in range(1, 5):
                with m.If(mm.ka == ka - 1):
                    m.d.sync += [
                        *(place.eq(self.column // ka), member.eq(self.column % ka)),
                        register.eq(came.register + self.column // ka),
                        unit.eq(self.column % ka * (mm.kb + 1) + self.unit),
                    ]
            with m.If(_splits(mm)):  # its units follow the units of the other item
                second = came.first_member != 0
                m.d.sync += [
                    *(place.eq(0), member.eq(came.first_member + self.column), register.eq(came.register)),
                    unit.eq(Cat(chosen_lane[:3], second)),
                ]

        rest = dut.remaining & (dut.remaining - 1)
        leaves = (~dut.part_valid | dut.part_leaves) & (dut.remaining & ~rest).bit_select(place, 1)
        with m.If(followed):
            with m.Switch(where):
                with m.Case(0):
                    m.d.comb += [
                        Assert(dut.item_valid & item.on.bit_select(column, 1) & dut.remaining.bit_select(place, 1)),
                        Assert((mm_of(dut.mm) == own) & (Array(item.units)[lane] == value)),
                        Assert(register == (item.register + place)[: len(register)]),
                        Assert(item.first_member + column == place * (dut.mm.ka + 1) + member),
                        Assert(member <= dut.mm.ka),
                        Assert(lane == unit[:3] + place * (dut.mm.ka + 1) * (dut.mm.kb + 1)),
                        Assert(unit[3] == (item.first_member != 0)),
                        Assert((lane >= column * (dut.mm.kb + 1)) & (lane < (column + 1) * (dut.mm.kb + 1))),
                    ]
                    with m.If(leaves):
                        m.d.sync += where.eq(1)
                with m.Case(1):
                    m.d.comb += [
                        Assert(dut.part_valid & part.on.bit_select(member, 1)),
                        Assert((mm_of(part) == own) & (part.register == register)),
                        Assert(self._lies(part, unit, value)),
                    ]
                    with m.If(dut.part_leaves):
                        m.d.sync += where.eq(2)
                with m.Case(2):
                    m.d.comb += [
                        Assert(dut.full & step.on.bit_select(member, 1)),
                        Assert((mm_of(step) == own) & (step.register == register)),
                        Assert(Array(step.units)[unit] == value),
                    ]
                    with m.If(self.sent):
                        m.d.sync += followed.eq(0)
                with m.Default():
                    m.d.comb += Assert(0)
            # Counted from the first member that the part may have.
            inner = Signal(2)
            m.d.comb += [
                inner.eq(member - Mux(unit[3], SPLIT_COLUMNS, 0)),
                Assert((unit[:3] >= inner * (own[6:] + 1)) & (unit[:3] < (inner + 1) * (own[6:] + 1))),
                Assert(~unit[3] | (member >= SPLIT_COLUMNS)),
            ]

    @staticmethod
    def _lies(part, unit, value):
        """The part says that this unit of the step is where the value is."""
        return Cat(
            (part.offset == offset) & (unit[:3] == number) & (part.units[lane] == value) & (part.second == unit[3])
            for number in range(LANES)
            for offset, lane in unit_lanes(number).items()
        ).any()


def _splits(mm):
    return of_sharing(sharing_code(mm.ka, mm.kb), is_split)


def _is_item(item, mm):
    forms = []
    for ka, kb in SHARINGS:
        here = (mm.ka == ka - 1) & (mm.kb == kb - 1)
        forms.append(here & (item.first_member == 0) & (item.on[columns_per_item(ka, kb) :] == 0))
        if is_split(ka, kb):
            forms.append(here & (item.first_member == SPLIT_COLUMNS) & (item.on[ka - SPLIT_COLUMNS :] == 0))
    return Cat(forms).any()


def _ones(bits):
    return sum(bits[index] for index in range(len(bits)))


@pytest.mark.long
def test_every_column_once():
    prove(BroadcastSpec(), name="pe-broadcast", depth=2, proves="F15")


@pytest.mark.long
def test_broadcast_spec_reaches_a_full_step():
    prove(BroadcastSpec(), name="pe-broadcast-cover", mode="cover", depth=10)
