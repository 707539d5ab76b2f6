"""The last stage before shared memory: nothing leaves the shared window (docs/tmau.md, "Windows")."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.stream import DeepQueue, ReadyBuffer, SkidBuffer, TwinBuffer
from ...smem.layouts import LineLayout, LineReadSignature, whole_line
from ..layouts import (
    CompletionLayout,
    RowLayout,
    StagedWordLayout,
    TransferLayout,
    WindowsLayout,
    WordLayout,
    all_windows,
    windows_of,
)
from .layouts import AlignedLayout, RunLayout, StepLayout
from .place import WordPlacer
from .realign import Realigner
from .shared_reduce import SharedReducer
from .steps import ResponseTracker, StepGenerator

__all__ = ["LoadPath", "SharedGuard"]


class SharedGuard(wiring.Component):
    """One register for what goes to shared memory; what lies outside the window is swallowed.

    Setup has refused every command that would leave the window, so nothing is swallowed unless a block before this one
    is wrong. Addresses are compared in front of the register.

    Latency: one cycle. Throughput: one item a cycle; with ``late`` one every second cycle. ``i.ready`` depends
    combinationally on ``o.ready``.

    Parameters
    ----------
    params : TmauParams
    shape : shape-like
        Of an item.
    row : function
        From the payload of ``i`` to the row that it concerns: byte address >> 7.
    late : bool
        An item is accepted as it leaves, or as it is swallowed: then its source knows that it has arrived.
    """

    def __init__(self, params, shape, row, late=False):
        self._row = row
        self._late = late
        self.taken = Signal()  # with ``late``: the item at the input is in the register, or was swallowed
        super().__init__(
            {
                # Of the item at ``i``; they hold while it waits.
                "windows": In(WindowsLayout(params)),
                "i": In(stream.Signature(shape)),
                # Registered.
                "o": Out(stream.Signature(shape)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        windows, row = self.windows, self._row(self.i.payload)
        inside = Signal()
        m.d.comb += inside.eq(~windows.confine_shared | ((windows.shared_first <= row) & (row <= windows.shared_last)))
        done = ~self.o.valid | self.o.ready
        if self._late:
            m.d.comb += self.i.ready.eq(self.taken & done)
            m.d.sync += self.taken.eq(self.i.valid & ~self.i.ready)
        else:
            m.d.comb += self.i.ready.eq(done)
        with m.If(done):
            m.d.sync += [self.o.valid.eq(self.i.valid & inside & ~self.taken), self.o.payload.eq(self.i.payload)]
        return m


#: Runs, and steps, in a block memory, two of which are on their way through it.
_WAITING = 4


class LoadPath(wiring.Component):
    """Makes transfers to shared memory, one step a cycle."""

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "transfers": In(stream.Signature(TransferLayout(params))),
                # Of the transfers, in order; ``max_outstanding`` of them fit.
                "rows": In(stream.Signature(RowLayout(params))),
                # From the bus, in the order of the requests.
                "words": In(stream.Signature(WordLayout(params))),
                # From the store path, for transfers with ``loop``.
                "loop": In(stream.Signature(WordLayout(params))),
                # Nothing outside the shared window of a command is written by it.
                "windows": In(all_windows(params)),
                # Registered, but for the choice between word and fill. Nothing inside the path depends on ``ready``
                # further back than the last stage; with ``params.registers_words`` than that in front of it, and
                # ``words.ready`` does.
                "writes": Out(stream.Signature(LineLayout(params.smem, params.cores, params.line_words))),
                # To the store path, of transfers with ``stage``.
                "staged": Out(stream.Signature(StagedWordLayout(params))),
                # Lines of shared memory that a reduction changes: read in the cycle of the handshake. Unused in a
                # cluster.
                "fetch": Out(LineReadSignature(params.smem)),
                # Of transfers that are not quiet, from the cycle after their last write on.
                "completions": Out(stream.Signature(CompletionLayout(params))),
                # A step waits for its word.
                "stall_data": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        m.submodules.tracker = tracker = ResponseTracker(params)
        run = RunLayout(params)
        m.submodules.runs = runs = DeepQueue(run, _WAITING, direct=True) if params.spares_tables else ReadyBuffer(run)
        m.submodules.steps = steps = StepGenerator(params)
        # No ready from behind gets further than here, and what rotates and chooses words comes from registers.
        step = StepLayout(params)
        m.submodules.cut = cut = DeepQueue(step, _WAITING, direct=True) if params.spares_tables else SkidBuffer(step)
        m.submodules.realign = realign = Realigner(params)
        if not params.registers_words:
            m.submodules.aligned = aligned = TwinBuffer(AlignedLayout(params))
        m.submodules.place = place = WordPlacer(params)
        m.submodules.guard = guard = SharedGuard(params, unsigned(params.smem.row_width), row=lambda row: row)

        connect(m, flipped(self.transfers), tracker.transfers)
        connect(m, flipped(self.rows), tracker.rows)
        connect(m, tracker.runs, runs.i)
        connect(m, runs.o, steps.runs)
        connect(m, steps.steps, cut.i)
        connect(m, cut.o, realign.steps)
        connect(m, flipped(self.words), realign.words)
        connect(m, flipped(self.loop), realign.loop)
        pieces = realign.aligned
        if not params.registers_words:
            # Nor from here: whether a reduction may go on takes most of a cycle, and enables no register of a piece.
            connect(m, pieces, aligned.i)
            pieces = aligned.o
        # In a cluster the memory that is written reduces.
        if params.has("reductions_shared") and params.cores == 1:
            m.submodules.reduce = reduce = SharedReducer(params)
            connect(m, pieces, reduce.i)
            connect(m, reduce.fetch, flipped(self.fetch))
            m.d.comb += reduce.written.eq(~guard.o.valid)
            pieces = reduce.o
        connect(m, pieces, place.i)
        connect(m, place.staged, flipped(self.staged))
        connect(m, place.completions, flipped(self.completions))
        connect(m, place.rows, guard.i)
        if params.cores > 1:
            m.d.comb += [self.writes.payload[name].eq(place.delivery[name]) for name, _ in place.delivery.shape()]
        m.d.comb += [
            guard.windows.eq(windows_of(params, self.windows, place.i.payload.context.tag)),
            self.writes.valid.eq(guard.o.valid),
            self.writes.payload.row.eq(guard.o.payload),
            self.writes.payload.data.eq(place.data if params.line_words else whole_line(place.data)),
            self.writes.payload.strobe.eq(place.strobe),
            guard.o.ready.eq(self.writes.ready),
            self.stall_data.eq(realign.stall_data),
        ]
        return m
