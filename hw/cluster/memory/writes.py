"""Writes to global memory by several cores over one port."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from ...bus.axi4 import Axi4WriteSignature, forward_channels
from ...lib.stream import Queue, ShallowQueue, SkidBuffer
from .arbiter import FairArbiter
from .layouts import CORE_ID_WIDTH, AnswerLayout, RequestLayout, WriteBeatLayout, give, merged, taken

__all__ = ["CoreWrites", "WriteSide"]


class CoreWrites(wiring.Component):
    """Holds a burst of the core until all its words have come, and there is space for its answer.

    The words of a burst that has left are all at ``words``, after the words of earlier bursts. Two registers from AW to
    the requests, one from W to the words, one from the answers to B; one of each a cycle.

    Parameters
    ----------
    addr_width, data_width : int
        Of the bus.
    words : int
        Words that wait at most, 2 to 1024, a power of two, and not less than a burst has.
    bursts : int
        Bursts at most that have left and whose answers the core has not taken, 2 to 32, a power of two.
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
                # The core.
                "axi": In(Axi4WriteSignature(addr_width, data_width, CORE_ID_WIDTH)),
                # Registered.
                "requests": Out(stream.Signature(request)),
                # Registered.
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


#: Bursts that may be granted before their words leave: memory sees the next requests early.
_AHEAD = 4


class WriteSide(wiring.Component):
    """Bursts whose words are all here are shared out fairly by these, which then leave without a pause.

    Three registers from a burst with its last word to AW, four to its first word on W, two from B to B; one of each a
    cycle. Every answer is taken at once. Neither AW nor W waits for the other to be accepted, but for four bursts.

    Parameters
    ----------
    cores : int
        2 to 16.
    addr_width, data_width : int
        Of the bus.
    max_burst : int
        Words of a burst at most, a power of two.
    words, bursts : int
        See :class:`CoreWrites`.
    """

    def __init__(self, cores, addr_width, data_width, *, max_burst, words, bursts):
        self._id_width = CORE_ID_WIDTH + ceil_log2(cores)
        self.cores = [CoreWrites(addr_width, data_width, words, bursts) for _ in range(cores)]
        self.arbiter = FairArbiter(RequestLayout(addr_width), cores, max_burst)
        self.requests = SkidBuffer(RequestLayout(addr_width, self._id_width))
        self.turns = ShallowQueue(cores, _AHEAD)  # whose bursts have been granted, one-hot
        self.words = ShallowQueue(WriteBeatLayout(data_width), 2)
        super().__init__(
            {
                "ports": In(Axi4WriteSignature(addr_width, data_width, CORE_ID_WIDTH)).array(cores),
                # The number of the core lies above its ID.
                "axi": Out(Axi4WriteSignature(addr_width, data_width, self._id_width)),
                # Strobes: a write of the core has been answered.
                "answered": Out(cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name in ("arbiter", "requests", "turns", "words"):
            m.submodules[name] = getattr(self, name)
        for number, core in enumerate(self.cores):
            m.submodules[f"core{number}"] = core
            forward_channels(m, self.ports[number], core.axi)
            connect(m, requests=core.requests, arbiter=self.arbiter.i[number])
        self._grant(m)
        self._send_words(m)
        self._answer(m)
        return m

    def _grant(self, m):
        """A burst goes to two places at once: AW, and the turns of its words."""
        arbiter, requests, turns = self.arbiter, self.requests, self.turns
        m.d.comb += [
            merged(requests.i.payload, arbiter),
            turns.i.payload.eq(arbiter.winner),
            requests.i.valid.eq(arbiter.o.valid & turns.i.ready),
            turns.i.valid.eq(arbiter.o.valid & requests.i.ready),
            arbiter.o.ready.eq(turns.i.ready & requests.i.ready),
        ]
        give(m, requests.o, self.axi, "aw")

    def _send_words(self, m):
        turn, words = self.turns.o, self.words.i
        payload, valid = 0, []
        for number, core in enumerate(self.cores):
            mine = turn.valid & turn.payload[number]
            payload |= Value.cast(core.words.payload) & mine.replicate(len(Value.cast(core.words.payload)))
            valid.append(mine & core.words.valid)
            m.d.comb += core.words.ready.eq(mine & words.ready)
        m.d.comb += [
            words.valid.eq(Cat(valid).any()),
            Value.cast(words.payload).eq(payload),
            turn.ready.eq(words.valid & words.ready & words.payload.last),
        ]
        give(m, self.words.o, self.axi, "w")

    def _answer(self, m):
        axi = self.axi
        came, answer = Signal(), Signal(AnswerLayout(self._id_width))
        m.d.comb += axi.bready.eq(1)
        m.d.sync += [came.eq(axi.bvalid), answer.id.eq(axi.bid), answer.resp.eq(axi.bresp)]
        for number, core in enumerate(self.cores):
            m.d.comb += [
                core.answers.valid.eq(came & (answer.id[CORE_ID_WIDTH:] == number)),
                core.answers.payload.id.eq(answer.id),
                core.answers.payload.resp.eq(answer.resp),
                self.answered[number].eq(core.answers.valid),
            ]
