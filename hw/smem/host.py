"""Host port: reads and writes of 32-bit words, for a window on the register bus."""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import CHUNK_BYTES

from ..bus.axi4_lite import AccessSignature
from .layouts import CHUNK_BITS, ChunkWriteLayout

__all__ = ["HostPort"]

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
