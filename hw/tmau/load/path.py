"""The load half: from bus words to lines of shared memory; connections only."""

from amaranth import Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec import LINE_BYTES

from ...lib.join import join
from ...smem.layouts import LineLayout
from ..layouts import CompletionLayout, RowLayout, StagedLineLayout, TransferLayout, WordLayout
from .fill import LineAssembler
from .realign import Realigner
from .shared_reduce import SharedReducer
from .steps import StepGenerator
from .swizzle import Swizzler
from .tracker import ResponseTracker

__all__ = ["LoadPath"]


class LoadPath(wiring.Component):
    """Makes transfers to shared memory, one step a cycle.

    Members
    -------
    transfers : In(stream of TransferLayout)
    rows : In(stream of RowLayout)
        Of the transfers, in order; ``max_outstanding`` of them fit.
    words : In(stream of WordLayout)
        From the bus, in the order of the requests.
    loop : In(stream of WordLayout)
        From the store half, for transfers with ``loop``.
    writes : Out(stream of LineLayout)
    staged : Out(stream of StagedLineLayout)
        To the store half, of transfers with ``stage``.
    fetches : Out(stream of unsigned(params.smem.row_width))
        Lines of shared memory that a reduction changes: read in the cycle of the handshake.
    line : In(8 * LINE_BYTES)
        In the cycle after it.
    completions : Out(stream of CompletionLayout)
        Of transfers that are not quiet, with the write of their last line or later.
    stall_data : Out(1)
        A step waits for its word.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "transfers": In(stream.Signature(TransferLayout(params))),
                "rows": In(stream.Signature(RowLayout(params))),
                "words": In(stream.Signature(WordLayout(params))),
                "loop": In(stream.Signature(WordLayout(params))),
                "writes": Out(stream.Signature(LineLayout(params.smem))),
                "staged": Out(stream.Signature(StagedLineLayout(params))),
                "fetches": Out(stream.Signature(unsigned(params.smem.row_width))),
                "line": In(8 * LINE_BYTES),
                "completions": Out(stream.Signature(CompletionLayout(params))),
                "stall_data": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        m.submodules.tracker = tracker = ResponseTracker(params)
        m.submodules.steps = steps = StepGenerator(params)
        m.submodules.realign = realign = Realigner(params)
        m.submodules.fill = fill = LineAssembler(params)
        m.submodules.swizzle = swizzle = Swizzler(params)
        m.submodules.reduce = reduce = SharedReducer(params)

        join(m, transfers=flipped(self.transfers), tracker=tracker.transfers)
        join(m, rows=flipped(self.rows), tracker=tracker.rows)
        join(m, tracker=tracker.runs, steps=steps.runs)
        join(m, steps=steps.steps, realign=realign.steps)
        join(m, words=flipped(self.words), realign=realign.words)
        join(m, loop=flipped(self.loop), realign=realign.loop)
        join(m, realign=realign.aligned, fill=fill.aligned)
        join(m, fill=fill.lines, swizzle=swizzle.lines)
        join(m, swizzle=swizzle.writes, reduce=reduce.i)
        join(m, swizzle=swizzle.completions, completions=flipped(self.completions))
        join(m, reduce=reduce.writes, writes=flipped(self.writes))
        join(m, reduce=reduce.staged, staged=flipped(self.staged))
        join(m, reduce=reduce.fetches, fetches=flipped(self.fetches))
        m.d.comb += [reduce.line.eq(self.line), self.stall_data.eq(realign.stall_data)]
        return m
