"""Windows on the register bus: words of shared memory, and barrier operations without a stream."""

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
    """Reads and writes of 32-bit words, one at a time.

    An access requests the banks in its first cycle. Its request is accepted in the cycle after the grant, and answered
    in the next one. The next access begins when the answer has been accepted.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "accesses": In(AccessSignature()),
                "fetches": Out(stream.Signature(unsigned(params.addr_width - 4))),
                "fetched": In(CHUNK_BITS),  # in the cycle after the handshake
                "writes": Out(stream.Signature(ChunkWriteLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        requests, answers = self.accesses.requests, self.accesses.answers
        request = requests.payload
        chunk = request.address[4 : self._params.addr_width]
        word = request.address[2:4]
        outside = request.address[self._params.addr_width :].any()

        idle = Signal()
        m.d.comb += [
            idle.eq(~requests.ready & ~answers.valid),
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
        # Accepted one cycle later, because the grant of the banks is late, and the address is needed for the chunk.
        m.d.sync += requests.ready.eq(fetch | write | refuse)
        with m.If(answers.ready):
            m.d.sync += answers.valid.eq(0)
        with m.If(requests.ready):
            m.d.sync += answers.valid.eq(1)
            m.d.sync += answers.payload.data.eq(self.fetched.word_select(word, 32))
            m.d.sync += answers.payload.error.eq(outside)
        return m


#: Bits of a byte address in the window: 16 bytes.
BARRIER_WINDOW_ADDR_WIDTH = 4

_ADDRESS, _OPERATION, _RESULT = BARRIER_WINDOW_REGISTERS


class BarrierWindow(wiring.Component):
    """Three registers of ``spec.host_windows``: the address of a barrier, an operation on it, and its answer.

    An access is answered in the next cycle, but a write of ``operation`` in the cycle after the operation is answered,
    so that a later read of ``result`` returns the answer. The next access is accepted after that. Strobes are ignored:
    all four bytes are written. Reads and writes of other words are refused.
    """

    def __init__(self, params):
        self.busy = Signal()  # an operation has been written and has no answer
        self.result = Signal(packed_layout(_RESULT.format))
        super().__init__(
            {
                "accesses": In(AccessSignature()),
                "barriers": Out(stream.Signature(BarrierRequestLayout(params))),
                "barrier_results": In(stream.Signature(BarrierResultLayout())),  # always ready
            }
        )

    def elaborate(self, platform):
        m = Module()
        requests, answers, barriers = self.accesses.requests, self.accesses.answers, self.barriers
        access, results = requests.payload, self.barrier_results
        operation = data.View(packed_layout(_OPERATION.format), access.data)
        word = access.address[2:BARRIER_WINDOW_ADDR_WIDTH]
        accept, operate = Signal(), Signal()
        m.d.comb += [
            requests.ready.eq(~answers.valid & ~self.busy),
            accept.eq(requests.valid & requests.ready),
            operate.eq(access.write & (word == _OPERATION.offset >> 2)),
            results.ready.eq(1),
        ]
        with m.If(accept & access.write & (word == _ADDRESS.offset >> 2)):
            m.d.sync += barriers.payload.address.eq(access.data)
        with m.If(accept & operate):
            m.d.sync += [barriers.payload.op.eq(operation.op), barriers.payload.value.eq(operation.value)]
        with m.If(answers.ready):
            m.d.sync += answers.valid.eq(0)
        with m.If(barriers.ready):
            m.d.sync += barriers.valid.eq(0)
        with m.If(accept):
            m.d.sync += [
                barriers.valid.eq(operate),
                self.busy.eq(operate),
                answers.valid.eq(~operate),
                answers.payload.data.eq(self.result.as_value()),
                answers.payload.error.eq(Mux(access.write, word > _OPERATION.offset >> 2, word != _RESULT.offset >> 2)),
            ]
        with m.If(results.valid):
            m.d.sync += [self.busy.eq(0), answers.valid.eq(1)]
            m.d.sync += [self.result[name].eq(results.payload[name]) for name in ("done", "error")]
        return m
