"""The writes of one core: a burst leaves when all its words are here."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from ...bus.axi4 import Axi4WriteSignature
from ...lib.stream import Queue, ShallowQueue, SkidBuffer
from .layouts import CORE_ID_WIDTH, AnswerLayout, RequestLayout, WriteBeatLayout, give, taken

__all__ = ["CoreWrites"]


class CoreWrites(wiring.Component):
    """Holds a burst of the core until all its words have come, and there is space for its answer.

    The words of a burst that has left are all at ``words``, behind those of bursts before. Two registers from AW to the
    requests, one from W to the words, one from the answers to B; one of each a cycle.

    Parameters
    ----------
    addr_width, data_width : int
        Of the bus.
    words : int
        Words that wait at most, 2 to 1024, a power of two, and not less than a burst has.
    bursts : int
        Bursts at most that have left and whose answers the core has not taken, 2 to 32, a power of two.

    Members
    -------
    axi : In(Axi4WriteSignature(addr_width, data_width, 2))
        The core.
    requests : Out(stream of RequestLayout(addr_width))
        Registered.
    words : Out(stream of WriteBeatLayout(data_width))
        Registered.
    answers : In(stream of AnswerLayout(), always ready)
    """

    def __init__(self, addr_width, data_width, words, bursts):
        request, answer = RequestLayout(addr_width), AnswerLayout()
        self.arriving = SkidBuffer(request)
        self.leaving = SkidBuffer(request)
        self.queue = Queue(WriteBeatLayout(data_width), words)
        self.answered = ShallowQueue(answer, bursts)
        self.whole = Signal(range(words + 1))  # bursts whose words are all in the queue, and that have not left
        self.free = Signal(range(bursts + 1), init=bursts)  # places for answers
        super().__init__(
            {
                "axi": In(Axi4WriteSignature(addr_width, data_width, CORE_ID_WIDTH)),
                "requests": Out(stream.Signature(request)),
                "words": Out(stream.Signature(WriteBeatLayout(data_width))),
                "answers": In(stream.Signature(answer, always_ready=True)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name in ("arriving", "leaving", "queue", "answered"):
            m.submodules[name] = getattr(self, name)
        request, leaving, queue, answered = self.arriving.o, self.leaving, self.queue, self.answered
        taken(m, self.axi, "aw", self.arriving.i)
        taken(m, self.axi, "w", queue.i)
        give(m, answered.o, self.axi, "b")
        connect(m, leaving=leaving.o, requests=wiring.flipped(self.requests))
        connect(m, queue=queue.o, words=wiring.flipped(self.words))

        may, passes, ends = Signal(), Signal(), Signal()
        m.d.comb += [
            may.eq((self.whole != 0) & (self.free != 0)),
            leaving.i.payload.eq(request.payload),
            leaving.i.valid.eq(request.valid & may),
            request.ready.eq(leaving.i.ready & may),
            passes.eq(leaving.i.valid & leaving.i.ready),
            ends.eq(queue.i.valid & queue.i.ready & queue.i.payload.last),
            answered.i.payload.eq(self.answers.payload),
            answered.i.valid.eq(self.answers.valid),
        ]
        m.d.sync += [
            self.whole.eq(self.whole + ends - passes),
            self.free.eq(self.free - passes + (answered.o.valid & answered.o.ready)),
        ]
        return m
