"""Global memory as an AXI4 read port sees it: settable latency, random pauses, injected errors."""

from amaranth import unsigned
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In
from amaranth.utils import ceil_log2

from tilewright.hw.bus.axi4 import Axi4ReadSignature, Response

from .stall import Stall
from .word_array import WordArray

__all__ = ["MAX_LATENCY", "MIN_LATENCY", "MemoryModel"]

#: Cycles from an address to its first data: one to keep the request, one to read the array; ten bits of register.
MIN_LATENCY, MAX_LATENCY = 2, 1023


class MemoryModel(wiring.Component):
    """An AXI4 subordinate that answers reads in order from an array of bus words.

    With latency L, an address accepted in cycle t brings its first beat valid in cycle t + L, or as soon after it as
    the earlier bursts are through; then one beat a cycle. One address a cycle is accepted, until ``outstanding`` bursts
    wait. Bursts are INCR, and start at a bus word; the order is that of the requests, over all IDs.

    The array shows the global addresses from ``base`` on; what lies outside it answers DECERR.

    Parameters
    ----------
    addr_width, data_width, id_width : int
        Of the AXI port.
    depth : int
        Bus words of the array.
    outstanding : int
        Bursts that may wait, a power of two.

    Attributes
    ----------
    axi : Axi4ReadSignature, in
        The read port, seen from the subordinate.
    latency : Signal, in
        :data:`MIN_LATENCY` to :data:`MAX_LATENCY`. To be changed only while nothing is in flight, as all below.
    base : Signal, in
        Bus-word address of the array's first word.
    ar_stall, r_stall, seed, start : Signal, in
        Probabilities of pauses of ARREADY and RVALID, as in :class:`~tilewright.sim.stall.Stall`.
    error_first, error_last, error_response : Signal, in
        Beats whose bus-word address lies from the first to the last, both inclusive, answer ``error_response``
        (2 SLVERR, 3 DECERR; 0 switches it off).
    """

    def __init__(self, *, addr_width, data_width, id_width=1, depth, outstanding=1024):
        self._word_log2 = ceil_log2(data_width // 8)
        self._outstanding = outstanding
        word = unsigned(addr_width - self._word_log2)
        self._request = data.StructLayout({"id": id_width, "word": word, "len": 8, "due": 32})
        #: The contents.
        self.array = WordArray(width=data_width, depth=depth)
        super().__init__(
            {
                "axi": In(Axi4ReadSignature(addr_width=addr_width, data_width=data_width, id_width=id_width)),
                "latency": In(range(MAX_LATENCY + 1), init=MIN_LATENCY),
                "base": In(word),
                "ar_stall": In(8),
                "r_stall": In(8),
                "seed": In(16),
                "start": In(1),
                "error_first": In(word),
                "error_last": In(word),
                "error_response": In(2),
            }
        )

    def elaborate(self, platform):
        m = Module()
        now = Signal(32)
        m.d.sync += now.eq(now + 1)

        stalls = {}
        for number, name in enumerate(("ar", "r")):
            stall = stalls[name] = m.submodules[f"{name}_stall"] = Stall(number)
            m.d.comb += [
                stall.probability.eq(getattr(self, f"{name}_stall")),
                stall.seed.eq(self.seed),
                stall.start.eq(self.start),
            ]

        request, waiting, pop = self._queue(m, now, go=stalls["ar"].go)
        # Signed difference: the counter may wrap.
        due = (now - request.due)[:32].as_signed() >= 0
        self._answers(m, request, pop, may_issue=waiting & due & stalls["r"].go)
        return m

    def _queue(self, m, now, *, go):
        """Keeps requests and when each may be answered; returns the oldest, whether there is one, and its pop."""
        m.submodules.queue = queue = Memory(shape=self._request, depth=self._outstanding, init=[])
        write = queue.write_port()
        read = queue.read_port(transparent_for=(write,))
        head = Signal(range(2 * self._outstanding))
        tail = Signal.like(head)
        pop = Signal()
        level = (tail - head)[: len(head)]
        following = Signal.like(head)

        # READY may fall again before VALID: that is a subordinate's right.
        m.d.comb += [
            self.axi.arready.eq(go & (level != self._outstanding)),
            write.en.eq(self.axi.arvalid & self.axi.arready),
            write.addr.eq(tail),
            write.data.id.eq(self.axi.arid),
            write.data.word.eq(self.axi.araddr >> self._word_log2),
            write.data.len.eq(self.axi.arlen),
            write.data.due.eq(now + self.latency - 1),
            following.eq(head + pop),
            read.addr.eq(following),
        ]
        m.d.sync += [tail.eq(tail + write.en), head.eq(following)]
        return read.data, level != 0, pop

    def _answers(self, m, request, pop, *, may_issue):
        """Reads the array beat by beat; its output register, with what travels beside it, is the R channel."""
        axi = self.axi
        m.submodules.array = array = self.array
        beat = Signal(8)
        word = (request.word + beat)[: len(request.word)]
        index = (word - self.base)[: len(word)]
        injected = (self.error_response != 0) & (word >= self.error_first) & (word <= self.error_last)
        issue = Signal()
        last = beat == request.len

        m.d.comb += [
            issue.eq(may_issue & (~axi.rvalid | axi.rready)),
            pop.eq(issue & last),
            array.read_enable.eq(issue),
            array.read_address.eq(index),
            axi.rdata.eq(array.read_data),
        ]
        with m.If(issue):
            m.d.sync += [
                axi.rid.eq(request.id),
                axi.rlast.eq(last),
                axi.rresp.eq(Mux(index >= array.depth, Response.DECERR, Mux(injected, self.error_response, 0))),
                axi.rvalid.eq(1),
                beat.eq(Mux(last, 0, beat + 1)),
            ]
        with m.Elif(axi.rready):
            m.d.sync += axi.rvalid.eq(0)
