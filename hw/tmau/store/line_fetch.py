"""Line fetcher: gets the line of each step, un-swizzled."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS, LINE_BYTES

from ...lib.crossbar import LaneCrossbar
from ...smem.layouts import CHUNK_BITS
from ...smem.signatures import LineReadSignature
from ...smem.swizzle import chunk_flips
from .layouts import FetchedLayout, WordStepLayout
from .staged_lines import StagedLineLayout

__all__ = ["ENTRIES", "LineFetcher"]

#: Steps between line fetcher and bus: enough for one a cycle, from the fetch to the cycle after the word has left.
ENTRIES = 4


class LineFetcher(wiring.Component):
    """Takes a line from shared memory, from the load path, or made of the fill, for each step that needs one.

    A line of shared memory comes in the cycle after its fetch and must be taken then. So a step starts only when there
    is space for what becomes of it, and then passes without a pause; steps with a word or an end take one of
    ``ENTRIES`` places until ``left`` gives it back.

    Latency: two cycles. Throughput: one step a cycle; a staged line every second cycle.

    Members
    -------
    steps : In(stream of WordStepLayout)
    fetch : Out(LineReadSignature(params.smem))
    staged : In(stream of StagedLineLayout)
    o : Out(stream of FetchedLayout, always ready)
        Never waits.
    left : In(1)
        A place is free again.
    read_stb : Out(1)
        The source of a transfer has been read.
    """

    def __init__(self, params):
        self.params = params
        self.used = Signal(range(ENTRIES + 1))  # places that are taken
        super().__init__(
            {
                "steps": In(stream.Signature(WordStepLayout(params))),
                "fetch": Out(LineReadSignature(params.smem)),
                "staged": In(stream.Signature(StagedLineLayout(params))),
                "o": Out(stream.Signature(FetchedLayout(params), always_ready=True)),
                "left": In(1),
                "read_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        step = self.steps.p

        # First cycle: the fetch.
        pending, fetched = Signal(), Signal.like(step)
        takes_staged = Signal()  # in this cycle, for the step of the cycle before
        space, source_ready, started = Signal(), Signal(), Signal()
        takes_place = step.word | step.last
        from_memory = step.fetch & ~step.context.stage & ~step.context.immediate
        m.d.comb += [
            space.eq(~takes_place | (self.used != ENTRIES)),
            self.fetch.rows.valid.eq(self.steps.valid & space & from_memory),
            self.fetch.rows.p.eq(step.row),
            self.steps.ready.eq(space & source_ready),
            started.eq(self.steps.valid & self.steps.ready),
        ]
        with m.If(from_memory):
            m.d.comb += source_ready.eq(self.fetch.rows.ready)
        with m.Elif(step.fetch & step.context.stage):
            m.d.comb += source_ready.eq(self.staged.valid & ~takes_staged)
        with m.Else():
            m.d.comb += source_ready.eq(1)
        m.d.sync += [self.used.eq(self.used + (started & takes_place) - self.left), pending.eq(started)]
        with m.If(started):
            m.d.sync += fetched.eq(step)

        # Second cycle: the line.
        context, o = fetched.context, self.o.p
        line = Signal(8 * LINE_BYTES)
        with m.If(context.stage):
            m.d.comb += line.eq(self.staged.p.data)
        with m.Elif(context.immediate):
            m.d.comb += line.eq(context.fill.replicate(LINE_BYTES // 8))
        with m.Else():
            m.d.comb += line.eq(self.fetch.line)
        m.submodules.crossbar = crossbar = LaneCrossbar(CHUNK_BITS, BANKS)
        flips = chunk_flips(context.swizzle, fetched.row)
        for place in range(BANKS):
            m.d.comb += [
                crossbar.i[place].eq(line.word_select(place, CHUNK_BITS)),
                crossbar.sel[place].eq(place ^ flips),
            ]

        m.d.comb += [
            takes_staged.eq(pending & fetched.fetch & context.stage),
            self.staged.ready.eq(takes_staged),
            self.read_stb.eq(pending & fetched.last),
        ]
        # The error at the output is also where errors are collected: it is never cleared within a transfer.
        erred = o.error & ~o.step.last
        m.d.sync += self.o.valid.eq(pending)
        with m.If(pending):
            m.d.sync += [
                o.step.eq(fetched),
                o.error.eq(erred | (takes_staged & self.staged.p.error)),
            ]
            with m.If(~erred):
                m.d.sync += o.address.eq(self.staged.p.address)
            with m.If(fetched.fetch):
                m.d.sync += o.line.eq(Cat(crossbar.o[place] for place in range(BANKS)))
        return m
