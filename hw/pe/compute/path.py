"""Compute: the side of the processing engine that multiplies; columns come in, products go to the register file."""

from itertools import pairwise

from amaranth import Cat, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.fork import Fork
from ...lib.stream import Queue
from ..layouts import ColumnsLayout, MultiplyLayout
from ..sharing import sharing_code
from .broadcast import Broadcaster
from .factors import FactorFetcher
from .spread import Spread, writers

__all__ = ["Compute"]


class _ProductLayout(data.StructLayout):
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


class Compute(wiring.Component):
    """Multiplies the rows of A, in the registers of the threads, with columns of B.

    A step sets off when its product register is not written by a step under way, and, of the first step of an mm, when
    the factors are there. From then on nothing stops it. In cycles after the one in which it sets off:

    === ===========================================================================
     1  it is in a register, before it fans out
     2  units are spread in two stages; products are read
     3  the array is fed
     …  ``array.LATENCY`` cycles
     n  results are written to the register file; ``mm_done`` with the last of an mm
    === ===========================================================================

    Throughput: one step a cycle, without a bubble between instructions, if an mm has two steps or more, its factors are
    there, and steps of one product register are ``array.LATENCY`` + 2 apart.

    Parameters
    ----------
    params : PeParams
    array : Component
        The multipliers: ``MacArray``, or one with its ports and its ``LATENCY``.

    Members
    -------
    multiplies : In(stream of MultiplyLayout)
        ``mm_in_flight`` wait.
    columns : In(stream of ColumnsLayout)
    product_register, product_enable, product_row, factor_reads, factor_row : ports of RegisterFile
    results_valid, results_register, results_threads, results_data, starved : ports of RegisterFile
    factors_ready, factors_taken, mm_done : ports of Scoreboard
    step : Out(1)
        Strobe: a step sets off that has a column.
    stall_columns : Out(1)
        Strobe, as the following: nothing sets off. There is an mm, and no step of it to broadcast.
    stall_factors : Out(1)
        The first step of an mm waits for factors.
    stall_product : Out(1)
        A step waits for one before it with the same product register.
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
        self.stages = [Signal(_ProductLayout(params), name=f"stage{n + 1}") for n in range(self.latency)]
        row = data.ArrayLayout(32, params.threads)
        register = unsigned(params.reg_width)
        super().__init__(
            {
                "multiplies": In(stream.Signature(MultiplyLayout(params))),
                "columns": In(stream.Signature(ColumnsLayout(params))),
                "product_register": Out(register),
                "product_enable": Out(1),
                "product_row": In(row),
                "factor_reads": Out(stream.Signature(register, always_ready=True)),
                "factor_row": In(row),
                "results_valid": Out(1),
                "results_register": Out(register),
                "results_threads": Out(params.threads),
                "results_data": Out(row),
                "starved": In(1),
                "factors_ready": In(1),
                "factors_taken": Out(1),
                "mm_done": Out(1),
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
        connect(m, factors=self.factors.reads, compute=flipped(self.factor_reads))
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
            factors.ready.eq(self.factors_ready),
            factors.row.eq(self.factor_row),
            self.factors_taken.eq(factors.taken),
        ]

    def _set_off(self, m):
        steps, factors = self.broadcaster.steps, self.factors
        step = steps.p
        lacks_factors, lacks_product, goes = Signal(), Signal(), Signal()
        # Products are read two cycles after a step sets off, and must have been written before.
        unwritten = [stage.on.any() & (stage.register == step.register) for stage in self.stages[: self.latency - 2]]
        m.d.comb += [
            lacks_factors.eq(step.first & ~factors.held),
            lacks_product.eq(step.on.any() & Cat(unwritten).any()),
            steps.ready.eq(~lacks_factors & ~lacks_product & ~self.starved),
            goes.eq(steps.valid & steps.ready),
            factors.claim.eq(goes & step.first),
            self.step.eq(goes & step.on.any()),
            self.stall_columns.eq(self.broadcaster.busy & ~steps.valid),
            self.stall_factors.eq(steps.valid & lacks_factors),
            self.stall_product.eq(steps.valid & ~lacks_factors & lacks_product),
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

    def _multiply(self, m):
        array, spread, factors, stages = self.array, self.spread, self.factors, self.stages
        spreading, reading, feeding, finishing, done = (
            stages[0],
            stages[1],
            stages[2],
            stages[self.latency - 2],
            stages[self.latency - 1],
        )
        m.d.comb += [
            spread.ka.eq(spreading.ka),
            spread.kb.eq(spreading.kb),
            self.product_register.eq(reading.register),
            self.product_enable.eq(reading.on.any()),
            factors.use.eq(reading.first),
            array.type.eq(feeding.type),
            array.kb.eq(feeding.kb),
            array.a.eq(factors.o),
            array.b.eq(spread.o),
            array.accumulators.eq(self.product_row),
            self.results_register.eq(done.register),
            self.results_data.eq(array.o),
            self.mm_done.eq(done.last),
        ]
        code = sharing_code(finishing.ka, finishing.kb)
        m.d.sync += [
            self.results_valid.eq(finishing.on.any()),
            self.results_threads.eq(writers(code, finishing.on, self._params.threads)),
        ]
