"""Reads of global memory by several cores over one port."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from ...bus.axi4 import Axi4ReadSignature, forward_channels
from ...lib.stream import Queue, SkidBuffer
from .arbiter import FairArbiter
from .layouts import CORE_ID_WIDTH, PAGE_LOG2, REDUCTION_ID, ReadBeatLayout, RequestLayout, give, merged, taken

__all__ = ["CoreReads", "ReadSide"]


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
                # The core.
                "axi": In(Axi4ReadSignature(addr_width, data_width, CORE_ID_WIDTH)),
                # Registered.
                "requests": Out(stream.Signature(request)),
                "beats": In(stream.Signature(ReadBeatLayout(data_width), always_ready=True)),
                # The page that a reduction is about to read.
                "pages": Out(stream.Signature(unsigned(addr_width - PAGE_LOG2))),
                # Strobe: the page that was taken last is the core's.
                "granted": In(1),
                # Strobe: the read of a reduction has ended, and one of its beats came with an error.
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


class ReadSide(wiring.Component):
    """Requests are shared out fairly by their beats; a beat goes to the buffer of its core, which has space for it.

    Of all cores together, no more beats are under way outside than one may have: so requests wait here, where they are
    shared out, and not in a memory that takes whatever comes.

    Three registers from AR to AR, two from R to R; one request and one beat a cycle. Every beat is taken at once.

    Parameters
    ----------
    cores : int
        2 to 16.
    addr_width, data_width : int
        Of the bus.
    max_burst : int
        Beats of a burst at most, a power of two.
    words : int
        See :class:`CoreReads`.
    reductions : bool
        See :class:`CoreReads`.
    """

    def __init__(self, cores, addr_width, data_width, *, max_burst, words, reductions=True):
        self._id_width = CORE_ID_WIDTH + ceil_log2(cores)
        self.cores = [CoreReads(addr_width, data_width, words, reductions=reductions) for _ in range(cores)]
        self.arbiter = FairArbiter(RequestLayout(addr_width), cores, max_burst)
        self.requests = SkidBuffer(RequestLayout(addr_width, self._id_width))
        # A grant shows two cycles later, in which another one may come.
        self._most = words - 2 * max_burst
        self.under_way = Signal(range(words + 1))  # beats that have been granted and have not come
        self.room = Signal(init=1)  # for the beats of any two bursts, a cycle ago
        super().__init__(
            {
                "ports": In(Axi4ReadSignature(addr_width, data_width, CORE_ID_WIDTH)).array(cores),
                # The number of the core lies above its ID.
                "axi": Out(Axi4ReadSignature(addr_width, data_width, self._id_width)),
                # See :class:`CoreReads`.
                "pages": Out(stream.Signature(unsigned(addr_width - PAGE_LOG2))).array(cores),
                "granted": In(cores),
                "failed": Out(cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        m.submodules.requests = requests = self.requests
        m.d.comb += [
            merged(requests.i.payload, arbiter),
            requests.i.valid.eq(arbiter.o.valid & self.room),
            arbiter.o.ready.eq(requests.i.ready & self.room),
        ]
        give(m, requests.o, self.axi, "ar")
        came, beat = self._beat(m)
        self._limit(m, came)
        for number, core in enumerate(self.cores):
            m.submodules[f"core{number}"] = core
            forward_channels(m, self.ports[number], core.axi)
            connect(m, requests=core.requests, arbiter=arbiter.i[number])
            connect(m, pages=core.pages, out=wiring.flipped(self.pages[number]))
            m.d.comb += [
                core.granted.eq(self.granted[number]),
                self.failed[number].eq(core.failed),
                core.beats.valid.eq(came & (beat.id[CORE_ID_WIDTH:] == number)),
                core.beats.payload.id.eq(beat.id),
                core.beats.payload.data.eq(beat.data),
                core.beats.payload.resp.eq(beat.resp),
                core.beats.payload.last.eq(beat.last),
            ]
        return m

    def _limit(self, m, came):
        burst, beats = self.arbiter.o, Signal(9)
        with m.If(burst.valid & burst.ready):
            m.d.comb += beats.eq(burst.payload.len + 1)
        m.d.sync += [self.under_way.eq(self.under_way + beats - came), self.room.eq(self.under_way <= self._most)]

    def _beat(self, m):
        """Whether a beat has come, and it."""
        axi = self.axi
        came, beat = Signal(), Signal(ReadBeatLayout(len(axi.rdata), self._id_width))
        m.d.comb += axi.rready.eq(1)
        m.d.sync += [
            came.eq(axi.rvalid),
            beat.id.eq(axi.rid),
            beat.data.eq(axi.rdata),
            beat.resp.eq(axi.rresp),
            beat.last.eq(axi.rlast),
        ]
        return came, beat
