"""Payloads and ports between the blocks that issue instructions."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ...lib.component import Port, join
from ..layouts import MultiplyOrderSignature

__all__ = ["LOADS", "ClearanceSignature", "MultiplyRegistersLayout", "RangeLayout", "Scoreboard"]


class RangeLayout(data.StructLayout):
    """Consecutive registers, of all threads."""

    def __init__(self, params):
        super().__init__({"first": unsigned(params.reg_width), "last": unsigned(params.reg_width)})


class MultiplyRegistersLayout(data.StructLayout):
    """Registers of an mm."""

    def __init__(self, params):
        super().__init__({"accumulators": RangeLayout(params), "factors": RangeLayout(params)})


class ClearanceSignature(Port):
    """Whether an access to registers may go ahead, as the instruction sees it that makes it.

    Members
    -------
    valid : Out(1)
        There is an access; without one all is clear.
    writes : Out(1)
        It writes its registers; otherwise it reads them.
    registers : Out(RangeLayout)
    clear : In(1)
        Nothing that the access reads is still to be written, nothing that it writes still to be read or written.
    """

    def __init__(self, params):
        super().__init__(
            {
                "valid": Out(1),
                "writes": Out(1),
                "registers": Out(RangeLayout(params)),
                "clear": In(1),
            }
        )


#: Loads that may be under way.
LOADS = 4


class _Ring(wiring.Component):
    """Items under way, all of which can be looked at. They stay where they are; others come round behind them.

    Members
    -------
    i : In(stream of shape)
        Put at ``place``. ``ready`` is a register.
    remove : In(1)
        Strobe, only while there is an item: the oldest leaves.
    items : Out(array of depth shape)
    held : Out(depth)
        Items that are under way.
    place, oldest : Out(range(depth))
    level : Out(range(depth + 1))
        How many are under way. ``depth`` is a power of two.
    """

    def __init__(self, shape, depth):
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "remove": In(1),
                "items": Out(shape).array(depth),
                "held": Out(depth),
                "place": Out(range(depth)),
                "oldest": Out(range(depth)),
                "level": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        added = Signal()
        m.d.comb += [
            self.i.ready.eq(~self.level[-1]),
            added.eq(self.i.valid & self.i.ready),
        ]
        m.d.sync += [
            self.place.eq(self.place + added),
            self.oldest.eq(self.oldest + self.remove),
            self.level.eq(self.level + added - self.remove),
        ]
        for index, item in enumerate(self.items):
            with m.If(added & (self.place == index)):
                m.d.sync += [item.eq(self.i.p), self.held[index].eq(1)]
            with m.Elif(self.remove & (self.oldest == index)):
                m.d.sync += self.held[index].eq(0)
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
        self.mms = _Ring(MultiplyRegistersLayout(params), params.mm_in_flight)
        self.loads = _Ring(RangeLayout(params), LOADS)
        self.untaken = Signal(params.mm_in_flight)  # mm under way whose factors are still to be taken
        self.next = Signal(range(params.mm_in_flight))  # the oldest of them
        self.following = Signal(MultiplyRegistersLayout(params))  # its registers
        self.found = Signal()  # they are known
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
            self.empty.eq(~mms.held.any() & ~loads.held.any()),
        ]
        m.d.sync += self.next.eq(self.next + compute.factors_taken)
        for index, bit in enumerate(self.untaken):
            with m.If(mms.i.valid & mms.i.ready & (mms.place == index)):
                m.d.sync += bit.eq(1)
            with m.Elif(compute.factors_taken & (self.next == index)):
                m.d.sync += bit.eq(0)

        # An access waits for all mm and loads: each was issued before it.
        clashes = []
        for mm, held, untaken in zip(mms.items, mms.held, self.untaken, strict=True):
            clashes.append(held & _overlap(access.registers, mm.accumulators))
            clashes.append(untaken & access.writes & _overlap(access.registers, mm.factors))
        for load, held in zip(loads.items, loads.held, strict=True):
            clashes.append(held & _overlap(access.registers, load))
        m.d.comb += access.clear.eq(~(access.valid & Cat(clashes).any()))
        self._release(m)
        return m

    def _release(self, m):
        """The factors of the next mm wait for the mm before it, and it waits for all loads.

        A load that was issued after it does not clash: its writes were not clear then.
        """
        mms, loads = self.mms, self.loads
        # The next mm is looked up before it is the next: choosing and comparing would take too long in one cycle.
        following, upcoming = self.following, Signal.like(self.next)
        m.d.comb += upcoming.eq(self.next + self.compute.factors_taken)
        with m.Switch(upcoming):
            for index, item in enumerate(mms.items):
                with m.Case(index):
                    m.d.sync += [following.eq(item), self.found.eq(self.untaken[index])]
        waits = [
            held & ~untaken & _overlap(following.factors, mm.accumulators)
            for mm, held, untaken in zip(mms.items, mms.held, self.untaken, strict=True)
        ]
        for load, held in zip(loads.items, loads.held, strict=True):
            waits.append(held & (_overlap(following.factors, load) | _overlap(following.accumulators, load)))
        # Once clear it stays so, until the factors are taken.
        compute = self.compute
        m.d.sync += compute.factors_ready.eq(Mux(compute.factors_taken, 0, self.found & ~Cat(waits).any()))


def _overlap(one, other):
    return (one.first <= other.last) & (other.first <= one.last)
