"""Operations on barriers, one after the other, and waits for them."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BarrierOp

from ...smem.layouts import BarrierRequestLayout, BarrierResultLayout
from ...smem.signatures import BarrierEventSignature

__all__ = ["PATIENCE", "BarrierCaller"]

#: Cycles after which a barrier that did not tell of its flip is asked again: who writes shared memory may flip one.
PATIENCE = 64


class BarrierCaller(wiring.Component):
    """Does an operation, and ends when it is answered; a wait, when the answer is that the phase is complete.

    A barrier whose phase is not complete is asked again when it flips, so that a wait takes nothing from others.

    Parameters
    ----------
    params : SmemParams

    Members
    -------
    i : In(stream of BarrierRequestLayout(params))
        Accepted when the operation has ended.
    give_up : In(1)
        A wait ends now, or at its answer.
    failed : Out(1)
        As ``i`` is accepted: the barrier refused.
    passed : Out(1)
        As ``i`` is accepted: the operation is done, the wait is over.
    flip : In(BarrierEventSignature(params))
    requests : Out(stream of BarrierRequestLayout(params))
    results : In(stream of BarrierResultLayout())
    """

    def __init__(self, params):
        super().__init__(
            {
                "i": In(stream.Signature(BarrierRequestLayout(params))),
                "give_up": In(1),
                "failed": Out(1),
                "passed": Out(1),
                "flip": In(BarrierEventSignature(params)),
                "requests": Out(stream.Signature(BarrierRequestLayout(params))),
                "results": In(stream.Signature(BarrierResultLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        call, answer = self.i.payload, self.results.payload
        waits = call.op == BarrierOp.TRY_WAIT
        pause = Signal(range(PATIENCE))
        # Registered: what comes from the barriers goes no further in its cycle.
        flipped = Signal()
        m.d.sync += flipped.eq(self.flip.valid & (self.flip.address == call.address))
        m.d.comb += [
            self.requests.payload.eq(call),
            self.i.ready.eq(self.failed | self.passed),
        ]
        with m.FSM():
            with m.State("ASK"):
                m.d.comb += self.requests.valid.eq(self.i.valid)
                with m.If(self.i.valid & self.requests.ready):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += self.results.ready.eq(1)
                m.d.sync += pause.eq(0)
                with m.If(self.results.valid):
                    m.d.comb += [
                        self.failed.eq(answer.error),
                        self.passed.eq(~answer.error & (answer.done | ~waits)),
                    ]
                    m.next = "ASK"
                    with m.If(~self.failed & ~self.passed):
                        m.next = "PAUSE"
            with m.State("PAUSE"):
                m.d.sync += pause.eq(pause + 1)
                with m.If(self.give_up):
                    m.d.comb += self.i.ready.eq(1)
                    m.next = "ASK"
                with m.Elif(flipped | (pause == PATIENCE - 1)):
                    m.next = "ASK"
        return m
