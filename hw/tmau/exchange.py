"""Copies within one memory: cut into pieces that pass from one path to the other through a queue."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import Reduction

from ..lib.routing import pick
from ..lib.stream import ShallowQueue
from .jobs import BlockJobLayout
from .layouts import delivery_members
from .signatures import QueueStateSignature

__all__ = ["Exchange"]

#: Pieces on their way into a queue, and in it: enough to start one every second cycle.
_PENDING = 8

#: What the second job of a piece has from the copy.
_KEPT = ("tag", "signal", "barrier", "loop", "stage", "reduction", "element", "bytes")


class _PendingLayout(data.StructLayout):
    """A piece whose second job has not left."""

    def __init__(self, params):
        job = BlockJobLayout(params)
        super().__init__(
            {
                **{name: job[name].shape for name in (*_KEPT, "quiet", "target", "size")},
                **delivery_members(params),
                "reach": range(params.exchange_bytes // params.bus_bytes),  # bus words of the piece, minus one
            }
        )


class Exchange(wiring.Component):
    """Passes jobs on; those with ``loop`` or ``stage`` leave as pieces of ``exchange_bytes``, two jobs for each.

    The *first* job of a piece fills the queue between the paths, and leaves only when the queue has space for a whole
    piece. The *second* one empties it, and leaves only when all of it is there. So neither path ever waits for the
    other in the middle of a job, and data that come from the bus are always taken: a reduction, whose old words share
    the read channel with them, cannot be kept waiting by a copy that waits for the reduction. First jobs run ahead of
    second ones, also from copy to copy, while second ones that can leave go first.

    Latency 1 for ordinary jobs, which pass when no piece is pending. A first job is offered two cycles after the one
    before has left, at the earliest, a second one two cycles after its data are there. All jobs of a copy but the last
    are quiet, and only its second jobs reduce. Without the feature ``local_copies`` there are ordinary jobs only.
    """

    def __init__(self, params):
        self.params = params
        self.kept = (*_KEPT, *delivery_members(params))
        self.pending = ShallowQueue(_PendingLayout(params), _PENDING) if params.has("local_copies") else None
        super().__init__(
            {
                # At most one of them is valid, without the feature ``lanes`` the first one. A copy within one memory
                # comes as its first job, of any size, with ``target``.
                "i": In(stream.Signature(BlockJobLayout(params))).array(2),
                # Registered.
                "o": Out(stream.Signature(BlockJobLayout(params))),
                # Bus words from the store path to the load path.
                "loop": In(QueueStateSignature(params.exchange_words)),
                # Bus-aligned words from the load path to the store path.
                "stage": In(QueueStateSignature(params.exchange_words)),
                # A job is at the output, or the second job of a piece is to come.
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        job, valid, taken = Signal(BlockJobLayout(self.params)), Signal(), Signal()
        pick(m, self.i if self.params.has("lanes") else self.i[:1], job, valid, taken)
        # What the output takes next.
        chosen, offered, free = Signal(BlockJobLayout(self.params)), Signal(), Signal()
        m.d.comb += free.eq(~self.o.valid | self.o.ready)
        with m.If(free):
            m.d.sync += [self.o.valid.eq(offered), self.o.payload.eq(chosen)]
        if not self.pending:
            m.d.comb += [chosen.eq(job), offered.eq(valid), taken.eq(free), self.busy.eq(self.o.valid)]
            return m

        m.submodules.pending = pending = self.pending
        copies = valid & (job.loop | job.stage)

        filled, emptied = Signal(), Signal()  # a first, a second job goes to the output
        # Found out a cycle ahead. Only a job that leaves makes them untrue, and then they are found out again.
        may_fill, may_empty = Signal(), Signal()
        has_space, has_come = self._levels(m, filled, emptied)
        m.d.sync += [
            may_fill.eq(copies & pending.i.ready & has_space & ~filled),
            may_empty.eq(pending.o.valid & has_come & ~emptied),
        ]
        m.d.comb += [
            self.busy.eq(pending.o.valid | self.o.valid),
            emptied.eq(may_empty & free),
            filled.eq(~may_empty & may_fill & free),
            pending.i.valid.eq(filled),
            pending.o.ready.eq(emptied),
        ]
        last = self._first(m, job, chosen, filled)
        with m.If(may_empty):
            m.d.comb += offered.eq(1)
            self._second(m, chosen)
        with m.Elif(copies):
            m.d.comb += [offered.eq(may_fill), taken.eq(filled & last)]
        with m.Else():
            m.d.comb += [offered.eq(valid & ~pending.o.valid), taken.eq(free & ~pending.o.valid)]
        return m

    def _levels(self, m, filled, emptied):
        """Whether the queue has space for a piece, and holds that of the next second job."""
        piece = self.params.exchange_bytes // self.params.bus_bytes
        new, old = self.pending.i.payload, self.pending.o.payload
        has_space, has_come = Signal(), Signal()
        depth = self.params.exchange_words
        for name, queue in (("loop", self.loop), ("stage", self.stage)):
            reserved = Signal(range(depth + 1), name=f"{name}_reserved")  # of first jobs that left, and not taken yet
            leaving = Signal(range(depth + 1), name=f"{name}_leaving")  # of those, whose second jobs left as well
            with m.If(new[name]):
                m.d.comb += has_space.eq(reserved <= depth - piece)
            with m.If(old[name]):
                m.d.comb += has_come.eq(queue.level > leaving + old.reach)
            m.d.sync += [
                reserved.eq(reserved + Mux(filled & new[name], new.reach + 1, 0) - queue.taken),
                leaving.eq(leaving + Mux(emptied & old[name], old.reach + 1, 0) - queue.taken),
            ]
        return has_space, has_come

    def _first(self, m, job, o, leaves):
        """The next piece of the copy at the input, to ``o`` and to the pending ones; whether it is the last."""
        piece_bytes, bus_log2 = self.params.exchange_bytes, self.params.bus_log2
        piece_log2 = piece_bytes.bit_length() - 1
        new = self.pending.i.payload
        reach = Signal.like(job.size)  # bytes of the copy, minus one
        index = Signal(len(reach) - piece_log2)
        rest = job.size[:piece_log2]  # what is left for the last piece, if that is not a whole one
        last = Signal()
        ends, words = Signal(piece_log2), Signal.like(new.reach)  # bytes, bus words of the piece, minus one
        is_last = Signal()
        offset = index << piece_log2
        m.d.comb += [
            reach.eq(job.size - 1),
            is_last.eq(reach[piece_log2:] == index),
            ends.eq(Mux(is_last, reach[:piece_log2], piece_bytes - 1)),
            *(new[name].eq(job[name]) for name in self.kept),
            new.quiet.eq(job.quiet | ~last),
            new.target.eq(job.target + offset),
            # The size once more, for it has a longer way to go.
            new.size.eq(Mux(last & rest.any(), rest, piece_bytes)),
            new.reach.eq(words),
            o.eq(job),
        ]
        m.d.sync += [last.eq(is_last), words.eq(ends >> bus_log2)]  # in time for ``may_fill``
        with m.If(leaves):
            m.d.sync += index.eq(Mux(last, 0, index + 1))
        with m.If(job.loop | job.stage):
            m.d.comb += [
                o.size.eq(new.size),
                o.quiet.eq(1),
                o.signal.eq(0),
                o.reduction.eq(Reduction.NONE),
            ]
        with m.If(job.loop):
            m.d.comb += o.smem.eq(job.smem + offset)
        with m.If(job.stage):
            m.d.comb += o.address.eq(job.address + offset)
        return last

    def _second(self, m, o):
        """The second job of the oldest pending piece, to ``o``."""
        old = self.pending.o.payload
        m.d.comb += [
            o.eq(0),
            *(o[name].eq(old[name]) for name in (*self.kept, "quiet", "size")),
            o.store.eq(old.stage),
            o.address.eq(Mux(old.stage, old.target, 0)),
            o.smem.eq(Mux(old.loop, old.target, 0)),
        ]
