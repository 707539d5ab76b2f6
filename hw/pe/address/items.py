"""Items of a job: the threads whose columns, or words, are accessed together, and the words that STORE writes."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.stream import DeepQueue, Slot
from ..layouts import (
    LANE_READ_LATENCY,
    SPLIT_COLUMNS,
    JobKind,
    JobLayout,
    LaneReadLayout,
    LaneReadSignature,
    columns_per_item,
)
from ..params import LANES

__all__ = ["WORDS_IN_FLIGHT", "ItemLayout", "Items", "StoreWords"]

#: Items of STORE that may be between StoreWords and the block that takes their words.
WORDS_IN_FLIGHT = 16


class ItemLayout(data.StructLayout):
    """Up to eight consecutive threads, each with a column, or with one of its words."""

    def __init__(self, params):
        super().__init__(
            {
                # As issued, but ``flush`` is set in the first item only, and LOAD and STORE have ka = kb = 1 and no
                # transposition.
                "job": JobLayout(params),
                "imm": unsigned(32),  # includes the distance of the word
                "register": unsigned(17),  # accumulator of column 0, or register of the word
                "thread": unsigned(params.thread_width),  # of column 0, or lane 0
                "present": unsigned(LANES),  # threads that exist
                "first_member": unsigned(2),
                "last": 1,
            }
        )


class Items(wiring.Component):
    """Splits jobs into items: mm column by column; LOAD and STORE group by group, and a group word by word.

    Throughput: one item a cycle, the first in the cycle after the job is accepted. A job follows the previous one
    without a gap, unless its offset registers must be read.
    """

    def __init__(self, params):
        self._params = params
        self._job = Signal(JobLayout(params))
        self._thread = Signal(range(params.threads + LANES))
        self._imm, self._register, self._member = Signal(32), Signal(17), Signal(2)
        self._remaining = Signal(16)  # words of the group after this one
        super().__init__(
            {
                "jobs": In(stream.Signature(JobLayout(params))),
                "o": Out(stream.Signature(ItemLayout(params))),
                "build": Out(1),  # strobe: read the offset registers of ``o.payload.job``
                "building": In(1),  # from the cycle after ``build`` on, until they have been read
                "active": Out(1),  # a job is in progress
            }
        )

    def elaborate(self, platform):
        m = Module()
        jobs, job, item = self.jobs, self._job, self.o.payload
        threads = self._params.threads
        accepted, steps, first = Signal(), Signal(), Signal()
        columns = Signal(range(LANES + 1))  # of this item
        m.d.comb += [
            self.o.valid.eq(self.active & ~self.build & ~self.building),
            steps.eq(self.o.valid & self.o.ready),
            jobs.ready.eq(~self.active | (steps & item.last)),
            accepted.eq(jobs.valid & jobs.ready),
            item.job.eq(job),
            item.job.flush.eq(job.flush & first),
            item.imm.eq(self._imm),
            item.register.eq(self._register),
            item.thread.eq(self._thread),
            item.first_member.eq(self._member),
            item.present.eq(Cat((column < columns) & (self._thread + column < threads) for column in range(LANES))),
        ]
        with m.If(job.kind == JobKind.MULTIPLY):
            self._columns_of_threads(m, columns, steps)
        with m.Else():
            self._words_of_groups(m, columns, steps)
        with m.If(steps):
            m.d.sync += [first.eq(0), self.active.eq(~item.last)]
        m.d.sync += self.build.eq(0)
        with m.If(accepted):
            m.d.sync += [self.active.eq(1), first.eq(1)]
            self._begin(m)
        return m

    def _begin(self, m):
        """Accepts a job."""
        job, following = self._job, self.jobs.payload
        multiplies = following.kind == JobKind.MULTIPLY
        m.d.sync += [
            job.eq(following),
            job.transpose.eq(multiplies & following.transpose),
            self.build.eq(following.rebuild),
            self._thread.eq(0),
            self._imm.eq(following.imm),
            self._register.eq(following.register),
            self._member.eq(0),
            self._remaining.eq(following.count - 1),
        ]
        with m.If(~multiplies):
            m.d.sync += [job.ka.eq(0), job.kb.eq(0)]

    def _columns_of_threads(self, m, columns, steps):
        """Items of mm."""
        job = self._job
        whole = Signal(4)  # steps of an item; 0: it is part of one step
        ends = Signal()  # the item ends a step
        with m.Switch(Cat(job.kb, job.ka)):
            for ka in range(1, 5):
                for kb in range(1, 5):
                    with m.Case((ka - 1) << 2 | (kb - 1)):
                        m.d.comb += [whole.eq(LANES // kb // ka), columns.eq(columns_per_item(ka, kb))]
        with m.If(self._member != 0):
            m.d.comb += columns.eq(job.ka + 1 - SPLIT_COLUMNS)
        m.d.comb += [
            ends.eq((whole != 0) | (self._member != 0)),
            self.o.payload.last.eq(self._thread + columns >= self._params.threads),
        ]
        with m.If(steps):
            m.d.sync += [
                self._thread.eq(self._thread + columns),
                self._register.eq(self._register + Mux(whole != 0, whole, ends)),
                self._member.eq(Mux(ends, 0, SPLIT_COLUMNS)),
            ]

    def _words_of_groups(self, m, columns, steps):
        """Items of LOAD and STORE."""
        job, last_word = self._job, self._remaining == 0
        m.d.comb += [
            columns.eq(LANES),
            self.o.payload.last.eq(last_word & (self._thread + LANES >= self._params.threads)),
        ]
        step = 4 >> job.segment.element_log2
        if self._params.units:
            step = Mux(job.element, 1, step)
        with m.If(steps):
            m.d.sync += [
                self._imm.eq(self._imm + step),
                self._register.eq(self._register + 1),
                self._remaining.eq(self._remaining - 1),
            ]
            with m.If(last_word):
                m.d.sync += [
                    self._thread.eq(self._thread + LANES),
                    self._imm.eq(job.imm),
                    self._register.eq(job.register),
                    self._remaining.eq(job.count - 1),
                ]


class StoreWords(wiring.Component):
    """Forwards items, those of STORE together with the request for their words.

    Combinational from ``i`` to ``o``. Words are valid ``LANE_READ_LATENCY + 3`` cycles after their item. With
    ``params.paced`` the request is registered, so that the item does not wait for the register file: words are valid
    one cycle later, and one STORE item is forwarded every other cycle.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "i": In(stream.Signature(ItemLayout(params))),
                # Once ready, it must stay ready until it gets an item. At most ``WORDS_IN_FLIGHT`` items may be
                # accepted whose words are not.
                "o": Out(stream.Signature(ItemLayout(params))),
                "lane_reads": Out(LaneReadSignature(params)),
                "words": Out(stream.Signature(data.ArrayLayout(32, LANES))),  # in the order of the items
                "reading": Out(1),  # a request is pending, or an answer
            }
        )

    def elaborate(self, platform):
        m = Module()
        item, request = self.i.payload, self.lane_reads.requests
        m.submodules.queue = queue = DeepQueue(self.words.payload.shape(), WORDS_IN_FLIGHT)
        connect(m, queue=queue.o, words=flipped(self.words))
        stores, waiting = Signal(), Signal()  # it is a STORE; a request is registered
        answers = Signal(LANE_READ_LATENCY)  # requests of previous cycles
        if self._params.paced:
            m.submodules.slot = slot = Slot(LaneReadLayout(self._params))
            connect(m, slot=slot.o, reads=flipped(request))
            m.d.comb += waiting.eq(slot.o.valid)
            request = slot.i
        m.d.comb += [
            stores.eq(item.job.kind == JobKind.STORE),
            self.o.payload.eq(item),
            self.o.valid.eq(self.i.valid & (~stores | request.ready)),
            self.i.ready.eq(self.o.ready & (~stores | request.ready)),
            request.valid.eq(self.i.valid & stores & self.o.ready),
            request.payload.register.eq(item.register),
            request.payload.group.eq(item.thread >> 3),
            self.reading.eq(waiting | answers.any()),
            queue.i.valid.eq(answers[-1]),
            queue.i.payload.eq(self.lane_reads.data),
        ]
        reads = self.lane_reads.requests
        m.d.sync += answers.eq(Cat(reads.valid & reads.ready, answers))
        return m
