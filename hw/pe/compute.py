"""Factors: reads the rows of A for the next mm while the current one multiplies."""

from itertools import pairwise

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.hdl import Module as MacModule
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..dot_product.integer_row import IntegerRow
from ..dot_product.row import DotRow
from ..lib.logic import chosen
from ..lib.routing import Fork
from ..lib.stream import Queue
from .broadcast import STEP_UNITS, Broadcaster, place_of_unit
from .layouts import (
    SHARINGS,
    ColumnsLayout,
    ComputeRegistersSignature,
    MultiplyLayout,
    MultiplyOrderSignature,
    of_sharing,
    sharing_code,
)

__all__ = ["ComputePath", "FactorFetcher", "MacArray", "Spread", "writers"]


class FactorFetcher(wiring.Component):
    """Two sets of factor registers for all threads: one in use, one for the next mm.

    The next mm's F registers are read, one a cycle, as soon as the scoreboard lets them and the set of before has been
    claimed. ``held`` says, from the cycle after the first read on, that a first step may claim them; they are in use
    three cycles after the claim, when they are surely there. So mm of two steps follow one another without a bubble.

    Members
    -------
    registers : In(stream of unsigned(params.reg_width))
        First factor register of each mm, in order.
    ready : In(1)
        From the scoreboard: the next mm may read.
    taken : Out(1)
        Strobe to the scoreboard, with the first read.
    reads : Out(stream of unsigned(params.reg_width), always ready)
    row : In(array of params.threads 32)
        One cycle after ``reads``.
    held : Out(1)
    claim : In(1)
        Strobe, only while ``held``: the first step of the mm sets off.
    use : In(1)
        Strobe, two cycles after ``claim``: from the next cycle on, ``o`` holds the factors of this mm.
    o : Out(array of params.threads params.unit_bits)
        Registered; a factor's first register in the low bits.
    """

    def __init__(self, params):
        self._params = params
        register = unsigned(params.reg_width)
        super().__init__(
            {
                "registers": In(stream.Signature(register)),
                "ready": In(1),
                "taken": Out(1),
                "reads": Out(stream.Signature(register, always_ready=True)),
                "row": In(data.ArrayLayout(32, params.threads)),
                "held": Out(1),
                "claim": In(1),
                "use": In(1),
                "o": Out(data.ArrayLayout(params.unit_bits, params.threads)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, threads = self._params.factor_regs, self._params.threads
        begins = Signal()
        m.d.comb += [
            begins.eq(self.registers.valid & self.ready & ~self.held),
            self.registers.ready.eq(self.ready & ~self.held),
            self.taken.eq(begins),
            self.reads.valid.eq(begins),
            self.reads.p.eq(self.registers.p),
        ]
        with m.If(begins):
            m.d.sync += self.held.eq(1)
        with m.Elif(self.claim):
            m.d.sync += self.held.eq(0)

        arrives = Signal(count)  # the row of this register is on ``row``
        m.d.sync += arrives.eq((arrives << 1) | begins)
        if count == 2:
            second = Signal(self._params.reg_width)
            m.d.sync += second.eq(self.registers.p + 1)
            with m.If(arrives[0]):
                m.d.comb += [self.reads.valid.eq(1), self.reads.p.eq(second)]

        following = Signal(data.ArrayLayout(data.ArrayLayout(32, count), threads))
        for index in range(count):
            with m.If(arrives[index]):
                m.d.sync += [following[thread][index].eq(self.row[thread]) for thread in range(threads)]
        with m.If(self.use):
            m.d.sync += self.o.eq(following)
        return m


class Spread(wiring.Component):
    """Thread i takes unit i mod (ka·kb).

    Latency: ``LATENCY`` cycles. Throughput: one step a cycle; nothing stalls it.

    Few places of a step are ever for a thread: thread 15 takes what is at 0, 1, 3, 7, 8 or 15. Which of them is found
    in the first cycle, and taken in the second.

    Members
    -------
    ka, kb : In(2)
        As stored.
    units : In(array of STEP_UNITS params.unit_bits)
        Each at its ``place_of_unit``.
    o : Out(array of params.threads params.unit_bits)
        Registered.
    """

    LATENCY = 2

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "ka": In(2),
                "kb": In(2),
                "units": In(data.ArrayLayout(params.unit_bits, STEP_UNITS)),
                "o": Out(data.ArrayLayout(params.unit_bits, params.threads)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        code = sharing_code(self.ka, self.kb)
        units = Signal.like(self.units)
        m.d.sync += units.eq(self.units)
        choices = {}  # units of a thread by sharing -> which of them it is now
        for thread in range(self._params.threads):
            taken = tuple(place_of_unit(ka, kb, thread % (ka * kb)) for ka, kb in SHARINGS)
            if taken not in choices:
                choices[taken] = self._choice(m, code, taken, f"choice{thread}")
            m.d.sync += self.o[thread].eq(
                chosen(choices[taken], dict(enumerate(units[unit] for unit in sorted(set(taken)))))
            )
        return m

    @staticmethod
    def _choice(m, code, taken, name):
        """The number of the unit that is taken among those that ever are, for the sharing of the cycle before."""
        numbers = {unit: number for number, unit in enumerate(sorted(set(taken)))}
        choice = Signal(range(len(numbers)), name=name)
        for bit in range(len(choice)):
            has_bit = {sharing for sharing, unit in zip(SHARINGS, taken, strict=True) if numbers[unit] >> bit & 1}
            m.d.sync += choice[bit].eq(of_sharing(code, lambda ka, kb, has_bit=has_bit: (ka, kb) in has_bit))
        return choice


def writers(code, on, threads):
    """Threads that a step writes: the first member of every group for a column that is on, in whole groups.

    Parameters
    ----------
    code : Value
        Of ``sharing_code``.
    on : Value
        Columns that are on, by member qa.
    threads : int

    Returns
    -------
    Value
        One bit for each thread.
    """
    return Cat(
        Cat(_writes(code, thread, threads, member) & on[member] for member in range(4)).any()
        for thread in range(threads)
    )


def _writes(code, thread, threads, member):
    """Whether the thread holds the accumulators of this member of its group."""

    def writes(ka, kb):
        group, place = divmod(thread, ka * kb)
        return group < threads // (ka * kb) and place == member * kb

    return of_sharing(code, writes)


class MacArray(wiring.Component):
    """A dot-product unit for each thread; kb neighbours share an accumulator (docs/pe.md, "mm" and "Numbers").

    Latency: ``LATENCY`` cycles, for all types and kb; without floats it is shorter, and accumulators come
    ``ACCUMULATORS_AFTER`` cycles behind the rest. Throughput: one step a cycle; nothing stalls it.

    Parameters
    ----------
    params : PeParams

    Members
    -------
    type : In(4)
        ``MmType``, one of ``params.types``.
    select : In(2)
        kb, as stored.
    a, b : In(array of params.threads params.unit_bits)
        Of every thread its elements of A, and those of its column.
    accumulators : In(array of params.threads 32)
    others : In(array of params.threads 32) if not params.floats
        Of each accumulator or of its other word one is zero; the other counts.
    o : Out(array of params.threads 32)
        For the first of every kb threads, if all of them are there: its accumulator with all their products added. The
        other accumulators do not matter, and the other results mean nothing.
    """

    def __init__(self, params):
        sizes = {"count": params.threads, "unit_bytes": params.unit_bytes, "sizes": (1, 2, 3, 4)}
        if params.floats:
            self._row = DotRow(**sizes)
        else:
            wide = "i16" in params.types
            self._row = IntegerRow(**sizes, wide=wide, free_adders=params.free_adders)
        self.LATENCY, self.ACCUMULATORS_AFTER = self._row.LATENCY, self._row.ACCUMULATORS_AFTER
        super().__init__(dict(self._row.signature.members))

    def elaborate(self, platform):
        m = MacModule()
        m.submodules.row = self._row
        wiring.connect(m, wiring.flipped(self), self._row)
        return m


class _ResultLayout(data.StructLayout):
    """What is known of a step while it is under way to the register file."""

    def __init__(self, params):
        super().__init__(
            {
                "on": unsigned(4),  # by member qa; 0 in a cycle without a step
                "register": unsigned(params.reg_width),
                "ka": 2,  # as stored
                "kb": 2,  # as stored
                "type": unsigned(4),
                "first": 1,
                "last": 1,
            }
        )


class ComputePath(wiring.Component):
    """Multiplies the rows of A, in the registers of the threads, with columns of B.

    A step sets off when its accumulator is not written by a step under way, and, of the first step of an mm, when the
    factors are there. From then on nothing stops it. In cycles after the one in which it sets off:

    === ===========================================================================
     1  it is in a register, before it fans out
     2  the unit of each thread is found, then taken; accumulators are read, or ``ACCUMULATORS_AFTER`` cycles later
     3  the array is fed
     …  ``array.LATENCY`` cycles
     n  results are written to the register file; ``mm_done`` with the last of an mm
    === ===========================================================================

    Throughput: one step a cycle, without a bubble between instructions, if an mm has two steps or more, its factors are
    there, and steps of one accumulator are ``array.LATENCY`` + 2 apart, less ``array.ACCUMULATORS_AFTER``.

    Parameters
    ----------
    params : PeParams
    array : Component
        The multipliers: ``MacArray``, or one with its ports, its ``LATENCY`` and ``ACCUMULATORS_AFTER``. One with a
        port ``others`` gets both rows of accumulators, of which one is zero: that is a reset in place of a choice.

    Members
    -------
    multiplies : In(stream of MultiplyLayout)
        ``mm_in_flight`` wait.
    columns : In(stream of ColumnsLayout)
    registers : Out(ComputeRegistersSignature)
    order : Out(MultiplyOrderSignature)
    step : Out(1)
        Strobe: a step sets off that has a column.
    stall_columns : Out(1)
        Strobe, as the following: nothing sets off. There is an mm, and no step of it to broadcast.
    stall_factors : Out(1)
        The first step of an mm waits for factors.
    stall_product : Out(1)
        A step waits for one before it with the same accumulator.
    """

    def __init__(self, params, array):
        self._params = params
        self.array = array
        self.broadcaster = Broadcaster(params)
        self.factors = FactorFetcher(params)
        self.spread = Spread(params)
        #: Cycles from a step's setting off to its results.
        self.latency = 1 + self.spread.LATENCY + array.LATENCY
        # Element n is the step that set off n + 1 cycles ago.
        self.stages = [Signal(_ResultLayout(params), name=f"stage{n + 1}") for n in range(self.latency)]
        super().__init__(
            {
                "multiplies": In(stream.Signature(MultiplyLayout(params))),
                "columns": In(stream.Signature(ColumnsLayout(params))),
                "registers": Out(ComputeRegistersSignature(params)),
                "order": Out(MultiplyOrderSignature()),
                "step": Out(1),
                "stall_columns": Out(1),
                "stall_factors": Out(1),
                "stall_product": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.broadcaster = self.broadcaster
        m.submodules.factors = self.factors
        m.submodules.spread = self.spread
        m.submodules.array = self.array
        connect(m, compute=flipped(self.columns), broadcaster=self.broadcaster.columns)
        connect(m, factors=self.factors.reads, registers=flipped(self.registers.factor_reads))
        self._hand_out(m)
        self._set_off(m)
        self._multiply(m)
        return m

    def _hand_out(self, m):
        """Columns and factors of an mm come each in their own time."""
        params, factors = self._params, self.factors
        m.submodules.fork = fork = Fork(MultiplyLayout(params), 2)
        m.submodules.to_broadcast = to_broadcast = Queue(MultiplyLayout(params), params.mm_in_flight)
        m.submodules.to_factors = to_factors = Queue(unsigned(params.reg_width), params.mm_in_flight)
        connect(m, compute=flipped(self.multiplies), fork=fork.i)
        connect(m, fork=fork.o[0], to_broadcast=to_broadcast.i)
        connect(m, to_broadcast=to_broadcast.o, broadcaster=self.broadcaster.multiplies)
        connect(m, to_factors=to_factors.o, factors=factors.registers)
        m.d.comb += [
            to_factors.i.valid.eq(fork.o[1].valid),
            to_factors.i.p.eq(fork.o[1].p.ra),
            fork.o[1].ready.eq(to_factors.i.ready),
            factors.ready.eq(self.order.factors_ready),
            factors.row.eq(self.registers.factor_row),
            self.order.factors_taken.eq(factors.taken),
        ]

    def _set_off(self, m):
        steps, factors = self.broadcaster.steps, self.factors
        step = steps.p
        lacks_factors, lacks_accumulator, goes = Signal(), Signal(), Signal()
        unwritten = self._find_unwritten(m, goes)
        m.d.comb += [
            lacks_factors.eq(step.first & ~factors.held),
            lacks_accumulator.eq(step.on.any() & unwritten),
            steps.ready.eq(~lacks_factors & ~lacks_accumulator & ~self.registers.starved),
            goes.eq(steps.valid & steps.ready),
            factors.claim.eq(goes & step.first),
            self.step.eq(goes & step.on.any()),
            self.stall_columns.eq(self.broadcaster.busy & ~steps.valid),
            self.stall_factors.eq(steps.valid & lacks_factors),
            self.stall_product.eq(steps.valid & ~lacks_factors & lacks_accumulator),
        ]
        first = self.stages[0]
        m.d.sync += [first[name].eq(step[name]) for name in ("register", "ka", "kb", "type")]
        m.d.sync += [
            first.on.eq(step.on & goes.replicate(4)),
            first.first.eq(step.first & goes),
            first.last.eq(step.last & goes),
        ]
        m.d.sync += [later.eq(earlier) for earlier, later in pairwise(self.stages)]
        with m.If(goes):
            m.d.sync += self.spread.units.eq(step.units)

    def _find_unwritten(self, m, goes):
        """Whether a step under way writes the accumulator of the one that is to set off. A register: many wait for it.

        Accumulators are read two cycles after a step sets off, or later, and must have been written before.
        """
        broadcaster, step = self.broadcaster, self.broadcaster.steps.p
        unread = 2 + self.array.ACCUMULATORS_AFTER
        same, before = (Signal(self.latency - unread, name=name) for name in ("same", "before"))  # by stage
        unwritten = Signal()
        # Those that the next step, or this one, finds a stage further on.
        leaving = [(step.on & goes.replicate(4), step.register), *((stage.on, stage.register) for stage in self.stages)]
        with m.If(broadcaster.begins):
            for n, (on, register) in enumerate(leaving[: len(same)]):
                m.d.comb += same[n].eq(on.any() & (register == broadcaster.register))
        with m.Else():
            m.d.comb += same.eq(before << 1)
        m.d.sync += [before.eq(same), unwritten.eq(same.any())]
        return unwritten

    def _multiply(self, m):
        array, spread, factors, stages = self.array, self.spread, self.factors, self.stages
        spreading, _, feeding, *_, finishing, done = stages
        reading, fed = stages[1 + array.ACCUMULATORS_AFTER :][:2]
        m.d.comb += [
            spread.ka.eq(spreading.ka),
            spread.kb.eq(spreading.kb),
            self.registers.accumulator_register.eq(reading.register),
            self.registers.accumulator_enable.eq(reading.on.any()),
            factors.use.eq(stages[1].first),
            array.type.eq(feeding.type),
            array.select.eq(feeding.kb),
            array.a.eq(factors.o),
            array.b.eq(spread.o),
            self.registers.results_register.eq(done.register),
            self.registers.results_data.eq(array.o),
            self.order.mm_done.eq(done.last),
        ]
        rows, odd = self.registers.accumulator_rows, fed.register[0]
        if "others" in array.signature.members:
            m.d.comb += [
                array.accumulators.eq(Mux(odd, 0, rows[0].as_value())),
                array.others.eq(Mux(odd, rows[1].as_value(), 0)),
            ]
        else:
            m.d.comb += array.accumulators.eq(Mux(odd, rows[1], rows[0]))
        code = sharing_code(finishing.ka, finishing.kb)
        m.d.sync += [
            self.registers.results_valid.eq(finishing.on.any()),
            self.registers.results_threads.eq(writers(code, finishing.on, self._params.threads)),
        ]
