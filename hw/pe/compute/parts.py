"""Part cutter: cuts items of columns into what is for one step each."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...lib.table import is_one_of
from ..layouts import ColumnsLayout, MultiplyLayout
from ..params import LANES
from ..sharing import SHARINGS, columns_per_item

__all__ = ["OFFSETS", "PartCutter", "PartLayout", "unit_lanes"]


def _parts():
    """Every part that there can be: (ka, kb, first_member, number of the part in its item)."""
    for ka, kb in SHARINGS:
        columns = columns_per_item(ka, kb)
        for first_member in sorted({columns * item % ka for item in range(ka)}):
            for number in range((first_member + columns - 1) // ka + 1):
                yield ka, kb, first_member, number


def _offset_of(ka, kb, first_member, number):
    """Unit u of the step is lane u + offset of the item."""
    return kb * (number * ka - first_member)


#: What unit 0 of a step, or a unit before it, may be for a lane.
OFFSETS = tuple(sorted({_offset_of(*part) for part in _parts()}))


def unit_lanes(unit):
    """Where a unit of a step may come from: {offset: lane}."""
    lanes = {}
    for ka, kb, first_member, number in _parts():
        offset = _offset_of(ka, kb, first_member, number)
        if unit < ka * kb and 0 <= unit + offset < kb * columns_per_item(ka, kb):
            lanes[offset] = unit + offset
    return lanes


class PartLayout(data.StructLayout):
    """Columns of an item that are for one step.

    Unit u of the step is lane u + offset of ``units``, of the members that are ``on``.
    """

    def __init__(self, params):
        super().__init__(
            {
                "units": data.ArrayLayout(params.unit_bits, LANES),
                "offset": unsigned(len(OFFSETS)),  # one-hot: which of OFFSETS
                "on": unsigned(4),  # by member qa
                "register": unsigned(params.reg_width),
                "type": unsigned(4),
                "ka": 2,  # as stored
                "kb": 2,  # as stored
                "first": 1,  # the first of an mm
                "last": 1,  # the last of an mm; on may be 0
            }
        )


class PartCutter(wiring.Component):
    """Cuts items into parts, of which each but an mm's last has a column that is on.

    Latency: two cycles from an item to its first part. Throughput: one part a cycle, without a pause between items or
    between instructions; an item in which nothing is on, other than the last, takes a cycle of its own.

    Members
    -------
    multiplies : In(stream of MultiplyLayout)
        Taken with the last item of the mm.
    columns : In(stream of ColumnsLayout)
    parts : Out(stream of PartLayout)
    busy : Out(1)
        An item, or a part, has been taken and not handed on.
    """

    def __init__(self, params):
        self._params = params
        self.held = Signal()
        self.item = Signal(ColumnsLayout(params))
        self.mm = Signal(MultiplyLayout(params))  # of the item
        self.left = Signal(LANES)  # parts of the item to come that have a column that is on
        self.first = Signal(init=1)
        super().__init__(
            {
                "multiplies": In(stream.Signature(MultiplyLayout(params))),
                "columns": In(stream.Signature(ColumnsLayout(params))),
                "parts": Out(stream.Signature(PartLayout(params))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        item, mm, left = self.item, self.mm, self.left
        number, rest = Signal(LANES), Signal(LANES)  # the next part, one-hot; those behind it
        emits, done = Signal(), Signal()
        advance = Signal()
        m.d.comb += [
            rest.eq(left & (left - 1)),
            number.eq(Mux(left.any(), left & ~rest, 1)),
            emits.eq(self.held & (left.any() | item.last)),
            advance.eq(~self.parts.valid | self.parts.ready),
            done.eq(self.held & ~rest.any() & (advance | ~emits)),
            self.busy.eq(self.held | self.parts.valid),
        ]
        part = Signal(PartLayout(self._params))
        m.d.comb += [
            part.units.eq(item.units),
            part.register.eq(item.register + self._encoded(m, number)),
            part.type.eq(mm.type),
            part.ka.eq(mm.ka),
            part.kb.eq(mm.kb),
            part.first.eq(self.first),
            part.last.eq(item.last & ~rest.any()),
        ]
        self._place(m, part, number)
        with m.If(advance):
            m.d.sync += self.parts.valid.eq(emits)
            with m.If(emits):
                m.d.sync += [self.parts.p.eq(part), left.eq(rest), self.first.eq(part.last)]
        self._take(m, done)
        return m

    def _take(self, m, done):
        """An item is taken when the one before has no part left, and its mm is known."""
        columns, multiplies = self.columns, self.multiplies
        taken, free = Signal(), Signal()
        m.d.comb += [
            free.eq(~self.held | done),
            taken.eq(free & columns.valid & multiplies.valid),
            columns.ready.eq(free & multiplies.valid),
            multiplies.ready.eq(free & columns.valid & columns.p.last),
        ]
        with m.If(free):
            m.d.sync += self.held.eq(taken)
        with m.If(taken):
            m.d.sync += [self.item.eq(columns.p), self.mm.eq(multiplies.p)]
            code = Cat(multiplies.p.ka, columns.p.first_member)
            for number in range(LANES):
                m.d.sync += self.left[number].eq(
                    Cat(columns.p.on[column] & _in_part(code, column, number) for column in range(LANES)).any()
                )

    def _encoded(self, m, number):
        """The number of the part."""
        encoded = Signal(range(LANES))
        for bit in range(len(encoded)):
            m.d.comb += encoded[bit].eq(Cat(number[place] for place in range(LANES) if place >> bit & 1).any())
        return encoded

    def _place(self, m, part, number):
        """Where the part's units and columns are in the item, by table."""
        item, mm = self.item, self.mm
        code = Cat(mm.kb, mm.ka, item.first_member)
        cases = {}  # (number, offset of units, offset of columns) -> codes
        for ka, kb, first_member, place in _parts():
            key = (place, _offset_of(ka, kb, first_member, place), place * ka - first_member)
            cases.setdefault(key, []).append((kb - 1) + 4 * (ka - 1) + 16 * first_member)
        offsets = {offset: [] for offset in OFFSETS}
        members = [[] for _ in range(4)]
        for index, ((place, offset, column), codes) in enumerate(cases.items()):
            chosen = Signal(name=f"case{index}")
            m.d.comb += chosen.eq(number[place] & is_one_of(code, codes))
            offsets[offset].append(chosen)
            for member in range(4):
                if 0 <= member + column < LANES:
                    members[member].append(chosen & item.on[member + column])
        m.d.comb += part.offset.eq(Cat(Cat(offsets[offset]).any() for offset in OFFSETS))
        # A member that ka does not have would be a column of the next part.
        for member, terms in enumerate(members):
            m.d.comb += part.on[member].eq(Cat(terms).any() & (member <= mm.ka))


def _in_part(code, column, number):
    """Whether a column of an item is for the part with this number; a table of ka and first_member."""
    cases = ((ka, first_member) for ka in range(1, 5) for first_member in range(4))
    return is_one_of(code, (ka - 1 + 4 * first for ka, first in cases if (first + column) // ka == number))
