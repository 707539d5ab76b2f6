"""Scoreboard: registers that instructions in flight still have to read or write."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.component import Port
from ..arithmetic.layouts import ArithmeticAccessSignature, TargetLayout
from ..layouts import MultiplyOrderSignature

__all__ = ["LOADS", "ClearanceSignature", "JobReadsLayout", "MultiplyRegistersLayout", "RangeLayout", "Scoreboard"]

#: Registers that the arithmetic tells apart when it waits for multiplies: blocks of this size.
_BLOCK = 16
#: Maximum number of loads in flight.
LOADS = 4


class RangeLayout(data.StructLayout):
    """Consecutive registers, of all threads."""

    def __init__(self, params):
        super().__init__({"first": unsigned(params.reg_width), "last": unsigned(params.reg_width)})


class MultiplyRegistersLayout(data.StructLayout):
    """Registers of an mm."""

    def __init__(self, params):
        super().__init__({"accumulators": RangeLayout(params), "factors": RangeLayout(params)})


class JobReadsLayout(data.StructLayout):
    """Registers and predicate of a job, which it reads some time after its issue."""

    def __init__(self, params):
        super().__init__(
            {
                "offsets": RangeLayout(params),
                "stores": 1,  # it reads ``moved``; otherwise it writes them
                "moved": RangeLayout(params),
                "guard": 1,
                "predicate": unsigned(3),
            }
        )


class ClearanceSignature(Port):
    """Asks whether an access to registers may proceed, from the side of the instruction."""

    def __init__(self, params):
        super().__init__(
            {
                "valid": Out(1),  # there is an access; without one, ``clear`` is high
                "writes": Out(1),  # it writes its registers; otherwise it reads them
                "registers": Out(RangeLayout(params)),
                # Only results of the arithmetic count: the computing side orders the rest.
                **({"results_only": Out(1)} if params.units else {}),
                # No register that it reads is still to be written, none that it writes still to be read or written.
                "clear": In(1),
            }
        )


class _Ring(wiring.Component):
    """A queue whose items can all be seen. Items keep their slots; slots are used round robin.

    ``depth`` is a power of two. ``i.ready`` is a register.
    """

    def __init__(self, shape, depth):
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "remove": In(1),  # strobe, only while there is an item: the oldest leaves
                "items": Out(shape).array(depth),
                "occupied": Out(depth),  # by slot
                "place": Out(range(depth)),  # slot of the next item
                "oldest": Out(range(depth)),
                "level": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        added = Signal()
        m.d.comb += [self.i.ready.eq(~self.level[-1]), added.eq(self.i.valid & self.i.ready)]
        m.d.sync += [
            self.place.eq(self.place + added),
            self.oldest.eq(self.oldest + self.remove),
            self.level.eq(self.level + added - self.remove),
        ]
        for index, item in enumerate(self.items):
            with m.If(added & (self.place == index)):
                m.d.sync += [item.eq(self.i.payload), self.occupied[index].eq(1)]
            with m.Elif(self.remove & (self.oldest == index)):
                m.d.sync += self.occupied[index].eq(0)
        return m


class Scoreboard(wiring.Component):
    """Says whether an access to registers would overtake, or be overtaken by, an instruction in flight.

    Issue waits for ``access.clear`` before an instruction reads or writes registers, other than the factors and the
    accumulators of an mm. The computing side orders those, because all mm pass through it in program order. Every mm
    and every load is entered in program order; a load only when its writes are clear. The "token" of a register
    (docs/pe.md) is set when no pending load writes it.

    All strobes and answers are in the same cycle, and concern instructions that were entered in earlier cycles.

    Parameters
    ----------
    params : PeParams
    flights : int
        Results of the arithmetic in flight at most; 0 without arithmetic.
    """

    def __init__(self, params, flights=0):
        self._params, self._flights = params, flights
        self.mms = _Ring(MultiplyRegistersLayout(params), params.mm_in_flight)
        self.loads = _Ring(RangeLayout(params), LOADS)
        self.unread = Signal(params.mm_in_flight)  # mm in flight whose factors are still to be read
        self.next = Signal(range(params.mm_in_flight))  # the oldest of them
        self.following = Signal(MultiplyRegistersLayout(params))  # its registers
        self.following_valid = Signal()
        super().__init__(
            {
                "access": In(ClearanceSignature(params)),
                "mm_registers": In(stream.Signature(MultiplyRegistersLayout(params))),  # every mm that is issued
                "load_registers": In(stream.Signature(RangeLayout(params))),  # written by every load that is issued
                "compute": In(MultiplyOrderSignature()),
                "load_done": In(1),  # strobe: the last word of the oldest load is written in this cycle
                "empty": Out(1),  # no mm and no load is in flight
                **(
                    {
                        "arithmetic": In(ArithmeticAccessSignature(params)),
                        "in_flight": In(TargetLayout(params)).array(flights),  # of the arithmetic
                        "job_issued": In(1),  # strobe: a job begins to read
                        "job_reads": In(JobReadsLayout(params)),  # of that job, and of one that is being issued
                        "issuing": In(1),  # a job is being issued: operations of its turn come after it
                        "turn": In(1),
                        "multiplies": In(1),  # that job is an mm, with ``mm_registers``
                        "jobs_read": In(1),  # all jobs have read; low from the cycle after ``job_issued`` on
                        "offsets_read": In(1),  # the same of their offsets alone
                    }
                    if flights
                    else {}
                ),
            }
        )

    def elaborate(self, platform):
        m = Module()
        access, compute = self.access, self.compute
        m.submodules.mms = mms = self.mms
        m.submodules.loads = loads = self.loads
        connect(m, mm_registers=flipped(self.mm_registers), mms=mms.i)
        connect(m, load_registers=flipped(self.load_registers), loads=loads.i)
        m.d.comb += [
            mms.remove.eq(compute.mm_done),
            loads.remove.eq(self.load_done),
            self.empty.eq(~mms.occupied.any() & ~loads.occupied.any()),
        ]
        m.d.sync += self.next.eq(self.next + compute.factors_taken)
        for index, bit in enumerate(self.unread):
            with m.If(mms.i.valid & mms.i.ready & (mms.place == index)):
                m.d.sync += bit.eq(1)
            with m.Elif(compute.factors_taken & (self.next == index)):
                m.d.sync += bit.eq(0)

        # An access waits for all mm and loads in flight, because each was issued before it.
        clashes = []
        for mm, pending, unread in zip(mms.items, mms.occupied, self.unread, strict=True):
            clashes.append(pending & _overlap(access.registers, mm.accumulators))
            clashes.append(unread & access.writes & _overlap(access.registers, mm.factors))
        for load, pending in zip(loads.items, loads.occupied, strict=True):
            clashes.append(pending & _overlap(access.registers, load))
        if self._flights:
            clashes = [Cat(clashes).any() & ~access.results_only]
            clashes += [
                item.valid & ~item.to_predicate & _holds(access.registers, item.target) for item in self.in_flight
            ]
            clashes += [
                item.valid & item.to_predicate & self.job_reads.guard & (item.target[:3] == self.job_reads.predicate)
                for item in self.in_flight
            ]
            self._clear_arithmetic(m)
        m.d.comb += access.clear.eq(~(access.valid & Cat(clashes).any()))
        self._release(m)
        return m

    def _clear_arithmetic(self, m):
        """Answers ``arithmetic``: exactly for loads and jobs, and for multiplies by blocks of registers."""
        operation, mms, loads = self.arithmetic.operation, self.mms, self.loads
        blocks = -(-self._params.regs // _BLOCK)
        accumulators, factors = (
            [Signal(blocks, name=f"{name}{index}") for index in range(len(mms.items))]
            for name in ("accumulator_blocks", "factor_blocks")
        )
        entering = mms.i.payload
        for index in range(len(mms.items)):
            with m.If(mms.i.valid & mms.i.ready & (mms.place == index)):
                m.d.sync += [
                    accumulators[index].eq(_blocks(entering.accumulators, blocks)),
                    factors[index].eq(_blocks(entering.factors, blocks)),
                ]
        written, read = Signal(blocks), Signal(blocks)  # by multiplies in flight
        m.d.comb += [
            written.eq(reduce(or_, (Mux(mms.occupied[n], value, 0) for n, value in enumerate(accumulators)))),
            read.eq(reduce(or_, (Mux(self.unread[n], value, 0) for n, value in enumerate(factors)))),
        ]
        writes = ~operation.to_predicate
        used = [(operation[name], operation.reads[n]) for n, name in enumerate("abc")] + [(operation.target, writes)]
        clashes = [valid & written.bit_select(register // _BLOCK, 1) for register, valid in used]
        clashes.append(writes & read.bit_select(operation.target // _BLOCK, 1))
        for load, pending in zip(loads.items, loads.occupied, strict=True):
            clashes += [pending & valid & _holds(load, register) for register, valid in used]
        # A job begins to read when the one before has read, unless a slot is between: then both are waited for.
        # Offsets are read first, all at once.
        reading, several, job = Signal(), Signal(), Signal(JobReadsLayout(self._params))
        locating = Signal()
        m.d.sync += locating.eq(self.job_issued | (locating & ~self.offsets_read))
        with m.If(self.job_issued):
            m.d.sync += [
                reading.eq(1),
                several.eq(reading & ~self.jobs_read & self._params.paced),
                job.eq(self.job_reads),
            ]
        with m.Elif(self.jobs_read):
            m.d.sync += [reading.eq(0), several.eq(0)]
        clashes.append(reading & (several | self._disturbs(operation, job, locating)))
        # A job that is being issued has the registers of a load or an mm as well.
        held, factors = self.job_reads, self.mm_registers.payload.factors
        of_held = Cat(valid & ~held.stores & _holds(held.moved, register) for register, valid in used).any()
        of_held |= self.multiplies & writes & _holds(factors, operation.target)
        of_held |= self._disturbs(operation, held, 1)
        clashes.append(self.issuing & (operation.turn == self.turn) & of_held)
        m.d.comb += self.arithmetic.clear.eq(~Cat(clashes).any())

    @staticmethod
    def _disturbs(operation, job, locates):
        """Whether an operation writes what a job reads, its offsets only if it ``locates``."""
        return Mux(
            operation.to_predicate,
            job.guard & (job.predicate == operation.target[:3]),
            (_holds(job.offsets, operation.target) & locates) | (job.stores & _holds(job.moved, operation.target)),
        )

    def _release(self, m):
        """The next mm reads its factors when no mm before it, and no load, still writes them.

        It waits for all loads that overlap it. A load that was issued after it does not overlap, because its writes
        would not have been clear.
        """
        mms, loads, compute = self.mms, self.loads, self.compute
        # The next mm is looked up one cycle ahead: selecting and comparing it in one cycle would take too long.
        following, upcoming = self.following, Signal.like(self.next)
        m.d.comb += upcoming.eq(self.next + compute.factors_taken)
        with m.Switch(upcoming):
            for index, item in enumerate(mms.items):
                with m.Case(index):
                    m.d.sync += [following.eq(item), self.following_valid.eq(self.unread[index])]
        blocked = [
            pending & ~unread & _overlap(following.factors, mm.accumulators)
            for mm, pending, unread in zip(mms.items, mms.occupied, self.unread, strict=True)
        ]
        for load, pending in zip(loads.items, loads.occupied, strict=True):
            blocked.append(pending & (_overlap(following.factors, load) | _overlap(following.accumulators, load)))
        # Once set, it remains set until the factors are read.
        m.d.sync += compute.factors_ready.eq(~compute.factors_taken & self.following_valid & ~Cat(blocked).any())


def _holds(registers, register):
    return (registers.first <= register) & (register <= registers.last)


def _blocks(registers, count):
    """Which blocks of registers have one of ``registers``."""
    first, last = registers.first // _BLOCK, registers.last // _BLOCK
    return Cat((first <= block) & (block <= last) for block in range(count))


def _overlap(one, other):
    return (one.first <= other.last) & (other.first <= one.last)
