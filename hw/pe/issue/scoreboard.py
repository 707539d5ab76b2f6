"""Scoreboard: which registers instructions under way have still to read or to write."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LOADS", "RangeLayout", "Scoreboard"]

#: Loads that may be under way.
LOADS = 4


class RangeLayout(data.StructLayout):
    """Consecutive registers, of all threads."""

    def __init__(self, params):
        super().__init__({"first": unsigned(params.reg_width), "last": unsigned(params.reg_width)})


class _Pending(wiring.Component):
    """Items under way, oldest first, all of which can be looked at.

    Registers that move up when the oldest item leaves; an item may come in the same cycle.

    Members
    -------
    add : In(1)
        Strobe, only while ``ready``: ``item`` is the youngest from the next cycle on.
    item : In(shape)
    ready : Out(1)
        Depends on the number of items only.
    remove : In(1)
        Strobe, only while there is an item: the oldest leaves.
    items : Out(shape).array(depth)
        Valid below ``count``.
    count : Out(range(depth + 1))
    """

    def __init__(self, shape, depth):
        self.depth = depth
        super().__init__(
            {
                "add": In(1),
                "item": In(shape),
                "ready": Out(1),
                "remove": In(1),
                "items": Out(shape).array(depth),
                "count": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        place = Signal.like(self.count)  # where an item that comes is put
        m.d.comb += [self.ready.eq(self.count != self.depth), place.eq(self.count - self.remove)]
        m.d.sync += self.count.eq(place + self.add)
        for index, item in enumerate(self.items):
            if index + 1 < self.depth:
                with m.If(self.remove):
                    m.d.sync += item.eq(self.items[index + 1])
            with m.If(self.add & (place == index)):
                m.d.sync += item.eq(self.item)
        return m


class Scoreboard(wiring.Component):
    """Says whether an access to registers would overtake, or be overtaken by, an instruction under way.

    The issuing side asks before it lets an instruction read or write registers, other than the factors and the products
    of an mm: those wait on the computing side, where all mm pass one after the other. It enters every mm and every load
    in program order; a load only when its writes are clear. The "token" of a register (docs/pe.md) is set when no
    pending load writes it.

    All strobes and answers are in the same cycle, and tell of what was entered in earlier cycles. ``factors_ready`` is
    registered: two cycles after ``factors_taken``, or after what it waited for, it speaks of the next mm.

    Members
    -------
    reads_valid, reads : In(1), In(RangeLayout)
        Registers that the access reads, if valid.
    writes_valid, writes : In(1), In(RangeLayout)
    clear : Out(1)
        Nothing that the access reads is still to be written, nothing that it writes still to be read or written.
    mm_add : In(1)
        Strobe, only while ``mm_ready``: an mm is issued with ``mm_products`` and ``mm_factors``.
    mm_ready : Out(1)
    mm_products, mm_factors : In(RangeLayout)
    load_add : In(1)
        Strobe, only while ``load_ready``: a load that writes ``load`` is issued.
    load_ready : Out(1)
    load : In(RangeLayout)
    factors_ready : Out(1)
        The oldest mm whose factors are not taken may read them, and then its products.
    factors_taken : In(1)
        Strobe, only while ``factors_ready``: they are read from this cycle on, one register a cycle.
    mm_done : In(1)
        Strobe: the last product of the oldest mm is written in this cycle.
    load_done : In(1)
        Strobe: the last word of the oldest load is written in this cycle.
    empty : Out(1)
        No mm and no load is under way.
    """

    def __init__(self, params):
        self._params = params
        registers = RangeLayout(params)
        mm = data.StructLayout({"products": registers, "factors": registers})
        self.mms = _Pending(mm, params.mm_in_flight)
        self.loads = _Pending(registers, LOADS)
        self.taken = Signal(range(params.mm_in_flight + 1))  # of the oldest mm, so many have taken their factors
        super().__init__(
            {
                "reads_valid": In(1),
                "reads": In(registers),
                "writes_valid": In(1),
                "writes": In(registers),
                "clear": Out(1),
                "mm_add": In(1),
                "mm_ready": Out(1),
                "mm_products": In(registers),
                "mm_factors": In(registers),
                "load_add": In(1),
                "load_ready": Out(1),
                "load": In(registers),
                "factors_ready": Out(1),
                "factors_taken": In(1),
                "mm_done": In(1),
                "load_done": In(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.mms = mms = self.mms
        m.submodules.loads = loads = self.loads
        m.d.comb += [
            mms.add.eq(self.mm_add),
            mms.item.products.eq(self.mm_products),
            mms.item.factors.eq(self.mm_factors),
            mms.remove.eq(self.mm_done),
            self.mm_ready.eq(mms.ready),
            loads.add.eq(self.load_add),
            loads.item.eq(self.load),
            loads.remove.eq(self.load_done),
            self.load_ready.eq(loads.ready),
            self.empty.eq((mms.count == 0) & (loads.count == 0)),
        ]
        m.d.sync += self.taken.eq(self.taken + self.factors_taken - self.mm_done)

        # An access waits for all mm and loads: each was issued before it.
        reads, writes = Signal(mms.depth + loads.depth), Signal(2 * mms.depth + loads.depth)
        for index, mm in enumerate(mms.items):
            m.d.comb += [
                reads[index].eq((index < mms.count) & _overlap(self.reads, mm.products)),
                writes[2 * index].eq((index < mms.count) & _overlap(self.writes, mm.products)),
                writes[2 * index + 1].eq(
                    (index < mms.count) & (index >= self.taken) & _overlap(self.writes, mm.factors)
                ),
            ]
        for index, load in enumerate(loads.items):
            pending = index < loads.count
            m.d.comb += [
                reads[mms.depth + index].eq(pending & _overlap(self.reads, load)),
                writes[2 * mms.depth + index].eq(pending & _overlap(self.writes, load)),
            ]
        m.d.comb += self.clear.eq(~(self.reads_valid & reads.any()) & ~(self.writes_valid & writes.any()))
        self._release(m)
        return m

    def _release(self, m):
        """The factors of the next mm wait for the mm before it, and it waits for all loads.

        A load that was issued after it cannot stand in its way: its writes were not clear then.
        """
        mms, loads = self.mms, self.loads
        following = Signal.like(mms.items[0])
        m.d.comb += following.eq(mms.items[0])
        for index in range(1, mms.depth):
            with m.If(self.taken == index):
                m.d.comb += following.eq(mms.items[index])
        waits = Signal(mms.depth - 1 + 2 * loads.depth)
        for index in range(mms.depth - 1):
            clashes = _overlap(following.factors, mms.items[index].products)
            m.d.comb += waits[index].eq((index < self.taken) & clashes)
        for index, load in enumerate(loads.items):
            clashes = _overlap(following.factors, load) | _overlap(following.products, load)
            m.d.comb += waits[mms.depth - 1 + index].eq((index < loads.count) & clashes)
        # Once clear it stays so, until the factors are taken.
        m.d.sync += self.factors_ready.eq(Mux(self.factors_taken, 0, (self.taken != mms.count) & ~waits.any()))


def _overlap(one, other):
    return (one.first <= other.last) & (other.first <= one.last)
