"""Global memory as an AXI4 port sees it: settable latency, random pauses, injected errors."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from tilewright.hw.bus.axi4 import Axi4Signature, Response

from ..hdl.word_array import WordArray
from .drivers import add_stall

__all__ = ["CHANNELS", "MAX_LATENCY", "MIN_LATENCY", "DelayQueue", "MemoryModel", "memory_controls"]


class DelayQueue(wiring.Component):
    """Keeps items in order; one that goes in in cycle t may leave from cycle t + ``delay`` on, one a cycle.

    Parameters
    ----------
    shape : shape-like
        Of an item.
    depth : int
        Items that fit, a power of two.
    """

    def __init__(self, shape, *, depth):
        self._depth = depth
        self._row = data.StructLayout({"item": shape, "due": 32})
        # At least 1. To be changed only while the queue is empty.
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "delay": In(32, init=1)})

    def elaborate(self, platform):
        m = Module()
        now = Signal(32)
        m.d.sync += now.eq(now + 1)

        m.submodules.rows = rows = Memory(shape=self._row, depth=self._depth, init=[])
        write = rows.write_port()
        read = rows.read_port(transparent_for=(write,))
        head = Signal(range(2 * self._depth))
        tail = Signal.like(head)
        following = Signal.like(head)
        level = (tail - head)[: len(head)]
        # Signed difference: the counter may wrap.
        due = (now - read.data.due)[:32].as_signed() >= 0
        m.d.comb += [
            self.i.ready.eq(level != self._depth),
            write.en.eq(self.i.valid & self.i.ready),
            write.addr.eq(tail),
            write.data.item.eq(self.i.payload),
            write.data.due.eq(now + self.delay),
            self.o.payload.eq(read.data.item),
            self.o.valid.eq((level != 0) & due),
            following.eq(head + (self.o.valid & self.o.ready)),
            read.addr.eq(following),
        ]
        m.d.sync += [tail.eq(tail + write.en), head.eq(following)]
        return m


#: Cycles to an answer: one to keep what is asked, one to read the array; ten bits of register.
MIN_LATENCY, MAX_LATENCY = 2, 1023
#: Channels that pause, each with a ``Stall`` of its number in this tuple.
CHANNELS = ("ar", "r", "aw", "w", "b")


def memory_controls(word_width, depth):
    """Inputs that set a memory of ``depth`` bus words; ``word_width`` are the bits of the address of a bus word.

    They are to be changed only while nothing is in flight.
    """
    word = unsigned(word_width)
    # Probabilities of pauses of ARREADY, RVALID, AWREADY, WREADY and BVALID, as in ``Stall``.
    return {f"{channel}_stall": In(8) for channel in CHANNELS} | {
        # :data:`MIN_LATENCY` to :data:`MAX_LATENCY`.
        "latency": In(range(MAX_LATENCY + 1), init=MIN_LATENCY),
        # Bus-word address of the array's first word, and how many there are: at first all.
        "base": In(word),
        "words": In(range(depth + 1), init=depth),
        # Beats whose bus-word address lies from the first to the last, both inclusive, answer ``error_response``
        # (2 SLVERR, 3 DECERR; 0 switches it off), when read and when written.
        "error_first": In(word),
        "error_last": In(word),
        "error_response": In(2),
        "error_reads": In(1),
        "error_writes": In(1),
    }


class MemoryModel(wiring.Component):
    """An AXI4 subordinate that answers in order from an array of bus words.

    With latency L, a read address accepted in cycle t brings its first beat valid in cycle t + L, or as soon after it
    as the earlier bursts are through; then one beat a cycle. The last beat of data of a write, accepted in cycle t,
    brings its response in cycle t + L. A write is in the array when its last beat has been accepted, so a read that is
    asked for after the response sees it. Data are accepted when their address has been. One address a cycle of either
    direction is accepted, until ``outstanding`` bursts wait. Bursts are INCR, and start at a bus word. They are
    answered in the order of the requests, whatever their IDs.

    The first ``words`` words of the array show the global addresses from ``base`` on. A beat outside answers DECERR,
    and one that answers with an error changes nothing; a write with several such beats answers DECERR if one of them
    does.

    Parameters
    ----------
    addr_width, data_width, id_width : int
        Of the AXI port.
    depth : int
        Bus words of the array.
    outstanding : int
        Bursts of either direction that may wait, a power of two.
    """

    def __init__(self, *, addr_width, data_width, id_width=2, depth, outstanding=1024):
        self._outstanding = outstanding
        self._word_log2 = ceil_log2(data_width // 8)
        word_width = addr_width - self._word_log2
        self._request = data.StructLayout({"id": id_width, "word": unsigned(word_width), "len": 8})
        self._answer = data.StructLayout({"id": id_width, "resp": 2})
        #: The contents.
        self.array = WordArray(width=data_width, depth=depth)
        # The port is seen from the subordinate.
        axi = {"axi": In(Axi4Signature(addr_width, data_width, id_width))}
        super().__init__(axi | memory_controls(word_width, depth) | {"seed": In(16), "start": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.array = self.array
        go = {
            channel: add_stall(m, f"{channel}_stall", number, getattr(self, f"{channel}_stall"), self)
            for number, channel in enumerate(CHANNELS)
        }
        m.submodules.reads = self._reads(go)
        m.submodules.writes = self._writes(go)
        return m

    def _requests(self, m, channel, go):
        """The queue of an address channel."""
        valid, ready, number, address, length = (
            getattr(self.axi, f"{channel}{field}") for field in ("valid", "ready", "id", "addr", "len")
        )
        m.submodules.requests = queue = DelayQueue(self._request, depth=self._outstanding)
        # READY may fall again before VALID: that is a subordinate's right.
        m.d.comb += [
            ready.eq(queue.i.ready & go[channel]),
            queue.i.valid.eq(valid & go[channel]),
            queue.i.payload.id.eq(number),
            queue.i.payload.word.eq(address >> self._word_log2),
            queue.i.payload.len.eq(length),
        ]
        return queue

    def _place(self, request, beat, erring):
        """Index of a beat in the array, and its response."""
        word = (request.word + beat)[: len(request.word)]
        index = (word - self.base)[: len(word)]
        injected = erring & (word >= self.error_first) & (word <= self.error_last)
        outside = index >= self.words
        return index, Mux(outside, Response.DECERR, Mux(injected, self.error_response, Response.OKAY))

    def _reads(self, go):
        """AR and R: the array's output register, with what travels beside it, is the R channel."""
        m = Module()
        axi, array = self.axi, self.array
        queue = self._requests(m, "ar", go)
        request = queue.o.payload
        beat = Signal(8)
        index, response = self._place(request, beat, self.error_reads)
        issue = queue.o.valid & go["r"] & (~axi.rvalid | axi.rready)
        last = beat == request.len

        m.d.comb += [
            queue.delay.eq(self.latency - 1),
            queue.o.ready.eq(issue & last),
            array.read_enable.eq(issue),
            array.read_address.eq(index),
            axi.rdata.eq(array.read_data),
        ]
        with m.If(issue):
            m.d.sync += [
                axi.rid.eq(request.id),
                axi.rlast.eq(last),
                axi.rresp.eq(response),
                axi.rvalid.eq(1),
                beat.eq(Mux(last, 0, beat + 1)),
            ]
        with m.Elif(axi.rready):
            m.d.sync += axi.rvalid.eq(0)
        return m

    def _writes(self, go):
        """AW, W and B: a beat is written in the cycle in which it is accepted."""
        m = Module()
        axi, array = self.axi, self.array
        queue = self._requests(m, "aw", go)
        m.submodules.answers = answers = DelayQueue(self._answer, depth=self._outstanding)
        request = queue.o.payload
        beat = Signal(8)
        index, response = self._place(request, beat, self.error_writes)
        # Responses are ordered by how bad they are.
        worst, worse = Signal(2), Signal(2)
        last = beat == request.len
        accepted = axi.wvalid & axi.wready

        m.d.comb += [
            queue.delay.eq(1),
            axi.wready.eq(queue.o.valid & answers.i.ready & go["w"]),
            queue.o.ready.eq(accepted & last),
            array.write_enable.eq(accepted & (response == Response.OKAY)),
            array.write_address.eq(index),
            array.write_data.eq(axi.wdata),
            array.write_strobe.eq(axi.wstrb),
            worse.eq(Mux(response > worst, response, worst)),
            answers.delay.eq(self.latency - 1),
            answers.i.valid.eq(accepted & last),
            answers.i.payload.id.eq(request.id),
            answers.i.payload.resp.eq(worse),
            answers.o.ready.eq(go["b"] & (~axi.bvalid | axi.bready)),
        ]
        with m.If(accepted):
            m.d.sync += [beat.eq(Mux(last, 0, beat + 1)), worst.eq(Mux(last, 0, worse))]
        with m.If(answers.o.valid & answers.o.ready):
            m.d.sync += [axi.bid.eq(answers.o.payload.id), axi.bresp.eq(answers.o.payload.resp), axi.bvalid.eq(1)]
        with m.Elif(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        return m
