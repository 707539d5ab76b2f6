"""Broadcaster: columns from memory become the steps of the multiplication."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.logic import mux_tree
from ..lib.stream import DeepQueue
from .layouts import SHARINGS, SPLIT_COLUMNS, ColumnsLayout, MultiplyLayout, is_split, of_sharing, sharing_code
from .params import LANES

__all__ = ["ITEMS", "STEP_UNITS", "Broadcaster", "StepLayout", "place_of_unit", "unit_lanes"]

#: Items of columns that the queue holds.
ITEMS = 16
#: Units of B that one step can broadcast: ka = 4 columns of kb = 4 units.
STEP_UNITS = 2 * LANES


def place_of_unit(ka, kb, unit):
    """Index of unit qa·kb + qb of a step in ``StepLayout.units``."""
    first = SPLIT_COLUMNS * kb
    return LANES + unit - first if is_split(ka, kb) and unit >= first else unit


def unit_lanes(unit):
    """Lanes of an item that can hold a unit of a part: {lane of the part's first unit: lane of this one}."""
    lanes = {}
    for ka, kb in SHARINGS:
        size = ka * kb
        if is_split(ka, kb):
            lanes[0] = unit
        elif unit < size:
            lanes |= {first: first + unit for first in range(0, LANES - size + 1, size)}
    return lanes


def _step_fields(params):
    return {
        "on": unsigned(4),  # by member qa of the step
        "register": unsigned(params.reg_width),
        "type": unsigned(4),
        "ka": 2,  # as stored
        "kb": 2,  # as stored
        "first": 1,  # the first of an mm: its factors are used from here on
        "last": 1,  # the last of an mm; ``on`` may be 0
    }


class StepLayout(data.StructLayout):
    """One broadcast: ka columns of kb units each to all threads."""

    def __init__(self, params):
        # Each unit is at its place_of_unit.
        super().__init__({"units": data.ArrayLayout(params.unit_bits, STEP_UNITS), **_step_fields(params)})


class _PartLayout(data.StructLayout):
    """Columns of an item that are for one step.

    Unit u of the part is ``units[u + offset]``. It is unit u of the step or, if ``second``, unit u of the units of the
    step from member ``SPLIT_COLUMNS`` on.
    """

    def __init__(self, params):
        super().__init__(
            {
                "units": data.ArrayLayout(params.unit_bits, LANES),
                "offset": unsigned(3),
                "second": 1,  # its first member is SPLIT_COLUMNS
                **_step_fields(params),
                "merges": 1,  # it belongs to the step of the previous part
            }
        )


def _in_part(code, column, number):
    """Whether a column of an item is for the part with this number. An item of a split step is one part."""
    return of_sharing(code, lambda ka, kb: (0 if is_split(ka, kb) else column // ka) == number)


class Broadcaster(wiring.Component):
    """Sends every column that is on exactly once. Steps without a column that is on are dropped.

    Items are cut into parts, one for each step of an item. Each part, other than the last of an mm, has a column that
    is on. Consecutive parts of one step, as from a step whose columns are in several items, are merged: a step is sent
    when the next part is for another step, or when it is the last of the mm. If all following columns are off, the last
    step of an mm may have ``on`` 0.

    Latency: six cycles from an mm's last item to its step. Throughput: one part and one step a cycle, without a pause
    between items or instructions. An item without a column that is on, other than the last of an mm, takes one cycle.
    """

    def __init__(self, params):
        self._params = params
        self.queue = DeepQueue(ColumnsLayout(params), ITEMS)
        # Stage 1: an item, its mm, and its parts that are still to be sent and have a column that is on.
        self.item_valid, self.item, self.mm = Signal(), Signal(ColumnsLayout(params)), Signal(MultiplyLayout(params))
        self.remaining = Signal(LANES)
        # Stage 2: a part; whether the next one is the first of an mm; members of the step up to this part.
        self.part_valid, self.part = Signal(), Signal(_PartLayout(params))
        self.first = Signal(init=1)
        self.members = Signal(4)
        # Stage 3: a step, or part of one.
        self.full = Signal()
        self.part_leaves = Signal()
        super().__init__(
            {
                "multiplies": In(stream.Signature(MultiplyLayout(params))),  # accepted with the last item of the mm
                "columns": In(stream.Signature(ColumnsLayout(params))),  # to a queue of ``ITEMS`` in block RAM
                "steps": Out(stream.Signature(StepLayout(params))),  # units of members that are off are undefined
                "begins": Out(1),  # strobe: ``steps`` has another payload in the next cycle
                "register": Out(params.reg_width),  # its field ``register``, in the same cycle as ``begins``
                "busy": Out(1),  # there is an mm whose last step has not been sent
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = self.queue
        connect(m, broadcaster=flipped(self.columns), queue=self.queue.i)
        m.d.comb += self.busy.eq(self.multiplies.valid | self.item_valid | self.part_valid | self.full)
        self._cut(m)
        self._merge(m)
        return m

    def _accept(self, m, done):
        """Stage 1: an item is accepted when the previous one has no part left, and its mm is known."""
        columns, multiplies = self.queue.o, self.multiplies
        accepted, free = Signal(), Signal()
        m.d.comb += [
            free.eq(~self.item_valid | done),
            accepted.eq(free & columns.valid & multiplies.valid),
            columns.ready.eq(free & multiplies.valid),
            multiplies.ready.eq(free & columns.valid & columns.payload.last),
        ]
        with m.If(free):
            m.d.sync += self.item_valid.eq(accepted)
        with m.If(accepted):
            m.d.sync += [self.item.eq(columns.payload), self.mm.eq(multiplies.payload)]
            code = sharing_code(multiplies.payload.ka, multiplies.payload.kb)
            for number in range(LANES):
                on = Cat(columns.payload.on[column] & _in_part(code, column, number) for column in range(LANES))
                m.d.sync += self.remaining[number].eq(on.any())

    def _cut(self, m):
        """Stage 2: the next part of the item.

        It merges with the previous one if that does not end an mm, and this one either has no column, or has the same
        register and none of the members that the step already has. This is registered with the part, because many
        registers depend on it.
        """
        item, remaining, previous = self.item, self.remaining, self.part
        number, rest = Signal(LANES), Signal(LANES)  # the next part, one-hot; the following ones
        emits, done, advance = Signal(), Signal(), Signal()
        part = Signal(_PartLayout(self._params))
        encoded = Cat(Cat(number[place] for place in range(LANES) if place >> bit & 1).any() for bit in range(3))
        m.d.comb += [
            rest.eq(Cat(remaining[place] & remaining[:place].any() for place in range(LANES))),
            number.eq(Mux(remaining.any(), remaining & ~rest, 1)),
            emits.eq(self.item_valid & (remaining.any() | item.last)),
            advance.eq(~self.part_valid | self.part_leaves),
            done.eq(self.item_valid & ~rest.any() & (advance | ~emits)),
            part.units.eq(item.units),
            part.register.eq(item.register + encoded),
            *(part[name].eq(self.mm[name]) for name in ("type", "ka", "kb")),
            part.first.eq(self.first),
            part.last.eq(item.last & ~rest.any()),
            part.merges.eq(
                ~self.first
                & (((part.register == previous.register) & ~(part.on & self.members).any()) | ~part.on.any())
            ),
        ]
        self._place(m, part, number)
        with m.If(advance):
            m.d.sync += self.part_valid.eq(emits)
            with m.If(emits):
                m.d.sync += [
                    previous.eq(part),
                    remaining.eq(rest),
                    self.first.eq(part.last),
                    self.members.eq(Mux(part.merges, self.members, 0) | part.on),
                ]
        self._accept(m, done)

    def _place(self, m, part, number):
        """Position of the part's units and columns in the item."""
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
        # Members from ka on would be columns of the next part.
        whole = Cat(Cat(terms).any() & (member <= ka) for member, terms in enumerate(members))
        m.d.comb += [
            part.second.eq(item.first_member == SPLIT_COLUMNS),
            part.on.eq(Mux(part.second, item.on[:2] << SPLIT_COLUMNS, whole)),
        ]

    def _merge(self, m):
        """Stage 3: parts become steps."""
        part, steps, step = self.part, self.steps, self.steps.payload
        m.d.comb += [
            # A part that merges finds its step still here: only the last one of an mm leaves earlier.
            steps.valid.eq(self.full & (step.last | (self.part_valid & ~part.merges))),
            self.part_leaves.eq(self.part_valid & (~self.full | part.merges | steps.ready)),
            self.begins.eq(self.part_leaves & ~part.merges),
            self.register.eq(part.register),
        ]
        with m.If(self.part_leaves):
            m.d.sync += self.full.eq(1)
            with m.If(self.begins):
                m.d.sync += [step[name].eq(part[name]) for name in _step_fields(self._params)]
            with m.Else():
                m.d.sync += [step.on.eq(step.on | part.on), step.last.eq(part.last)]
            self._put_units(m, part, step)
        with m.Elif(steps.valid & steps.ready):
            m.d.sync += self.full.eq(0)

    def _put_units(self, m, part, step):
        """Writes the units of members that are on; the others keep their value."""
        for unit in range(LANES):
            value = Signal(self._params.unit_bits, name=f"unit{unit}")
            sources = {offset: part.units[lane] for offset, lane in unit_lanes(unit).items()}
            m.d.comb += value.eq(mux_tree(part.offset, sources))
            for second, place in enumerate((unit, LANES + unit)):
                on = part.on[SPLIT_COLUMNS * second :]
                here = Cat((part.kb == kb - 1) & on[unit // kb] for kb in range(1, 5) if unit // kb < len(on)).any()
                with m.If(here & (part.second == second)):
                    m.d.sync += step.units[place].eq(value)
