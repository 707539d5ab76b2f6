"""Copies within one memory, cut into pieces that pass from one path to the other through a queue."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import Reduction

from ..lib.routing import connect_exclusive
from ..lib.stream import ShallowQueue
from .jobs import BlockJobLayout
from .layouts import delivery_members
from .signatures import QueueStateSignature

__all__ = ["Exchange"]

#: Pieces between their two jobs: enough to start one every second cycle.
_PENDING = 8

#: Members of the copy that the second job of a piece needs.
_COPIED = ("tag", "signal", "barrier", "loop", "stage", "reduction", "element", "bytes")


class _PendingLayout(data.StructLayout):
    """A piece whose second job has not left yet."""

    def __init__(self, params):
        job = BlockJobLayout(params)
        super().__init__(
            {
                **{name: job[name].shape for name in (*_COPIED, "quiet", "target", "size")},
                **delivery_members(params),
                "reach": range(params.exchange_bytes // params.bus_bytes),  # bus words of the piece minus one
            }
        )


class Exchange(wiring.Component):
    """Forwards jobs; jobs with ``loop`` or ``stage`` leave as pieces of ``exchange_bytes``, with two jobs each.

    The *first* job of a piece fills the queue between the paths and leaves only when the queue has space for the whole
    piece. The *second* job empties the queue and leaves only when the whole piece is there. So neither path waits for
    the other in the middle of a job, and words from the bus are always accepted. Otherwise a copy could block the read
    channel while it waits for a reduction, whose old words need that channel. First jobs run ahead of second jobs, even
    of earlier copies, but a second job that can leave has priority.

    Latency 1 for ordinary jobs, which pass when no piece is pending. A first job is offered two cycles after the
    previous one has left or later, a second job two cycles after its data have arrived. All jobs of a copy but the last
    are quiet, and only second jobs reduce. Without the feature ``local_copies`` there are only ordinary jobs.
    """

    def __init__(self, params):
        self._params = params
        self._copied = (*_COPIED, *delivery_members(params))
        self.pending = ShallowQueue(_PendingLayout(params), _PENDING) if params.has("local_copies") else None
        super().__init__(
            {
                # At most one is valid; without the feature ``lanes`` the second is not used. A copy within one memory
                # arrives as one first job of any size, with ``target``.
                "i": In(stream.Signature(BlockJobLayout(params))).array(2),
                "o": Out(stream.Signature(BlockJobLayout(params))),  # Registered.
                "loop": In(QueueStateSignature(params.exchange_words)),  # From the store path to the load path.
                "stage": In(QueueStateSignature(params.exchange_words)),  # From the load path to the store path.
                "busy": Out(1),  # A job is at the output, or a second job is pending.
            }
        )

    def elaborate(self, platform):
        m = Module()
        job, valid, accepted = Signal(BlockJobLayout(self._params)), Signal(), Signal()
        connect_exclusive(m, self.i if self._params.has("lanes") else self.i[:1], job, valid, accepted)
        # The next job for the output register.
        chosen, offered, free = Signal(BlockJobLayout(self._params)), Signal(), Signal()
        m.d.comb += free.eq(~self.o.valid | self.o.ready)
        with m.If(free):
            m.d.sync += [self.o.valid.eq(offered), self.o.payload.eq(chosen)]
        if not self.pending:
            m.d.comb += [chosen.eq(job), offered.eq(valid), accepted.eq(free), self.busy.eq(self.o.valid)]
            return m

        m.submodules.pending = pending = self.pending
        copies = valid & (job.loop | job.stage)

        filled, emptied = Signal(), Signal()  # a first, a second job enters the output register
        # Computed one cycle ahead. They stay true until a job leaves, and then are computed again.
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
            m.d.comb += [offered.eq(may_fill), accepted.eq(filled & last)]
        with m.Else():
            m.d.comb += [offered.eq(valid & ~pending.o.valid), accepted.eq(free & ~pending.o.valid)]
        return m

    def _levels(self, m, filled, emptied):
        """Whether the queue has space for a piece, and whether it holds the piece of the next second job."""
        piece = self._params.exchange_bytes // self._params.bus_bytes
        new, old = self.pending.i.payload, self.pending.o.payload
        has_space, has_come = Signal(), Signal()
        depth = self._params.exchange_words
        for name, queue in (("loop", self.loop), ("stage", self.stage)):
            reserved = Signal(
                range(depth + 1), name=f"{name}_reserved"
            )  # words of first jobs that have not left the queue
            leaving = Signal(range(depth + 1), name=f"{name}_leaving")  # of these, words whose second jobs have left
            with m.If(new[name]):
                m.d.comb += has_space.eq(reserved <= depth - piece)
            with m.If(old[name]):
                m.d.comb += has_come.eq(queue.level > leaving + old.reach)
            m.d.sync += [
                reserved.eq(reserved + Mux(filled & new[name], new.reach + 1, 0) - queue.popped),
                leaving.eq(leaving + Mux(emptied & old[name], old.reach + 1, 0) - queue.popped),
            ]
        return has_space, has_come

    def _first(self, m, job, o, leaves):
        """Drives the next first job to ``o`` and to ``pending``; returns whether it is the last of the copy."""
        piece_bytes, bus_log2 = self._params.exchange_bytes, self._params.bus_log2
        piece_log2 = piece_bytes.bit_length() - 1
        new = self.pending.i.payload
        reach = Signal.like(job.size)  # bytes of the copy minus one
        index = Signal(len(reach) - piece_log2)
        rest = job.size[:piece_log2]  # bytes of the last piece, 0 if that is a whole one
        last = Signal()
        ends, words = Signal(piece_log2), Signal.like(new.reach)  # bytes and bus words of the piece, minus one
        is_last = Signal()
        offset = index << piece_log2
        m.d.comb += [
            reach.eq(job.size - 1),
            is_last.eq(reach[piece_log2:] == index),
            ends.eq(Mux(is_last, reach[:piece_log2], piece_bytes - 1)),
            *(new[name].eq(job[name]) for name in self._copied),
            new.quiet.eq(job.quiet | ~last),
            new.target.eq(job.target + offset),
            # Equal to ``ends`` plus one, but earlier.
            new.size.eq(Mux(last & rest.any(), rest, piece_bytes)),
            new.reach.eq(words),
            o.eq(job),
        ]
        m.d.sync += [last.eq(is_last), words.eq(ends >> bus_log2)]  # in time for ``may_fill``
        with m.If(leaves):
            m.d.sync += index.eq(Mux(last, 0, index + 1))
        with m.If(job.loop | job.stage):
            m.d.comb += [o.size.eq(new.size), o.quiet.eq(1), o.signal.eq(0), o.reduction.eq(Reduction.NONE)]
        with m.If(job.loop):
            m.d.comb += o.smem.eq(job.smem + offset)
        with m.If(job.stage):
            m.d.comb += o.address.eq(job.address + offset)
        return last

    def _second(self, m, o):
        """Drives the second job of the oldest pending piece to ``o``."""
        old = self.pending.o.payload
        m.d.comb += [
            o.eq(0),
            *(o[name].eq(old[name]) for name in (*self._copied, "quiet", "size")),
            o.store.eq(old.stage),
            o.address.eq(Mux(old.stage, old.target, 0)),
            o.smem.eq(Mux(old.loop, old.target, 0)),
        ]
