"""Waits: bar.wait, fence and halt."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BarrierOp
from tilewright.spec.pe import Operation

from ...smem.layouts import BarrierRequestLayout, BarrierResultLayout

__all__ = ["WaitLayout", "Waits"]


class WaitLayout(data.StructLayout):
    """A bar.wait, fence or halt."""

    def __init__(self, params):
        super().__init__(
            {
                "operation": unsigned(4),  # spec.pe.Operation
                "address": unsigned(params.smem.addr_width),  # of bar.wait: byte address, a multiple of 8
                "parity": 1,
            }
        )


class Waits(wiring.Component):
    """Accepts each wait when it is over: a barrier's phase is complete, or ``quiet`` is set.

    A barrier is tested again after each answer. In a core that is stopped the next answer ends the wait.

    Attributes
    ----------
    rests, awaits : Signal
        No request is pending; a barrier is to answer; for proofs.
    """

    def __init__(self, params, cores=1):
        self._cores = cores
        self.rests, self.awaits = Signal(), Signal()
        super().__init__(
            {
                "i": In(stream.Signature(WaitLayout(params))),
                "quiet": In(1),  # all earlier instructions have been performed, and their faults recorded
                "barriers": Out(stream.Signature(BarrierRequestLayout(params.smem))),
                "barrier_results": In(stream.Signature(BarrierResultLayout())),
                "halted": Out(1),  # strobe: a halt is accepted
                # In a cluster. refused: with the handshake of ``i``, the wait ended early because the core is stopped.
                **({"stopped": In(1), "refused": Out(1)} if cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        wait, request = self.i.payload, self.barriers.payload
        done = self.barrier_results.payload.done
        m.d.comb += [
            request.op.eq(BarrierOp.TRY_WAIT),
            request.address.eq(wait.address),
            request.value.eq(wait.parity),
            self.barrier_results.ready.eq(1),
            self.halted.eq(self.i.valid & self.i.ready & (wait.operation == Operation.HALT)),
        ]
        with m.FSM() as fsm:
            m.d.comb += [self.rests.eq(fsm.ongoing("IDLE")), self.awaits.eq(fsm.ongoing("ANSWER"))]
            with m.State("IDLE"), m.If(self.i.valid):
                with m.If(wait.operation == Operation.BAR_WAIT):
                    m.next = "ASK"
                with m.Else():
                    m.d.comb += self.i.ready.eq(self.quiet)
            with m.State("ASK"):
                m.d.comb += self.barriers.valid.eq(1)
                with m.If(self.barriers.ready):
                    m.next = "ANSWER"
            with m.State("ANSWER"), m.If(self.barrier_results.valid):
                over = done
                if self._cores > 1:
                    over = done | self.stopped
                    m.d.comb += self.refused.eq(self.stopped & ~done)
                m.d.comb += self.i.ready.eq(over)
                m.next = "ASK"
                with m.If(over):
                    m.next = "IDLE"
        return m
