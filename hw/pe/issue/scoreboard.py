"""Scoreboard: which registers instructions under way have still to read or to write."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ...lib.join import join
from ..signatures import MultiplyOrderSignature
from .layouts import ClearanceSignature, MultiplyRegistersLayout, RangeLayout

__all__ = ["LOADS", "Scoreboard"]

#: Loads that may be under way.
LOADS = 4


class _Pending(wiring.Component):
    """Items under way, oldest first, all of which can be looked at.

    Registers that move up when the oldest item leaves; an item may come in the same cycle.

    Members
    -------
    i : In(stream of shape)
        The youngest from the next cycle on. ``ready`` depends on the number of items only.
    remove : In(1)
        Strobe, only while there is an item: the oldest leaves.
    items : Out(array of depth shape)
        Valid below ``count``.
    count : Out(range(depth + 1))
    """

    def __init__(self, shape, depth):
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "remove": In(1),
                "items": Out(shape).array(depth),
                "count": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        place, added = Signal.like(self.count), Signal()  # where an item that comes is put
        m.d.comb += [
            self.i.ready.eq(self.count != self.depth),
            added.eq(self.i.valid & self.i.ready),
            place.eq(self.count - self.remove),
        ]
        m.d.sync += self.count.eq(place + added)
        for index, item in enumerate(self.items):
            if index + 1 < self.depth:
                with m.If(self.remove):
                    m.d.sync += item.eq(self.items[index + 1])
            with m.If(added & (place == index)):
                m.d.sync += item.eq(self.i.p)
        return m


class Scoreboard(wiring.Component):
    """Says whether an access to registers would overtake, or be overtaken by, an instruction under way.

    Issue waits for ``clear`` before an instruction reads or writes registers, other than the factors and the
    accumulators of an mm: those wait on the computing side, where all mm pass one after the other. Every mm and every
    load is entered in program order; a load only when its writes are clear. The "token" of a register (docs/pe.md) is
    set when no pending load writes it.

    All strobes and answers are in the same cycle, and concern what was entered in earlier cycles.

    Members
    -------
    access : In(ClearanceSignature)
    mm_registers : In(stream of MultiplyRegistersLayout)
        Of every mm that is issued.
    load_registers : In(stream of RangeLayout)
        What every load that is issued writes.
    compute : In(MultiplyOrderSignature)
    load_done : In(1)
        Strobe: the last word of the oldest load is written in this cycle.
    empty : Out(1)
        No mm and no load is under way.
    """

    def __init__(self, params):
        self._params = params
        self.mms = _Pending(MultiplyRegistersLayout(params), params.mm_in_flight)
        self.loads = _Pending(RangeLayout(params), LOADS)
        self.taken = Signal(range(params.mm_in_flight + 1))  # of the oldest mm, so many have taken their factors
        super().__init__(
            {
                "access": In(ClearanceSignature(params)),
                "mm_registers": In(stream.Signature(MultiplyRegistersLayout(params))),
                "load_registers": In(stream.Signature(RangeLayout(params))),
                "compute": In(MultiplyOrderSignature()),
                "load_done": In(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        access, compute = self.access, self.compute
        m.submodules.mms = mms = self.mms
        m.submodules.loads = loads = self.loads
        join(m, mm_registers=flipped(self.mm_registers), mms=mms.i)
        join(m, load_registers=flipped(self.load_registers), loads=loads.i)
        m.d.comb += [
            mms.remove.eq(compute.mm_done),
            loads.remove.eq(self.load_done),
            self.empty.eq((mms.count == 0) & (loads.count == 0)),
        ]
        m.d.sync += self.taken.eq(self.taken + compute.factors_taken - compute.mm_done)

        # An access waits for all mm and loads: each was issued before it.
        reads, writes = Signal(mms.depth + loads.depth), Signal(2 * mms.depth + loads.depth)
        for index, mm in enumerate(mms.items):
            m.d.comb += [
                reads[index].eq((index < mms.count) & _overlap(access.reads, mm.accumulators)),
                writes[2 * index].eq((index < mms.count) & _overlap(access.writes, mm.accumulators)),
                writes[2 * index + 1].eq(
                    (index < mms.count) & (index >= self.taken) & _overlap(access.writes, mm.factors)
                ),
            ]
        for index, load in enumerate(loads.items):
            pending = index < loads.count
            m.d.comb += [
                reads[mms.depth + index].eq(pending & _overlap(access.reads, load)),
                writes[2 * mms.depth + index].eq(pending & _overlap(access.writes, load)),
            ]
        m.d.comb += access.clear.eq(~(access.reads_valid & reads.any()) & ~(access.writes_valid & writes.any()))
        self._release(m)
        return m

    def _release(self, m):
        """The factors of the next mm wait for the mm before it, and it waits for all loads.

        A load that was issued after it does not clash: its writes were not clear then.
        """
        mms, loads = self.mms, self.loads
        following = Signal.like(mms.items[0])
        m.d.comb += following.eq(mms.items[0])
        for index in range(1, mms.depth):
            with m.If(self.taken == index):
                m.d.comb += following.eq(mms.items[index])
        waits = Signal(mms.depth - 1 + 2 * loads.depth)
        for index in range(mms.depth - 1):
            clashes = _overlap(following.factors, mms.items[index].accumulators)
            m.d.comb += waits[index].eq((index < self.taken) & clashes)
        for index, load in enumerate(loads.items):
            clashes = _overlap(following.factors, load) | _overlap(following.accumulators, load)
            m.d.comb += waits[mms.depth - 1 + index].eq((index < loads.count) & clashes)
        # Once clear it stays so, until the factors are taken.
        compute = self.compute
        m.d.sync += compute.factors_ready.eq(Mux(compute.factors_taken, 0, (self.taken != mms.count) & ~waits.any()))


def _overlap(one, other):
    return (one.first <= other.last) & (other.first <= one.last)
