"""The items of a job: which threads' columns, or which words, are accessed together."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

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

__all__ = ["WORDS_UNDER_WAY", "ItemLayout", "Items", "StoreWords"]


class ItemLayout(data.StructLayout):
    """Up to eight threads in a row, and what is accessed of each: its column, or one of its words."""

    def __init__(self, params):
        super().__init__(
            {
                # As it was issued, but ``flush`` is set in the first item only, and LOAD and STORE have ka = kb = 1 and
                # no transposition.
                "job": JobLayout(params),
                "imm": unsigned(32),  # with the distance of the word
                "register": unsigned(17),  # accumulator of column 0, or register of the word
                "thread": unsigned(params.thread_width),  # of column 0, or lane 0
                "present": unsigned(LANES),  # threads that there are
                "first_member": unsigned(2),
                "last": 1,
            }
        )


class Items(wiring.Component):
    """Cuts jobs into items: mm column by column, LOAD and STORE group by group and in it word by word.

    One item a cycle, the first one in the cycle after the job is accepted. A job follows the one before without a gap,
    or waits until the offset registers are read again.

    Members
    -------
    jobs : In(stream of JobLayout)
    o : Out(stream of ItemLayout)
    build : Out(1)
        Strobe: read the offset registers of ``o.p.job``.
    building : In(1)
        From the cycle after ``build`` on, until they are read.
    active : Out(1)
        A job is under way.
    """

    def __init__(self, params):
        self._params = params
        self._job = Signal(JobLayout(params))
        self._thread = Signal(range(params.threads + LANES))
        self._imm, self._register, self._member = Signal(32), Signal(17), Signal(2)
        self._left = Signal(16)  # words of the group behind this one
        super().__init__(
            {
                "jobs": In(stream.Signature(JobLayout(params))),
                "o": Out(stream.Signature(ItemLayout(params))),
                "build": Out(1),
                "building": In(1),
                "active": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        jobs, job, item = self.jobs, self._job, self.o.p
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
        """Takes a job."""
        jobs, job = self.jobs, self._job
        by_rows = Signal()
        m.d.comb += by_rows.eq((jobs.p.kind == JobKind.MULTIPLY) & jobs.p.transpose)
        m.d.sync += [
            job.eq(jobs.p),
            job.transpose.eq(by_rows),
            self.build.eq(jobs.p.rebuild),
            self._thread.eq(0),
            self._imm.eq(jobs.p.imm),
            self._register.eq(jobs.p.register),
            self._member.eq(0),
            self._left.eq(jobs.p.count - 1),
        ]
        with m.If(jobs.p.kind != JobKind.MULTIPLY):
            m.d.sync += [job.ka.eq(0), job.kb.eq(0)]

    def _columns_of_threads(self, m, columns, steps):
        """Items of mm."""
        job = self._job
        whole = Signal(4)  # steps of an item; 0: it is a part of one
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
            self.o.p.last.eq(self._thread + columns >= self._params.threads),
        ]
        with m.If(steps):
            m.d.sync += [
                self._thread.eq(self._thread + columns),
                self._register.eq(self._register + Mux(whole != 0, whole, ends)),
                self._member.eq(Mux(ends, 0, SPLIT_COLUMNS)),
            ]

    def _words_of_groups(self, m, columns, steps):
        """Items of LOAD and STORE."""
        job = self._job
        m.d.comb += [
            columns.eq(LANES),
            self.o.p.last.eq((self._left == 0) & (self._thread + LANES >= self._params.threads)),
        ]
        with m.If(steps):
            with m.If(self._left == 0):
                m.d.sync += [
                    self._thread.eq(self._thread + LANES),
                    self._imm.eq(job.imm),
                    self._register.eq(job.register),
                    self._left.eq(job.count - 1),
                ]
            with m.Else():
                m.d.sync += [
                    self._imm.eq(self._imm + (4 >> job.segment.element_log2)),
                    self._register.eq(self._register + 1),
                    self._left.eq(self._left - 1),
                ]


#: Items of STORE that may be between this block and the one that takes the words.
WORDS_UNDER_WAY = 16


class StoreWords(wiring.Component):
    """Lets an item of STORE pass together with the request for its words; other items pass as they are.

    Combinational from ``i`` to ``o``. Words are there ``LANE_READ_LATENCY + 3`` cycles after their item has passed.
    With ``params.paced`` the request waits in a register, so that the item does not wait for the registers: words
    are there a cycle later, and a STORE passes every other cycle.

    Members
    -------
    i : In(stream of ItemLayout)
    o : Out(stream of ItemLayout)
        Once ready, it must be ready until it is given an item. Not more than ``WORDS_UNDER_WAY`` items whose
        words are not taken.
    lane_reads : Out(LaneReadSignature)
    words : Out(stream of array of LANES 32)
        In the order of the items.
    reading : Out(1)
        A request is still to be taken, or an answer to come.
    """

    def __init__(self, params):
        words = data.ArrayLayout(32, LANES)
        self._params = params
        self._queue = DeepQueue(words, WORDS_UNDER_WAY)
        super().__init__(
            {
                "i": In(stream.Signature(ItemLayout(params))),
                "o": Out(stream.Signature(ItemLayout(params))),
                "lane_reads": Out(LaneReadSignature(params)),
                "words": Out(stream.Signature(words)),
                "reading": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self._queue
        item, reads = self.i.p, self.lane_reads.requests
        stores, waiting = Signal(), Signal()  # it is a STORE; the request of one is still to be taken
        requested = Signal(LANE_READ_LATENCY)  # in the cycles before
        if self._params.paced:
            m.submodules.slot = slot = Slot(LaneReadLayout(self._params))
            wiring.connect(m, slot=slot.o, reads=wiring.flipped(reads))
            request = slot.i
            m.d.comb += waiting.eq(slot.o.valid)
        else:
            request = reads
        m.d.comb += [
            stores.eq(item.job.kind == JobKind.STORE),
            self.o.p.eq(item),
            self.o.valid.eq(self.i.valid & (~stores | request.ready)),
            self.i.ready.eq(self.o.ready & (~stores | request.ready)),
            request.valid.eq(self.i.valid & stores & self.o.ready),
            request.p.register.eq(item.register),
            request.p.group.eq(item.thread >> 3),
            self.reading.eq(waiting | requested.any()),
            queue.i.valid.eq(requested[-1]),
            queue.i.p.eq(self.lane_reads.data),
            self.words.p.eq(queue.o.p),
            self.words.valid.eq(queue.o.valid),
            queue.o.ready.eq(self.words.ready),
        ]
        m.d.sync += requested.eq(Cat(reads.valid & reads.ready, requested))
        return m
