"""Jobs one after the other: each is started, waited for, and reported."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BarrierOp
from tilewright.golden.spec.conv.errors import ConvError
from tilewright.golden.spec.conv.job import JOB

from ...smem.layouts import BarrierRequestLayout, BarrierResultLayout
from ..layouts import PlanLayout
from ..signatures import ConvEndLayout
from .layouts import CheckedJobLayout

__all__ = ["JobRunner"]


class JobRunner(wiring.Component):
    """Runs jobs in order, and ends them in order, refused ones too (docs/conv.md, "Queue and barrier").

    The plan of the next job is made while one runs; what it needs is fetched when that has ended. A job has ended when
    its results can be read, and the arrival at its barrier is done.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    checked : In(stream of CheckedJobLayout())
    legal : Out(stream of JOB.bits)
        Jobs that are to run, for a plan. Each has to stay until its plan has been taken: so none that is refused passes
        one that has not begun.
    plans : In(stream of PlanLayout(params))
        One for each, in order.
    plan : Out(PlanLayout(params))
        Of the job under way; constant from ``start`` until it has ended. Registered.
    start : Out(1)
        Strobe.
    active : Out(1)
        A job is under way, from ``start`` on.
    written : In(1)
        All results of the job have been accepted by shared memory; looked at from the cycle after ``start`` on.
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
        smem = params.smem
        super().__init__(
            {
                "checked": In(stream.Signature(CheckedJobLayout())),
                "legal": Out(stream.Signature(unsigned(JOB.bits))),
                "plans": In(stream.Signature(PlanLayout(params))),
                "plan": Out(PlanLayout(params)),
                "start": Out(1),
                "active": Out(1),
                "written": In(1),
                "readable": In(1),
                "barriers": Out(stream.Signature(BarrierRequestLayout(smem))),
                "barrier_results": In(stream.Signature(BarrierResultLayout())),
                "ended": Out(1),
                "end": Out(ConvEndLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        checked, plan = self.checked.payload, self.plan
        refused = Signal()
        m.d.comb += [
            self.legal.payload.eq(checked.word),
            refused.eq(checked.code != ConvError.NONE),
            self.legal.valid.eq(self.checked.valid & ~refused),
            self.checked.ready.eq(self.legal.ready & ~refused),
            self.barriers.payload.op.eq(BarrierOp.ARRIVE),
            self.barriers.payload.address.eq(plan.barrier),
            self.barriers.payload.value.eq(1),
        ]
        m.d.sync += [self.start.eq(0), self.ended.eq(0)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.plans.ready.eq(1)
                with m.If(self.plans.valid):
                    m.d.sync += [plan.eq(self.plans.payload), self.start.eq(1), self.active.eq(1)]
                    m.next = "START"
                with m.Elif(self.checked.valid & refused):
                    m.d.comb += self.checked.ready.eq(1)
                    m.d.sync += [
                        self.end.code.eq(checked.code),
                        self.end.field.eq(checked.field),
                        self.end.tag.eq(checked.word[JOB["tag"].lsb :][: JOB["tag"].width]),
                        self.ended.eq(1),
                    ]
            with m.State("START"):
                m.next = "RUN"
            with m.State("RUN"):
                m.d.sync += [self.end.tag.eq(plan.tag), self.end.code.eq(ConvError.NONE), self.end.field.eq(0)]
                with m.If(self.written & self.readable):
                    m.next = "ARRIVE"
                    with m.If(~plan.signal):
                        m.d.sync += [self.ended.eq(1), self.active.eq(0)]
                        m.next = "IDLE"
            with m.State("ARRIVE"):
                m.d.comb += self.barriers.valid.eq(1)
                with m.If(self.barriers.ready):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += self.barrier_results.ready.eq(1)
                with m.If(self.barrier_results.valid):
                    m.d.sync += [self.ended.eq(1), self.active.eq(0)]
                    with m.If(self.barrier_results.payload.error):
                        m.d.sync += [self.end.code.eq(ConvError.BARRIER), self.end.field.eq(JOB.index("barrier"))]
                    m.next = "IDLE"
        return m
