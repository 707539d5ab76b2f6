"""Barrier operations from a processor without a stream: by registers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.host_windows import BARRIER_WINDOW_REGISTERS

from ..bus.axi4_lite import AccessSignature
from ..lib.formats import packed_layout
from .layouts import BarrierRequestLayout, BarrierResultLayout

__all__ = ["BARRIER_WINDOW_ADDR_WIDTH", "BarrierWindow"]

#: Bits of a byte address in the window: 16 bytes.
BARRIER_WINDOW_ADDR_WIDTH = 4

_ADDRESS, _OPERATION, _RESULT = BARRIER_WINDOW_REGISTERS


class BarrierWindow(wiring.Component):
    """Three words: which barrier, an operation on it, and its answer.

    An access is answered 1 cycle after it was accepted; a write of ``operation`` 1 cycle after the operation's answer
    came, so that a later read of ``result`` finds it. All four bytes are written, whatever the strobes. Reads of other
    words and writes of other words are refused.

    Parameters
    ----------
    params : SmemParams

    Members
    -------
    accesses : In(AccessSignature)
        Registers of ``golden.spec.host_windows``, by byte offset. Accepted while no operation is under way, and when
        the answer before has been taken.
    barriers : Out(stream of BarrierRequestLayout(params))
        Valid from the cycle after a write of ``operation`` on.
    barrier_results : In(stream of BarrierResultLayout)
        Always taken.
    """

    def __init__(self, params):
        self.under_way = Signal()  # an operation that was written and has no answer
        self.result = Signal(packed_layout(_RESULT.format))
        super().__init__(
            {
                "accesses": In(AccessSignature()),
                "barriers": Out(stream.Signature(BarrierRequestLayout(params))),
                "barrier_results": In(stream.Signature(BarrierResultLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        requests, answers, barriers = self.accesses.requests, self.accesses.answers, self.barriers
        access, results = requests.payload, self.barrier_results
        operation = data.View(packed_layout(_OPERATION.format), access.data)
        here = access.address[2:BARRIER_WINDOW_ADDR_WIDTH]
        accepted, operates = Signal(), Signal()
        m.d.comb += [
            requests.ready.eq(~answers.valid & ~self.under_way),
            accepted.eq(requests.valid & requests.ready),
            operates.eq(access.write & (here == _OPERATION.offset >> 2)),
            results.ready.eq(1),
        ]
        with m.If(accepted & access.write & (here == _ADDRESS.offset >> 2)):
            m.d.sync += barriers.payload.address.eq(access.data)
        with m.If(accepted & operates):
            m.d.sync += [barriers.payload.op.eq(operation.op), barriers.payload.value.eq(operation.value)]
        with m.If(answers.ready):
            m.d.sync += answers.valid.eq(0)
        with m.If(barriers.ready):
            m.d.sync += barriers.valid.eq(0)
        with m.If(accepted):
            m.d.sync += [
                barriers.valid.eq(operates),
                self.under_way.eq(operates),
                answers.valid.eq(~operates),
                answers.payload.data.eq(self.result.as_value()),
                answers.payload.error.eq(Mux(access.write, here > _OPERATION.offset >> 2, here != _RESULT.offset >> 2)),
            ]
        with m.If(results.valid):
            m.d.sync += [self.under_way.eq(0), answers.valid.eq(1)]
            m.d.sync += [self.result[name].eq(results.payload[name]) for name in ("done", "error")]
        return m
