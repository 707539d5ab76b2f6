"""The two sides of ``MemoryModel``: what answers reads, and what takes writes."""

from amaranth import unsigned
from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import data

from tilewright.hw.bus.axi4 import Response

from .delay_queue import DelayQueue

__all__ = ["MAX_LATENCY", "MIN_LATENCY", "READ_CHANNELS", "WRITE_CHANNELS", "ReadSide", "WriteSide"]

#: Cycles to an answer: one to keep what is asked, one to read the array; ten bits of register.
MIN_LATENCY, MAX_LATENCY = 2, 1023

READ_CHANNELS = ("ar", "r")
WRITE_CHANNELS = ("aw", "w", "b")


class _Side(Elaboratable):
    """What both sides have.

    Parameters
    ----------
    axi : interface
        Of an ``Axi4Signature``, flipped. A side drives its own channels only.
    array : WordArray
        A side drives its own port only.
    outstanding : int
        Bursts that may wait, a power of two.

    Attributes
    ----------
    latency, base, words, error_first, error_last, error_response : Signal, in
        As of the model.
    ar_go, … : Signal, in
        No pause of this channel in this cycle.
    """

    def __init__(self, axi, array, *, channels, outstanding):
        signature = axi.signature
        self._word_log2 = (signature.data_width // 8).bit_length() - 1
        word = unsigned(signature.addr_width - self._word_log2)
        self._request = data.StructLayout({"id": signature.id_width, "word": word, "len": 8})
        self._axi = axi
        self._array = array
        self._outstanding = outstanding
        self.latency = Signal(range(MAX_LATENCY + 1))
        self.base, self.error_first, self.error_last = Signal(word), Signal(word), Signal(word)
        self.words = Signal(range(array.depth + 1))
        self.error_response = Signal(2)
        for channel in channels:
            setattr(self, f"{channel}_go", Signal(name=f"{channel}_go"))

    def _requests(self, m, channel):
        """The queue behind an address channel."""
        valid, ready, number, address, length = (
            getattr(self._axi, f"{channel}{field}") for field in ("valid", "ready", "id", "addr", "len")
        )
        go = getattr(self, f"{channel}_go")
        m.submodules.requests = queue = DelayQueue(self._request, depth=self._outstanding)
        # READY may fall again before VALID: that is a subordinate's right.
        m.d.comb += [
            ready.eq(queue.i.ready & go),
            queue.i.valid.eq(valid & go),
            queue.i.payload.id.eq(number),
            queue.i.payload.word.eq(address >> self._word_log2),
            queue.i.payload.len.eq(length),
        ]
        return queue

    def _place(self, request, beat):
        """Index of a beat in the array, and its response."""
        word = (request.word + beat)[: len(request.word)]
        index = (word - self.base)[: len(word)]
        injected = (word >= self.error_first) & (word <= self.error_last)
        outside = index >= self.words
        return index, Mux(outside, Response.DECERR, Mux(injected, self.error_response, Response.OKAY))


class ReadSide(_Side):
    """AR and R: the array's output register, with what travels beside it, is the R channel."""

    def __init__(self, axi, array, *, outstanding):
        super().__init__(axi, array, channels=READ_CHANNELS, outstanding=outstanding)

    def elaborate(self, platform):
        m = Module()
        axi, array = self._axi, self._array
        queue = self._requests(m, "ar")
        request = queue.o.payload
        beat = Signal(8)
        index, response = self._place(request, beat)
        issue = queue.o.valid & self.r_go & (~axi.rvalid | axi.rready)
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


class WriteSide(_Side):
    """AW, W and B: a beat is written in the cycle in which it is accepted."""

    def __init__(self, axi, array, *, outstanding):
        super().__init__(axi, array, channels=WRITE_CHANNELS, outstanding=outstanding)
        self._answer = data.StructLayout({"id": axi.signature.id_width, "resp": 2})

    def elaborate(self, platform):
        m = Module()
        axi, array = self._axi, self._array
        queue = self._requests(m, "aw")
        m.submodules.answers = answers = DelayQueue(self._answer, depth=self._outstanding)
        request = queue.o.payload
        beat = Signal(8)
        index, response = self._place(request, beat)
        # Responses are ordered by how bad they are.
        worst, worse = Signal(2), Signal(2)
        last = beat == request.len
        accepted = axi.wvalid & axi.wready

        m.d.comb += [
            queue.delay.eq(1),
            axi.wready.eq(queue.o.valid & answers.i.ready & self.w_go),
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
            answers.o.ready.eq(self.b_go & (~axi.bvalid | axi.bready)),
        ]
        with m.If(accepted):
            m.d.sync += [beat.eq(Mux(last, 0, beat + 1)), worst.eq(Mux(last, 0, worse))]
        with m.If(answers.o.valid & answers.o.ready):
            m.d.sync += [
                axi.bid.eq(answers.o.payload.id),
                axi.bresp.eq(answers.o.payload.resp),
                axi.bvalid.eq(1),
            ]
        with m.Elif(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        return m
