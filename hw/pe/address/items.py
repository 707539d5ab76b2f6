"""The items of a job: which threads' columns, or which words, are accessed together."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import JobKind, JobLayout
from ..params import LANES
from ..sharing import SPLIT_COLUMNS, columns_per_item

__all__ = ["ItemLayout", "Items"]


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
