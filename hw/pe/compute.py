"""Compute path: columns are multiplied with the rows of A, and results are written to the register file."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..dot_product.integer_row import IntegerRow
from ..dot_product.row import DotRow
from ..lib.logic import mux_tree
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

__all__ = ["ComputePath", "FactorFetcher", "Spread", "mac_array", "multiply_latency", "writers"]


def mac_array(params):
    """The multipliers: a row of dot-product units, one for each thread.

    ``kb`` neighboring threads share an accumulator (docs/pe.md, "mm" and "Numbers"). Without floats, the latency is
    shorter and the accumulators are needed ``ACCUMULATORS_AFTER`` cycles later.
    """
    sizes = {"count": params.threads, "unit_bytes": params.unit_bytes, "sizes": (1, 2, 3, 4)}
    if params.floats:
        return DotRow(**sizes)
    return IntegerRow(**sizes, wide="i16" in params.types, free_adders=params.dsp_adders)


def multiply_latency(array):
    """Cycles from the start of a step to the write of its results, with this array."""
    return 1 + Spread.LATENCY + array.LATENCY


class FactorFetcher(wiring.Component):
    """Two sets of factor registers for all threads: one in use, one for the next mm.

    The F registers of the next mm are read, one a cycle, as soon as the scoreboard allows and the previous set has been
    claimed. From the cycle after the first read on, ``available`` allows a first step to claim the set. It is in use
    three cycles after the claim, when all of it has been read. Thus mm of two steps follow each other without a bubble.
    """

    def __init__(self, params):
        self._params = params
        register = unsigned(params.reg_width)
        super().__init__(
            {
                "registers": In(stream.Signature(register)),  # first factor register of each mm, in order
                "ready": In(1),  # from the scoreboard: the next mm may read
                "taken": Out(1),  # strobe to the scoreboard, with the first read
                "reads": Out(stream.Signature(register, always_ready=True)),
                "row": In(data.ArrayLayout(32, params.threads)),  # one cycle after ``reads``
                "available": Out(1),
                "claim": In(1),  # strobe, only while ``available``: the first step of the mm starts
                "use": In(1),  # strobe, two cycles after ``claim``: from the next cycle on, ``o`` has these factors
                "o": Out(data.ArrayLayout(params.unit_bits, params.threads)),  # registered; first register in low bits
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, threads = self._params.factor_regs, self._params.threads
        begins = Signal()
        m.d.comb += [
            begins.eq(self.registers.valid & self.ready & ~self.available),
            self.registers.ready.eq(self.ready & ~self.available),
            self.taken.eq(begins),
            self.reads.valid.eq(begins),
            self.reads.payload.eq(self.registers.payload),
        ]
        with m.If(begins):
            m.d.sync += self.available.eq(1)
        with m.Elif(self.claim):
            m.d.sync += self.available.eq(0)

        arrives = Signal(count)  # the row of this register is at ``row``
        m.d.sync += arrives.eq((arrives << 1) | begins)
        if count == 2:
            second = Signal(self._params.reg_width)
            m.d.sync += second.eq(self.registers.payload + 1)
            with m.If(arrives[0]):
                m.d.comb += [self.reads.valid.eq(1), self.reads.payload.eq(second)]

        following = Signal(data.ArrayLayout(data.ArrayLayout(32, count), threads))
        for index in range(count):
            with m.If(arrives[index]):
                m.d.sync += [following[thread][index].eq(self.row[thread]) for thread in range(threads)]
        with m.If(self.use):
            m.d.sync += self.o.eq(following)
        return m


class Spread(wiring.Component):
    """Gives thread i unit i mod (ka·kb) of a step.

    Few units of a step can be for a given thread: thread 15 only uses units 0, 1, 3, 7, 8 and 15. The select is
    registered in the first cycle, the unit in the second.

    Latency: ``LATENCY`` cycles. Throughput: one step a cycle, without stalls.
    """

    LATENCY = 2

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "ka": In(2),  # as stored
                "kb": In(2),  # as stored
                "units": In(data.ArrayLayout(params.unit_bits, STEP_UNITS)),  # each at its ``place_of_unit``
                "o": Out(data.ArrayLayout(params.unit_bits, params.threads)),  # registered
            }
        )

    def elaborate(self, platform):
        m = Module()
        code = sharing_code(self.ka, self.kb)
        units = Signal.like(self.units)
        m.d.sync += units.eq(self.units)
        selects = {}  # by units of a thread for every sharing
        for thread in range(self._params.threads):
            sources = tuple(place_of_unit(ka, kb, thread % (ka * kb)) for ka, kb in SHARINGS)
            if sources not in selects:
                selects[sources] = self._select(m, code, sources, f"choice{thread}")
            m.d.sync += self.o[thread].eq(
                mux_tree(selects[sources], dict(enumerate(units[unit] for unit in sorted(set(sources)))))
            )
        return m

    @staticmethod
    def _select(m, code, sources, name):
        """Number of the unit among all that the thread can use, for the sharing of the previous cycle."""
        numbers = {unit: number for number, unit in enumerate(sorted(set(sources)))}
        select = Signal(range(len(numbers)), name=name)
        for bit in range(len(select)):
            has_bit = {sharing for sharing, unit in zip(SHARINGS, sources, strict=True) if numbers[unit] >> bit & 1}
            m.d.sync += select[bit].eq(of_sharing(code, lambda ka, kb, has_bit=has_bit: (ka, kb) in has_bit))
        return select


def writers(code, on, threads):
    """Threads that a step writes: the first member of every group for a column that is on, in whole groups.

    Parameters
    ----------
    code : Value
        From ``sharing_code``.
    on : Value
        Columns that are on, by member qa.
    threads : int

    Returns
    -------
    Value
        One bit for each thread.
    """

    def writes(thread, member):
        def holds(ka, kb):
            group, place = divmod(thread, ka * kb)
            return group < threads // (ka * kb) and place == member * kb

        return of_sharing(code, holds) & on[member]

    return Cat(Cat(writes(thread, member) for member in range(4)).any() for thread in range(threads))


class _ResultLayout(data.StructLayout):
    """A step on its way to the register file."""

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

    A step starts when no step in flight still writes its accumulator and, for the first step of an mm, when the
    factors are available. It does not stall afterwards. In cycles after its start:

    === ===========================================================================
     1  it is registered, before it fans out
     2  the unit of each thread is selected; accumulators are read, or ``ACCUMULATORS_AFTER`` cycles later
     3  inputs of the array are valid
     …  ``array.LATENCY`` cycles
     n  results are written to the register file; ``mm_done`` with the last of an mm
    === ===========================================================================

    Throughput: one step a cycle, without a bubble between instructions, if an mm has two steps or more, its factors are
    available, and steps of one accumulator are ``array.LATENCY`` + 2 apart, less ``array.ACCUMULATORS_AFTER``.

    Parameters
    ----------
    params : PeParams
    array : Component
        :func:`mac_array`, or another with its ports, ``LATENCY`` and ``ACCUMULATORS_AFTER``. With a port ``others`` it
        gets both rows of accumulators, one of which is zero: a reset replaces a multiplexer.
    arithmetic_latency : int or None
        Cycles from the start of an operation of the arithmetic to the write of its result; None without arithmetic.
    """

    def __init__(self, params, array, arithmetic_latency=None):
        self._params = params
        self._array = array
        self._broadcaster, self._factors, self._spread = Broadcaster(params), FactorFetcher(params), Spread(params)
        #: Cycles from the start of a step to its results.
        self._latency = multiply_latency(array)
        self._other_latency = arithmetic_latency
        # Element n is the step that started n + 1 cycles ago.
        self._stages = [Signal(_ResultLayout(params), name=f"stage{n + 1}") for n in range(self._latency)]
        super().__init__(
            {
                "multiplies": In(stream.Signature(MultiplyLayout(params))),  # to queues of ``mm_in_flight``
                "columns": In(stream.Signature(ColumnsLayout(params))),
                "registers": Out(ComputeRegistersSignature(params)),
                "order": Out(MultiplyOrderSignature()),
                "step": Out(1),  # strobe: a step starts that has a column
                # By bank. writes_ahead: a step writes it when an operation of the arithmetic would that starts now.
                # reserved: such an operation, started before, writes it when a step would that starts now.
                "writes_ahead": Out(2),
                "reserved": In(2),
                # Strobes of cycles without a start:
                "stall_columns": Out(1),  # there is an mm, but no step of it
                "stall_factors": Out(1),  # the first step of an mm waits for factors
                "stall_product": Out(1),  # a step waits for an earlier one with the same accumulator
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, factors = self._params, self._factors
        m.submodules.broadcaster = broadcaster = self._broadcaster
        m.submodules.factors = factors
        m.submodules.spread = self._spread
        m.submodules.array = self._array
        # Columns and factors of an mm are processed independently.
        m.submodules.fork = fork = Fork(MultiplyLayout(params), 2)
        m.submodules.to_broadcast = to_broadcast = Queue(MultiplyLayout(params), params.mm_in_flight)
        m.submodules.to_factors = to_factors = Queue(unsigned(params.reg_width), params.mm_in_flight)
        connect(m, compute=flipped(self.columns), broadcaster=broadcaster.columns)
        connect(m, factors=factors.reads, registers=flipped(self.registers.factor_reads))
        connect(m, compute=flipped(self.multiplies), fork=fork.i)
        connect(m, fork=fork.o[0], to_broadcast=to_broadcast.i)
        connect(m, to_broadcast=to_broadcast.o, broadcaster=broadcaster.multiplies)
        connect(m, to_factors=to_factors.o, factors=factors.registers)
        m.d.comb += [
            to_factors.i.valid.eq(fork.o[1].valid),
            to_factors.i.payload.eq(fork.o[1].payload.ra),
            fork.o[1].ready.eq(to_factors.i.ready),
            factors.ready.eq(self.order.factors_ready),
            factors.row.eq(self.registers.factor_row),
            self.order.factors_taken.eq(factors.taken),
        ]
        self._start(m)
        self._multiply(m)
        return m

    def _start(self, m):
        steps, factors = self._broadcaster.steps, self._factors
        step = steps.payload
        lacks_factors, lacks_accumulator, starts = Signal(), Signal(), Signal()
        later = self._other_latency is not None and self._other_latency > self._latency
        meets = self.reserved.bit_select(step.register[0], 1) if later else 0
        unwritten = self._find_unwritten(m, starts)
        m.d.comb += [
            lacks_factors.eq(step.first & ~factors.available),
            lacks_accumulator.eq(step.on.any() & unwritten),
            steps.ready.eq(~lacks_factors & ~lacks_accumulator & ~self.registers.starved & ~meets),
            starts.eq(steps.valid & steps.ready),
            factors.claim.eq(starts & step.first),
            self.step.eq(starts & step.on.any()),
            self.stall_columns.eq(self._broadcaster.busy & ~steps.valid),
            self.stall_factors.eq(steps.valid & lacks_factors),
            self.stall_product.eq(steps.valid & ~lacks_factors & lacks_accumulator),
        ]
        if self._other_latency is not None and self._other_latency < self._latency:
            ahead = self._stages[self._latency - self._other_latency - 1]
            m.d.comb += [self.writes_ahead[bank].eq(ahead.on.any() & (ahead.register[0] == bank)) for bank in range(2)]
        first = self._stages[0]
        m.d.sync += [first[name].eq(step[name]) for name in ("register", "ka", "kb", "type")]
        m.d.sync += [
            first.on.eq(step.on & starts.replicate(4)),
            first.first.eq(step.first & starts),
            first.last.eq(step.last & starts),
        ]
        m.d.sync += [later.eq(earlier) for earlier, later in pairwise(self._stages)]
        with m.If(starts):
            m.d.sync += self._spread.units.eq(step.units)

    def _find_unwritten(self, m, starts):
        """Whether a step in flight writes the accumulator of the next step: a register, because of its fan-out.

        Accumulators are read two cycles after a step starts, or later, and must have been written before.
        """
        broadcaster, step = self._broadcaster, self._broadcaster.steps.payload
        unread = 2 + self._array.ACCUMULATORS_AFTER
        same, before = (Signal(self._latency - unread, name=name) for name in ("same", "before"))  # by stage
        unwritten = Signal()
        # Steps by the stage in which they are in the next cycle.
        leaving = [
            (step.on & starts.replicate(4), step.register),
            *((stage.on, stage.register) for stage in self._stages),
        ]
        with m.If(broadcaster.begins):
            for n, (on, register) in enumerate(leaving[: len(same)]):
                m.d.comb += same[n].eq(on.any() & (register == broadcaster.register))
        with m.Else():
            m.d.comb += same.eq(before << 1)
        m.d.sync += [before.eq(same), unwritten.eq(same.any())]
        return unwritten

    def _multiply(self, m):
        array, spread, factors, stages = self._array, self._spread, self._factors, self._stages
        spreading, _, feeding, *_, finishing, done = stages
        reading, fed = stages[1 + array.ACCUMULATORS_AFTER :][:2]
        registers = self.registers
        code = sharing_code(finishing.ka, finishing.kb)
        m.d.comb += [
            spread.ka.eq(spreading.ka),
            spread.kb.eq(spreading.kb),
            registers.accumulator_register.eq(reading.register),
            registers.accumulator_enable.eq(reading.on.any()),
            factors.use.eq(stages[1].first),
            array.type.eq(feeding.type),
            array.select.eq(feeding.kb),
            array.a.eq(factors.o),
            array.b.eq(spread.o),
            registers.results_register.eq(done.register),
            registers.results_data.eq(array.o),
            self.order.mm_done.eq(done.last),
        ]
        m.d.sync += [
            registers.results_valid.eq(finishing.on.any()),
            registers.results_threads.eq(writers(code, finishing.on, self._params.threads)),
        ]
        rows, odd = registers.accumulator_rows, fed.register[0]
        if "others" in array.signature.members:
            m.d.comb += [
                array.accumulators.eq(Mux(odd, 0, rows[0].as_value())),
                array.others.eq(Mux(odd, rows[1].as_value(), 0)),
            ]
        else:
            m.d.comb += array.accumulators.eq(Mux(odd, rows[1], rows[0]))
