"""Copies within one memory: cut into pieces that pass from one half to the other through a queue."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Reduction

from ..smem.params import LINE_BYTES
from .jobs import JobLayout

__all__ = ["Exchange"]


class Exchange(wiring.Component):
    """Passes jobs on; those with ``loop`` or ``stage`` leave as pieces of ``exchange_bytes``, two jobs for each.

    The *first* job of a piece fills the queue between the halves, and leaves only when the queue has room for all of
    it. The *second* one empties it, and leaves only when all of it is there. So neither half ever waits for the other
    with a job in its hands, and data that come from the bus are always taken: a reduction, whose old words share the
    read channel with them, cannot be kept waiting by a copy that waits for the reduction. Two pieces fit the queue, so
    that one is filled while the other is emptied.

    Ordinary jobs pass combinationally. All jobs of a copy but the last are quiet. Of a copy, only the second jobs
    reduce.

    Members
    -------
    i : array of two streams of JobLayout, in
        At most one of them is valid. A copy within one memory comes as its first job, of any size, with ``target``.
    o : stream of JobLayout, out
    loop_level, stage_level : unsigned, in
        Bus words from the store half to the load half, and lines from the load half to the store half, that wait.
    loop_stb, stage_stb : 1, in
        One of them is taken.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "i": In(stream.Signature(JobLayout(params))).array(2),
                "o": Out(stream.Signature(JobLayout(params))),
                "loop_level": In(range(params.loop_words + 1)),
                "stage_level": In(range(params.stage_lines + 1)),
                "loop_stb": In(1),
                "stage_stb": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        job, valid, taken = Signal(JobLayout(self.params)), Signal(), Signal()
        with m.If(self.i[0].valid):
            m.d.comb += [job.eq(self.i[0].p), valid.eq(1), self.i[0].ready.eq(taken)]
        with m.Else():
            m.d.comb += [job.eq(self.i[1].p), valid.eq(self.i[1].valid), self.i[1].ready.eq(taken)]

        transfer = job.transfer
        first, second, last = self._pieces(m, job, valid)
        m.d.comb += self.o.p.eq(job)
        with m.If(transfer.loop | transfer.stage):
            m.d.comb += [self.o.valid.eq(valid & (first | second)), taken.eq(self.o.ready & second & last)]
            self._cut(m, job, second, last)
        with m.Else():
            m.d.comb += [self.o.valid.eq(valid), taken.eq(self.o.ready)]
        return m

    def _pieces(self, m, job, valid):
        """The job that comes next: whether it is a first one, a second one, and of the last piece."""
        params, piece_bytes = self.params, self.params.exchange_bytes
        piece_log2 = piece_bytes.bit_length() - 1
        size, loop = job.transfer.run_bytes, job.transfer.loop
        pieces = Signal(len(size) - piece_log2 + 1)  # of the copy, minus one
        filled, emptied = Signal.like(pieces), Signal.like(pieces)  # pieces whose first, whose second job has left
        all_filled = Signal()
        m.d.comb += pieces.eq((size - 1) >> piece_log2)

        # What a piece takes of the queue: only the last one is not whole.
        rest = Signal(piece_log2 + 1)
        m.d.comb += rest.eq(((size - 1) & (piece_bytes - 1)) + 1)
        self.index, self.bytes = Signal.like(pieces), Signal.like(rest)
        first, second, last = Signal(), Signal(), Signal()
        held = Signal()  # a second job waits at the output: no first one takes its place
        m.d.comb += [
            self.index.eq(Mux(second, emptied, filled)),
            last.eq(self.index == pieces),
            self.bytes.eq(Mux(last, rest, piece_bytes)),
        ]
        leaves = valid & self.o.ready
        may_fill, may_empty = Signal(), Signal()
        for chosen, unit, level, stb in (
            (loop, params.bus_bytes, self.loop_level, self.loop_stb),
            (job.transfer.stage, LINE_BYTES, self.stage_level, self.stage_stb),
        ):
            depth, unit_log2 = 2 * piece_bytes // unit, unit.bit_length() - 1
            reserved = Signal(range(depth + 1))  # of pieces whose first job has left, and not taken yet
            leaving = Signal(range(depth + 1))  # of those, whose second job has left as well
            need = (self.bytes + unit - 1) >> unit_log2
            fill_need = (Mux(filled == pieces, rest, piece_bytes) + unit - 1) >> unit_log2
            empty_need = (Mux(emptied == pieces, rest, piece_bytes) + unit - 1) >> unit_log2
            with m.If(chosen):
                m.d.comb += [
                    may_fill.eq(reserved + fill_need <= depth),
                    may_empty.eq(level >= leaving + empty_need),
                ]
            m.d.sync += [
                reserved.eq(reserved + Mux(chosen & leaves & first, need, 0) - stb),
                leaving.eq(leaving + Mux(chosen & leaves & second, need, 0) - stb),
            ]
        m.d.comb += [
            first.eq(~all_filled & may_fill & ~held),
            second.eq(~first & (all_filled | (filled != emptied)) & may_empty),
        ]
        m.d.sync += held.eq(valid & second & ~self.o.ready)
        with m.If(leaves & first):
            m.d.sync += [filled.eq(filled + 1), all_filled.eq(last)]
        with m.Elif(leaves & second):
            m.d.sync += emptied.eq(emptied + 1)
            with m.If(last):
                m.d.sync += [filled.eq(0), emptied.eq(0), all_filled.eq(0)]
        return first, second, last

    def _cut(self, m, job, second, last):
        """The job at the output: a piece of the copy, filling the queue or emptying it."""
        o, transfer = self.o.p, self.o.p.transfer
        loop, stage = job.transfer.loop, job.transfer.stage
        offset = self.index << (self.params.exchange_bytes.bit_length() - 1)
        store = Signal()
        m.d.comb += [
            store.eq(loop ^ second),
            o.store.eq(store),
            o.walk.store.eq(store),
            o.walk.loop.eq(loop & second),
            o.walk.origin.eq(Mux(loop, 0, Mux(second, job.target, job.walk.origin) + offset)),
            o.walk.data_bytes.eq(self.bytes),
            transfer.smem.eq(Mux(stage, 0, Mux(second, job.target, job.transfer.smem) + offset)),
            transfer.run_bytes.eq(self.bytes),
            transfer.data_end.eq(self.bytes),
            transfer.quiet.eq(job.transfer.quiet | ~(second & last)),
        ]
        with m.If(~second):
            m.d.comb += [transfer.reduction.eq(Reduction.NONE), transfer.signal.eq(0)]
