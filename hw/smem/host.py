"""Host port: reads and writes of 32-bit words, for a window on the register bus."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import CHUNK_BYTES
from tilewright.spec.tmau_registers import BARRIER_WINDOW_REGISTERS

from ..bus.axi4_lite import AccessSignature
from ..lib.layouts import packed_layout
from .layouts import CHUNK_BITS, BarrierRequestLayout, BarrierResultLayout, ChunkWriteLayout

__all__ = ["BARRIER_WINDOW_ADDR_WIDTH", "BarrierWindow", "HostPort"]

_WORDS = CHUNK_BYTES // 4


class HostPort(wiring.Component):
    """One access at a time, at the pace of a register bus.

    Latency: an access has the banks in the cycle in which it comes, if they are free; its request is accepted in the
    cycle after that, and answered in the next one. The next access begins when the answer has been taken.

    Members
    -------
    accesses : In(AccessSignature)
        ``ready`` of requests is a register.
    fetches : Out(stream of unsigned(params.addr_width - 4))
        Once accepted, ``fetched`` has the chunk in the next cycle.
    fetched : In(CHUNK_BITS)
    writes : Out(stream of ChunkWriteLayout)
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "accesses": In(AccessSignature()),
                "fetches": Out(stream.Signature(unsigned(params.addr_width - 4))),
                "fetched": In(CHUNK_BITS),
                "writes": Out(stream.Signature(ChunkWriteLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        requests, responses = self.accesses.requests, self.accesses.answers
        request = requests.payload
        chunk = request.address[4 : self._params.addr_width]
        word = request.address[2:4]
        outside = request.address[self._params.addr_width :].any()

        idle = Signal()
        m.d.comb += [
            idle.eq(~requests.ready & ~responses.valid),
            self.fetches.valid.eq(idle & requests.valid & ~outside & ~request.write),
            self.fetches.payload.eq(chunk),
            self.writes.valid.eq(idle & requests.valid & ~outside & request.write),
            self.writes.payload.chunk.eq(chunk),
            self.writes.payload.data.eq(request.data.replicate(_WORDS)),
            self.writes.payload.strobe.eq(Cat(request.strobe & (word == w).replicate(4) for w in range(_WORDS))),
        ]
        fetch = self.fetches.valid & self.fetches.ready
        write = self.writes.valid & self.writes.ready
        refuse = idle & requests.valid & outside
        # Accepted a cycle late: the grant of the banks is late, and the request is needed for the chunk that was read.
        m.d.sync += requests.ready.eq(fetch | write | refuse)
        with m.If(responses.ready):
            m.d.sync += responses.valid.eq(0)
        with m.If(requests.ready):
            m.d.sync += responses.valid.eq(1)
            m.d.sync += responses.payload.data.eq(self.fetched.word_select(word, 32))
            m.d.sync += responses.payload.error.eq(outside)
        return m


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
        Registers of ``spec.tmau_registers``, by byte offset. Accepted while no operation is under way, and when
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
