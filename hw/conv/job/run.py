"""Jobs one behind the other through the stages of the engine; each is reported."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BARRIER, BarrierOp
from tilewright.spec.conv import JOB, ConvError

from ...smem.layouts import BarrierRequestLayout, BarrierResultLayout
from ..layouts import ConvEndLayout, PlanLayout, float_flag
from .rules import CheckedJobLayout

__all__ = ["JobRunner"]

#: Stages behind the first one.
_LATER = ("fetch", "compute", "write")
#: What the array needs to know from a step until its sums can be read; a plan without floats has not all of it.
_ARRAY = ("lanes", "pool", "maximum", "granularity", "wide", "x_signed", "k_signed", "x_zero", "k_zero", "floats",
          "brain", "bias")  # fmt: skip


class JobRunner(wiring.Component):
    """Runs jobs in order, and ends them in order, refused ones too (docs/conv.md, "Queue and barrier").

    A job has four stages: its weights are loaded, its feature rows are fetched, it is computed, its results are
    written. Each stage has a plan of its own, and begins when the job before has left it, so that two jobs overlap. A
    job leaves the first stage when all of its stages have begun: so there are never more than two. Its results are
    written when the job before has ended: the results of that can be read then, and its arrival at a barrier is done.
    So nothing that is read for results, the table and the second operand, is read too early. X and K are: what of
    them follows, as ``checked`` says, is asked for when the job before has ended.

    A job that is ``early`` leaves the first stage when its weights have come, and arrives at the second barrier when it
    has, and the job before has ended.

    In lane-private mode slaves' memories have lines of X instead of weights. Of two jobs one of which alone is of that
    mode, the second one begins when the first one has been computed. Sums of floats begin with biases, which come with
    the table: a job that has them is computed when its results can be written.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    checked : In(stream of CheckedJobLayout())
    plans : In(stream of PlanLayout(params))
        One for each of these, in order, both are taken together: so no job that is refused passes one that has not
        begun. Of one that is refused it may be anything.
    load, fetch, compute, write : Out(PlanLayout(params))
        Of the job in each stage; constant from the start of the stage until the next start of it. Registered.
    load_start, fetch_start, compute_start, write_start : Out(1)
        Strobes. All others of a job come later than the first one.
    loading, fetching : In(1)
        Requests of the job in this stage have not been taken; looked at from the cycle after the strobe on.
    alike : Out(1)
        The job that is to be computed next needs the same of the array as the one before it. Registered.
    computing : In(1)
        Not all sums of the job can be read, or with ``alike`` not all steps have been made; likewise.
    written : In(1)
        All results of the job have been accepted by shared memory; likewise.
    came : In(1)
        All that the first stage has asked for has come.
    readable : In(1)
        What was accepted can be read.
    barriers : Out(stream of BarrierRequestLayout)
    barrier_results : In(stream of BarrierResultLayout)
    ended : Out(1)
        Strobe.
    end : Out(ConvEndLayout())
        How a job has ended, with ``ended``.
    """

    def __init__(self, params):
        self._params = params
        smem, plan = params.smem, Out(PlanLayout(params))
        self.held = Signal()  # a job is in the first stage, or has not begun in all others
        self.begun = Signal(data.StructLayout(dict.fromkeys(_LATER, 1)))  # where it has
        self.x_follows = Signal()  # its X is known only when the job before has ended
        self.writing = Signal()  # there is a job in the last stage
        super().__init__(
            {
                "checked": In(stream.Signature(CheckedJobLayout())),
                "plans": In(stream.Signature(PlanLayout(params))),
                **dict.fromkeys(("load", *_LATER), plan),
                **{f"{stage}_start": Out(1) for stage in ("load", *_LATER)},
                **dict.fromkeys(("loading", "came", "fetching", "computing", "written", "readable"), In(1)),
                "barriers": Out(stream.Signature(BarrierRequestLayout(smem))),
                "barrier_results": In(stream.Signature(BarrierResultLayout())),
                "alike": Out(1),
                "ended": Out(1),
                "end": Out(ConvEndLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        computing = Signal()
        m.d.comb += computing.eq(self.computing | self.compute_start)
        m.d.sync += [self.load_start.eq(0), self.ended.eq(0)]
        self._take(m, computing)
        self._go_on(m, computing)
        self._write(m)
        return m

    def _take(self, m, computing):
        """The next job: to the first stage, or to its end."""
        checked, plans = self.checked.payload, self.plans
        there, refused, alone, may_begin, begins, ends = (Signal() for _ in range(6))
        m.d.comb += [
            there.eq(self.checked.valid & plans.valid),
            refused.eq(checked.code != ConvError.NONE),
            alone.eq(plans.payload.lanes ^ self.compute.lanes),  # nothing is held: the job before is computed, or was
            may_begin.eq(~(checked.k_follows & self.writing) & ~(alone & computing)),
            begins.eq(there & ~self.held & ~refused & may_begin),
            ends.eq(there & ~self.held & refused & ~self.writing),
            self.checked.ready.eq(begins | ends),
            plans.ready.eq(begins | ends),
        ]
        loaded = ~self.loading & ~self.load_start & (self.came | ~self.load.early)
        with m.If(self.held & self.begun.as_value().all() & loaded):
            m.d.sync += self.held.eq(0)
        with m.If(begins):
            m.d.sync += [self.load.eq(plans.payload), self.load_start.eq(1), self.held.eq(1), self.begun.eq(0)]
            m.d.sync += self.x_follows.eq(checked.x_follows)
        with m.If(ends):
            m.d.sync += [
                self.end.code.eq(checked.code),
                self.end.field.eq(checked.field),
                self.end.tag.eq(checked.word[JOB["tag"].lsb :][: JOB["tag"].width]),
                self.ended.eq(1),
            ]

    def _go_on(self, m, computing):
        """From the first stage to each of the others, when the job before has left it."""
        biased = float_flag(self._params, self.load, "floats") & self.load.bias
        earlier = self.writing & ~self.begun.write  # the job in the last stage is the one before
        occupied = {
            "fetch": self.fetching | self.fetch_start | (self.x_follows & earlier),
            "compute": computing | (biased & earlier),
            "write": self.writing,
        }
        alike = [self.load[name] == self.compute[name] for name in _ARRAY if name in dict(self.load.shape())]
        m.d.sync += self.alike.eq(self.held & ~self.begun.compute & Cat(alike).all())
        for stage, is_occupied in occupied.items():
            start, plan = getattr(self, f"{stage}_start"), getattr(self, stage)
            begins = Signal(name=f"{stage}_begins")
            m.d.comb += begins.eq(self.held & ~self.begun[stage] & ~is_occupied)
            m.d.sync += start.eq(begins)
            with m.If(begins):
                m.d.sync += [plan.eq(self.load), self.begun[stage].eq(1)]
        with m.If(self.held & ~self.begun.write & ~self.writing):
            m.d.sync += self.writing.eq(1)

    def _write(self, m):
        """The last stage, with the arrivals."""
        plan = self.write
        early, refused = Signal(), Signal()  # the next arrival is that of weights; it has been refused
        m.d.comb += [
            self.barriers.payload.op.eq(BarrierOp.ARRIVE),
            self.barriers.payload.address.eq(plan.barrier + Mux(early, BARRIER.bytes, 0)),
            self.barriers.payload.value.eq(1),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [early.eq(plan.early), refused.eq(0)]
                with m.If(self.write_start):
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.sync += [self.end.tag.eq(plan.tag), self.end.code.eq(ConvError.NONE), self.end.field.eq(0)]
                with m.If(early):
                    with m.If(~self.held | ~self.begun.write):  # not in the first stage
                        m.next = "ARRIVE"
                with m.Elif(self.written & self.readable):
                    m.next = "ARRIVE"
                    with m.If(~plan.signal):
                        m.d.sync += [self.ended.eq(1), self.writing.eq(0)]
                        m.next = "IDLE"
            with m.State("ARRIVE"):
                m.d.comb += self.barriers.valid.eq(1)
                with m.If(self.barriers.ready):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += self.barrier_results.ready.eq(1)
                with m.If(self.barrier_results.valid):
                    failed = refused | self.barrier_results.payload.error
                    m.d.sync += [early.eq(0), refused.eq(failed)]
                    m.next = "RUN"
                    with m.If(~early):
                        m.d.sync += [self.ended.eq(1), self.writing.eq(0)]
                        with m.If(failed):
                            m.d.sync += [self.end.code.eq(ConvError.BARRIER), self.end.field.eq(JOB.index("barrier"))]
                        m.next = "IDLE"
