"""Payloads between the blocks that multiply."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.logic import chosen
from ..lib.stream import DeepQueue
from .layouts import SHARINGS, SPLIT_COLUMNS, ColumnsLayout, MultiplyLayout, is_split, of_sharing, sharing_code
from .params import LANES

__all__ = [
    "ITEMS",
    "STEP_UNITS",
    "Broadcaster",
    "PartCutter",
    "PartLayout",
    "StepLayout",
    "place_of_unit",
    "unit_lanes",
]  # fmt: skip

#: Places of units of B that one step can broadcast: ka = 4 columns of kb = 4 units.
STEP_UNITS = 2 * LANES


def place_of_unit(ka, kb, unit):
    """Where unit qa·kb + qb of a step is in ``StepLayout.units``."""
    first = SPLIT_COLUMNS * kb
    return LANES + unit - first if is_split(ka, kb) and unit >= first else unit


class StepLayout(data.StructLayout):
    """One broadcast: ka columns of kb units each to all threads."""

    def __init__(self, params):
        super().__init__(
            {
                "units": data.ArrayLayout(params.unit_bits, STEP_UNITS),  # each at its place_of_unit
                "on": unsigned(4),  # by member qa
                "register": unsigned(params.reg_width),
                "type": unsigned(4),
                "ka": 2,  # as stored
                "kb": 2,  # as stored
                "first": 1,  # the first step of an mm: its factors are to be used from here on
                "last": 1,  # the last one of it; on may be 0
            }
        )


def unit_lanes(unit):
    """Where a unit of a part may be in its item: {lane of the part's first unit: lane of this one}."""
    lanes = {}
    for ka, kb in SHARINGS:
        size = ka * kb
        if is_split(ka, kb):
            lanes[0] = unit
        elif unit < size:
            lanes |= {first: first + unit for first in range(0, LANES - size + 1, size)}
    return lanes


class PartLayout(data.StructLayout):
    """Columns of an item that are for one step.

    Unit u of the part is lane u + offset of ``units``. It is unit u of the step; of a ``second`` part, unit u of what
    the step has from member ``SPLIT_COLUMNS`` on.
    """

    def __init__(self, params):
        super().__init__(
            {
                "units": data.ArrayLayout(params.unit_bits, LANES),
                "offset": unsigned(3),
                "second": 1,  # its first member is SPLIT_COLUMNS
                "on": unsigned(4),  # by member qa of the step
                "register": unsigned(params.reg_width),
                "type": unsigned(4),
                "ka": 2,  # as stored
                "kb": 2,  # as stored
                "first": 1,  # the first of an mm
                "last": 1,  # the last of an mm; on may be 0
                "merges": 1,  # it is for the step of the part before
            }
        )


class PartCutter(wiring.Component):
    """Cuts items into parts, of which each but an mm's last has a column that is on.

    Latency: two cycles from an item to its first part. Throughput: one part a cycle, without a pause between items or
    between instructions; an item in which nothing is on, other than the last, takes a cycle of its own.

    A part is for the step of the one before if that does not end an mm, and it has no column, or the same register and
    none of the members that the step has already. That is found with the part: much waits for it behind its register.

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
        self.members = Signal(4)  # that the step of the last part has, up to that part
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
            rest.eq(Cat(left[place] & left[:place].any() for place in range(LANES))),
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
            part.merges.eq(
                ~self.first
                & (((part.register == self.parts.p.register) & ~(part.on & self.members).any()) | ~part.on.any())
            ),
        ]
        self._place(m, part, number)
        with m.If(advance):
            m.d.sync += self.parts.valid.eq(emits)
            with m.If(emits):
                m.d.sync += [self.parts.p.eq(part), left.eq(rest), self.first.eq(part.last)]
                m.d.sync += self.members.eq(Mux(part.merges, self.members, 0) | part.on)
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
            code = sharing_code(multiplies.p.ka, multiplies.p.kb)
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
        item, ka = self.item, self.mm.ka
        code = sharing_code(ka, self.mm.kb)
        for bit, of_offset in enumerate(part.offset):
            terms = [
                number[place]
                & of_sharing(code, lambda ka, kb, place=place: ka * kb * place < LANES and ka * kb * place >> bit & 1)  # noqa: B023
                for place in range(1, LANES)
            ]
            m.d.comb += of_offset.eq(Cat(terms).any())
        members = [[] for _ in range(4)]
        for column in range(LANES):
            begins = Signal(name=f"begins{column}")  # it is the part's first
            cases = [(place, size) for size in range(1, 5) for place in range(LANES) if place * size == column]
            m.d.comb += begins.eq(Cat(number[place] & (ka == size - 1) for place, size in cases).any())
            for member, terms in enumerate(members[: LANES - column]):
                terms.append(begins & item.on[column + member])
        # A member that ka does not have would be a column of the next part.
        whole = Cat(Cat(terms).any() & (member <= ka) for member, terms in enumerate(members))
        m.d.comb += [
            part.second.eq(item.first_member == SPLIT_COLUMNS),
            part.on.eq(Mux(part.second, item.on[:2] << SPLIT_COLUMNS, whole)),
        ]


def _in_part(code, column, number):
    """Whether a column of an item is for the part with this number. An item of a split step is one part."""
    return of_sharing(code, lambda ka, kb: (0 if is_split(ka, kb) else column // ka) == number)


#: Items of columns that wait at most.
ITEMS = 16


class Broadcaster(wiring.Component):
    """Broadcasts every column that is on exactly once; steps without a column that is on are left out.

    Parts of one step that follow each other, as where a step's columns come in several items, are put together: a step
    is handed on when the next part is for another one, or when it is the mm's last. If all columns behind it are off,
    the last step of an mm may be one with ``on`` 0.

    Latency: six cycles from an mm's last item to its step. Throughput: one part a cycle, and a step for each, without
    a pause between items or between instructions.

    Members
    -------
    multiplies : In(stream of MultiplyLayout)
    columns : In(stream of ColumnsLayout)
        ``ITEMS`` wait in a block memory.
    steps : Out(stream of StepLayout)
        ``units`` of members that are not on are of no meaning.
    begins : Out(1)
        Strobe: ``steps`` has another payload in the next cycle.
    register : Out(params.reg_width)
        Its field ``register``, in the same cycle as ``begins``.
    busy : Out(1)
        There is an mm whose last step has not been taken.
    """

    def __init__(self, params):
        self._params = params
        self.queue = DeepQueue(ColumnsLayout(params), ITEMS)
        self.cutter = PartCutter(params)
        self.full = Signal()  # a step, or what has come of it
        super().__init__(
            {
                "multiplies": In(stream.Signature(MultiplyLayout(params))),
                "columns": In(stream.Signature(ColumnsLayout(params))),
                "steps": Out(stream.Signature(StepLayout(params))),
                "begins": Out(1),
                "register": Out(params.reg_width),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        m.submodules.cutter = cutter = self.cutter
        connect(m, broadcaster=flipped(self.columns), queue=queue.i)
        connect(m, queue=queue.o, cutter=cutter.columns)
        connect(m, broadcaster=flipped(self.multiplies), cutter=cutter.multiplies)
        m.d.comb += self.busy.eq(self.multiplies.valid | cutter.busy | self.full)

        parts, steps = cutter.parts, self.steps
        part, step = parts.p, steps.p
        # A part that merges finds its step still here: only the last one of an mm leaves before it.
        m.d.comb += [
            steps.valid.eq(self.full & (step.last | (parts.valid & ~part.merges))),
            parts.ready.eq(~self.full | part.merges | steps.ready),
            self.begins.eq(parts.valid & parts.ready & ~part.merges),
            self.register.eq(part.register),
        ]
        with m.If(parts.valid & parts.ready):
            m.d.sync += self.full.eq(1)
            with m.If(~self.begins):
                m.d.sync += [step.on.eq(step.on | part.on), step.last.eq(part.last)]
            with m.Else():
                m.d.sync += [step[name].eq(part[name]) for name in step.shape().members if name != "units"]
            self._put_units(m)
        with m.Elif(steps.valid & steps.ready):
            m.d.sync += self.full.eq(0)
        return m

    def _put_units(self, m):
        """Units of members that are on go to their place; the others stay."""
        part, step = self.cutter.parts.p, self.steps.p
        for unit in range(LANES):
            value = Signal(self._params.unit_bits, name=f"unit{unit}")
            sources = {offset: part.units[lane] for offset, lane in unit_lanes(unit).items()}
            m.d.comb += value.eq(chosen(part.offset, sources))
            for second, place in enumerate((unit, LANES + unit)):
                on = part.on[SPLIT_COLUMNS * second :]
                here = Cat((part.kb == kb - 1) & on[unit // kb] for kb in range(1, 5) if unit // kb < len(on)).any()
                with m.If(here & (part.second == second)):
                    m.d.sync += step.units[place].eq(value)
