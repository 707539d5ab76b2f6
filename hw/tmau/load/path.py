"""The load path, from bus words to shared memory, and the guard of the shared window."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.stream import DeepQueue, ReadyBuffer, SkidBuffer
from ...smem.layouts import LineLayout, whole_line
from ...smem.signatures import LineReadSignature
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
    """A register that drops items for lines outside the shared window (docs/tmau.md, "Windows").

    Setup refuses every command that would leave the window, so the guard drops nothing unless an earlier block fails.

    Latency: one cycle. Throughput: one item a cycle; with ``late`` one every second cycle. ``i.ready`` depends
    combinationally on ``o.ready``.

    Parameters
    ----------
    params : TmauParams
    shape : shape-like
        Shape of an item.
    row : function
        Returns the row (byte address >> 7) of an item.
    late : bool
        An item is accepted when it leaves or is dropped, so that its source knows that it has arrived.
    """

    def __init__(self, params, shape, row, late=False):
        self._row = row
        self._late = late
        self.checked = Signal()  # with ``late``: the item at the input is in the register, or was dropped
        super().__init__(
            {
                "windows": In(WindowsLayout(params)),  # For the item at ``i``; constant while it waits.
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),  # Registered.
            }
        )

    def elaborate(self, platform):
        m = Module()
        windows, row = self.windows, self._row(self.i.payload)
        inside = Signal()
        m.d.comb += inside.eq(~windows.confine_shared | ((windows.shared_first <= row) & (row <= windows.shared_last)))
        done = ~self.o.valid | self.o.ready
        if self._late:
            m.d.comb += self.i.ready.eq(self.checked & done)
            m.d.sync += self.checked.eq(self.i.valid & ~self.i.ready)
        else:
            m.d.comb += self.i.ready.eq(done)
        with m.If(done):
            m.d.sync += [self.o.valid.eq(self.i.valid & inside & ~self.checked), self.o.payload.eq(self.i.payload)]
        return m


#: Depth of queues of runs and steps in block RAM, whose latency is two cycles.
_WAITING = 4


class LoadPath(wiring.Component):
    """Performs transfers to shared memory, one step a cycle; connections only."""

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "transfers": In(stream.Signature(TransferLayout(params))),
                "rows": In(stream.Signature(RowLayout(params))),  # In order. Up to ``max_outstanding`` wait here.
                "words": In(stream.Signature(WordLayout(params))),  # From the bus, in the order of the requests.
                "loop": In(stream.Signature(WordLayout(params))),  # From the store path, for transfers with ``loop``.
                "windows": In(all_windows(params)),  # Writes outside the window of their command are dropped.
                # Registered, except for the multiplexer of word and fill. Only the last stage depends on ``ready``.
                "writes": Out(stream.Signature(LineLayout(params.smem, params.cores, params.line_words))),
                "staged": Out(stream.Signature(StagedWordLayout(params))),  # For transfers with ``stage``.
                # Lines that a reduction changes, read in the cycle of the handshake. Not used in a cluster.
                "fetch": Out(LineReadSignature(params.smem)),
                # For transfers that are not quiet, one cycle after their last write or later.
                "completions": Out(stream.Signature(CompletionLayout(params))),
                "stall_data": Out(1),  # A step waits for its word.
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self._params
        m.submodules.tracker = tracker = ResponseTracker(params)
        run = RunLayout(params)
        m.submodules.runs = runs = DeepQueue(run, _WAITING, direct=True) if params.prefer_bram else ReadyBuffer(run)
        m.submodules.steps = steps = StepGenerator(params)
        # Cuts the path of ready, and drives the rotator of the words from registers.
        step = StepLayout(params)
        m.submodules.cut = cut = DeepQueue(step, _WAITING, direct=True) if params.prefer_bram else SkidBuffer(step)
        m.submodules.realign = realign = Realigner(params)
        # Cuts the path of ready again.
        m.submodules.aligned = aligned = SkidBuffer(AlignedLayout(params))
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
        connect(m, realign.aligned, aligned.i)
        pieces = aligned.o
        # In a cluster the receiving memory reduces.
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
