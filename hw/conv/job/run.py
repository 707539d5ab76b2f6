"""Jobs pass through the stages of the engine, and each is reported."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BARRIER, BarrierOp
from tilewright.spec.conv import JOB, ConvError

from ...smem.layouts import BarrierRequestLayout, BarrierResultLayout
from ..layouts import ConvEndLayout, PlanLayout, float_flag
from .rules import CheckedJobLayout

__all__ = ["JobRunner"]

#: Stages after the first one.
_LATER = ("fetch", "compute", "write")
#: Array mode: what the array needs from a step until its sums can be read. Some exist only with floats.
_ARRAY = ("lanes", "pool", "maximum", "granularity", "wide", "x_signed", "k_signed", "x_zero", "k_zero", "floats",
          "brain", "bias")  # fmt: skip


class JobRunner(wiring.Component):
    """Runs jobs in order, and ends them in order, refused ones too (docs/conv.md, "Queue and barrier").

    A job has four stages: its weights are loaded, its feature rows are fetched, it is computed, its results are
    written. Each stage has a plan of its own, and begins when the previous job has left it, so that two jobs overlap. A
    job leaves the first stage when all of its stages have begun; therefore there are at most two jobs. The last stage
    begins when the previous job has ended, that is, its results can be read and it has arrived at its barrier. So the
    bias table and the second operand are never read too early. X and K may be requested earlier: if ``checked`` says
    that they overlap with results of the previous job, their requests wait until that has ended.

    A job that is ``early`` leaves the first stage when its weights have been read. It arrives at its second barrier
    after that and after the end of the previous job.

    In lane-private mode slaves' memories have lines of X instead of weights. If exactly one of two successive jobs is
    of that mode, the second one begins when the first one has been computed. Sums of floats begin with biases, which
    are loaded for the last stage: a job that has them is computed when its results can be written.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        plan = Out(PlanLayout(params))
        self.active = Signal()  # a job is in the first stage, or has not begun in all others
        self.begun = Signal(data.StructLayout(dict.fromkeys(_LATER, 1)))  # the later stages in which it has begun
        self.x_follows = Signal()  # its X is not known before the previous job has ended
        self.writing = Signal()  # there is a job in the last stage
        super().__init__(
            {
                # A job and its plan are accepted together, so that a refused job never overtakes one that has not
                # begun. The plan of a refused job is undefined.
                "checked": In(stream.Signature(CheckedJobLayout())),
                "plans": In(stream.Signature(PlanLayout(params))),
                # The plan of the job in each stage; registered, constant from a start of the stage to the next one.
                **dict.fromkeys(("load", *_LATER), plan),
                # Strobes; ``load_start`` is the first one of a job.
                **{f"{stage}_start": Out(1) for stage in ("load", *_LATER)},
                # From the cycle after the start of a stage: requests have not been accepted.
                "loading": In(1),
                "fetching": In(1),
                # Not all sums of the job can be read, or with ``overlaps`` not all steps have left.
                "computing": In(1),
                "written": In(1),  # shared memory has accepted all results of the job
                "weights_read": In(1),  # all requests of the first stage have been answered
                "readable": In(1),  # all accepted results can be read
                "barriers": Out(stream.Signature(BarrierRequestLayout(params.smem))),
                "barrier_results": In(stream.Signature(BarrierResultLayout())),
                "overlaps": Out(1),  # the next job has the array mode of the one that is computed; registered
                "ended": Out(1),  # Strobe
                "end": Out(ConvEndLayout()),  # how a job has ended, with ``ended``
            }
        )

    def elaborate(self, platform):
        m = Module()
        computing = Signal()
        m.d.comb += computing.eq(self.computing | self.compute_start)
        m.d.sync += [self.load_start.eq(0), self.ended.eq(0)]
        self._accept(m, computing)
        self._advance(m, computing)
        self._write(m)
        return m

    def _accept(self, m, computing):
        """Moves the next job to the first stage, or ends it if it is refused."""
        checked, plans = self.checked.payload, self.plans
        offered, refused, mode_changes, may_begin, begins, ends = (Signal() for _ in range(6))
        m.d.comb += [
            offered.eq(self.checked.valid & plans.valid & ~self.active),
            refused.eq(checked.code != ConvError.NONE),
            mode_changes.eq(plans.payload.lanes ^ self.compute.lanes),  # the previous job is at least being computed
            may_begin.eq(~(checked.k_follows & self.writing) & ~(mode_changes & computing)),
            begins.eq(offered & ~refused & may_begin),
            ends.eq(offered & refused & ~self.writing),
            self.checked.ready.eq(begins | ends),
            plans.ready.eq(begins | ends),
        ]
        loaded = ~self.loading & ~self.load_start & (self.weights_read | ~self.load.early)
        with m.If(self.active & self.begun.as_value().all() & loaded):
            m.d.sync += self.active.eq(0)
        with m.If(begins):
            m.d.sync += [self.load.eq(plans.payload), self.load_start.eq(1), self.active.eq(1), self.begun.eq(0)]
            m.d.sync += self.x_follows.eq(checked.x_follows)
        with m.If(ends):
            m.d.sync += [
                self.end.code.eq(checked.code),
                self.end.field.eq(checked.field),
                self.end.tag.eq(checked.word[JOB["tag"].lsb :][: JOB["tag"].width]),
                self.ended.eq(1),
            ]

    def _advance(self, m, computing):
        """Starts the job of the first stage in each of the others, when the previous job has left it."""
        has_biases = float_flag(self._params, self.load, "floats") & self.load.bias
        previous_writes = self.writing & ~self.begun.write  # the job in the last stage is the previous one
        occupied = {
            "fetch": self.fetching | self.fetch_start | (self.x_follows & previous_writes),
            "compute": computing | (has_biases & previous_writes),
            "write": self.writing,
        }
        same = [self.load[name] == self.compute[name] for name in _ARRAY if name in dict(self.load.shape())]
        m.d.sync += self.overlaps.eq(self.active & ~self.begun.compute & Cat(same).all())
        for stage, is_occupied in occupied.items():
            start, plan = getattr(self, f"{stage}_start"), getattr(self, stage)
            begins = Signal(name=f"{stage}_begins")
            m.d.comb += begins.eq(self.active & ~self.begun[stage] & ~is_occupied)
            m.d.sync += start.eq(begins)
            with m.If(begins):
                m.d.sync += [plan.eq(self.load), self.begun[stage].eq(1)]
        with m.If(self.active & ~self.begun.write & ~self.writing):
            m.d.sync += self.writing.eq(1)

    def _write(self, m):
        """The last stage, and the arrivals at barriers."""
        plan = self.write
        early, refused = Signal(), Signal()  # the next arrival is the one for weights; it has been refused
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
                    with m.If(~self.active | ~self.begun.write):  # it has left the first stage
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
