"""Compute path: columns come in and are multiplied, results go to the register file."""

from itertools import pairwise

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.fork import Fork
from ...lib.stream import Queue
from ..layouts import ColumnsLayout, MultiplyLayout
from ..sharing import sharing_code
from ..signatures import ComputeRegistersSignature, MultiplyOrderSignature
from .broadcast import Broadcaster
from .factors import FactorFetcher
from .spread import Spread, writers

__all__ = ["ComputePath"]


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
