"""The reads of one core: its requests leave when their beats have space, and those of reductions when they may."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from ...bus.axi4 import Axi4ReadSignature
from ...lib.stream import Queue, SkidBuffer
from .layouts import CORE_ID_WIDTH, PAGE_LOG2, REDUCTION_ID, ReadBeatLayout, RequestLayout, give, taken

__all__ = ["CoreReads"]


class CoreReads(wiring.Component):
    """Holds a request of the core until all its beats have space, and gives the core its beats.

    Requests and beats stay in order. A request for the old words of a reduction asks for its page first, and leaves
    when that is granted. Two registers from AR to the requests, one from the beats to R; one request and one beat a
    cycle.

    Parameters
    ----------
    addr_width, data_width : int
        Of the bus.
    words : int
        Beats that are under way or wait for the core at most, 2 to 1024, a power of two, and not less than a burst has.
    reductions : bool
        The core has reductions. Without, no ID asks.

    Members
    -------
    axi : In(Axi4ReadSignature(addr_width, data_width, 2))
        The core.
    requests : Out(stream of RequestLayout(addr_width))
        Registered.
    beats : In(stream of ReadBeatLayout(data_width), always ready)
    pages : Out(stream of unsigned(addr_width - 12))
        The page that a reduction is about to read.
    granted : In(1)
        Strobe: the page that was taken last is the core's.
    failed : Out(1)
        Strobe: the read of a reduction has ended, and one of its beats came with an error.
    """

    def __init__(self, addr_width, data_width, words, *, reductions=True):
        self._reductions = reductions
        request = RequestLayout(addr_width)
        self.arriving = SkidBuffer(request)
        self.leaving = SkidBuffer(request)
        self.queue = Queue(ReadBeatLayout(data_width), words)
        self.free = Signal(range(words + 1), init=words)  # places that no beat has been asked for
        self.asked = Signal()  # the page of the request at hand has been taken
        self.allowed = Signal()  # and granted
        self.failing = Signal()  # a beat of the reduction's read that is coming came with an error
        super().__init__(
            {
                "axi": In(Axi4ReadSignature(addr_width, data_width, CORE_ID_WIDTH)),
                "requests": Out(stream.Signature(request)),
                "beats": In(stream.Signature(ReadBeatLayout(data_width), always_ready=True)),
                "pages": Out(stream.Signature(unsigned(addr_width - PAGE_LOG2))),
                "granted": In(1),
                "failed": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arriving = arriving = self.arriving
        m.submodules.leaving = leaving = self.leaving
        m.submodules.queue = queue = self.queue
        taken(m, self.axi, "ar", arriving.i)
        connect(m, leaving=leaving.o, requests=wiring.flipped(self.requests))

        request, may, passes = arriving.o, Signal(), Signal()
        m.d.comb += [
            may.eq(self.free > request.payload.len),
            leaving.i.payload.eq(request.payload),
            leaving.i.valid.eq(request.valid & may),
            request.ready.eq(leaving.i.ready & may),
            passes.eq(leaving.i.valid & leaving.i.ready),
            queue.i.payload.eq(self.beats.payload),
            queue.i.valid.eq(self.beats.valid),
        ]
        give(m, queue.o, self.axi, "r")
        popped = queue.o.valid & queue.o.ready
        with m.If(passes):
            m.d.sync += self.free.eq(self.free - request.payload.len - 1 + popped)
        with m.Else():
            m.d.sync += self.free.eq(self.free + popped)
        if self._reductions:
            self._ask(m, may, passes)
        return m

    def _ask(self, m, may, passes):
        """Space first: a page that is granted is used at once."""
        request, beat = self.arriving.o, self.beats.payload
        reduces = request.payload.id == REDUCTION_ID
        m.d.comb += [
            may.eq((self.free > request.payload.len) & (~reduces | self.allowed)),
            self.pages.payload.eq(request.payload.addr[PAGE_LOG2:]),
            self.pages.valid.eq(request.valid & reduces & (self.free > request.payload.len) & ~self.asked),
        ]
        with m.If(passes):
            m.d.sync += [self.asked.eq(0), self.allowed.eq(0)]
        with m.Else():
            m.d.sync += [
                self.asked.eq(self.asked | (self.pages.valid & self.pages.ready)),
                self.allowed.eq(self.allowed | self.granted),
            ]
        failed = self.failing | beat.resp.as_value()[1]
        of_reduction = self.beats.valid & (beat.id == REDUCTION_ID)
        m.d.comb += self.failed.eq(of_reduction & beat.last & failed)
        with m.If(of_reduction):
            m.d.sync += self.failing.eq(failed & ~beat.last)
