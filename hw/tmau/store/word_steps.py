"""Word step generator: walks the bus words of a run, and the segments of its source that they are made of."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import CHUNK_BYTES, LINE_BYTES

from ...smem.swizzle import chunk_flips
from .layouts import StoredRunLayout, WordStepLayout

__all__ = ["WordStepGenerator"]


class WordStepGenerator(wiring.Component):
    """Cuts runs into steps: a bus word each.

    Segments are taken in the order of their use, each once as long as the runs of a transfer go on in it. A word that
    lies in two segments takes the second one; if the first one is not there yet, a step without a word takes it before.

    Combinational from ``i`` to ``steps``, and back: a run waits at the input until its last step has been taken. One
    step a cycle, without a pause between runs.

    Members
    -------
    i : In(stream of StoredRunLayout)
    steps : Out(stream of WordStepLayout)
    """

    def __init__(self, params):
        self.params = params
        self.begun = Signal()  # a word of the run has left: the two below are what is left of it
        self.source = Signal(params.smem.addr_width)
        self.bytes = Signal(params.smem.addr_width + 1)
        self.held = Signal()  # a segment of the transfer is there
        self.held_segment = Signal(params.smem.addr_width - params.bus_log2)  # its address >> bus_log2
        super().__init__(
            {"i": In(stream.Signature(StoredRunLayout(params))), "steps": Out(stream.Signature(WordStepLayout(params)))}
        )

    def elaborate(self, platform):
        m = Module()
        run, step, cut = self.i.p, self.steps.p, self.steps.p.cut
        bus_bytes, bus_log2 = self.params.bus_bytes, self.params.bus_log2
        source, bytes_left, first = Signal.like(self.source), Signal.like(self.bytes), Signal(bus_log2)
        m.d.comb += [
            source.eq(Mux(self.begun, self.source, run.source)),
            bytes_left.eq(Mux(self.begun, self.bytes, run.bytes)),
            first.eq(Mux(self.begun, 0, run.address[:bus_log2])),
        ]
        segment, start = source[bus_log2:], source[:bus_log2]

        here = Signal()  # the segment of the next byte is there
        space = Signal(bus_log2 + 1)  # bytes of the word
        left = bytes_left[: bus_log2 + 1]  # bytes of the run, if it ends in the word
        beyond = Signal(bus_log2 + 2)  # from the start of the segment to the end of the run, if that ends in the word
        ends, done = Signal(), Signal()
        m.d.comb += [
            here.eq(self.held & (self.held_segment == segment)),
            space.eq(bus_bytes - first),
            ends.eq(bytes_left <= space),
            beyond.eq(start + left),
            cut.straddle.eq(Mux(ends, beyond > bus_bytes, start > first)),
            cut.word.eq(~run.empty & (here | ~cut.straddle)),
            cut.fetch.eq(~run.empty & (~here | cut.straddle)),
            cut.first.eq(first),
            cut.end.eq(Mux(ends, first + left, bus_bytes)),
            cut.turn.eq(start - first),
            cut.last.eq(done & run.last),
            done.eq(run.empty | (cut.word & ends)),
        ]
        m.d.comb += [cut[name].eq(run.context[name]) for name in ("tag", "quiet", "bytes", "loop")]

        taken = Signal.like(segment)  # the segment of the step
        in_line = (LINE_BYTES // bus_bytes).bit_length() - 1
        chunks = Const(0, (bus_bytes // CHUNK_BYTES).bit_length() - 1)
        m.d.comb += [
            taken.eq(Mux(here, segment + 1, segment)),
            step.row.eq(taken[in_line:]),
            step.bank.eq((taken[:in_line] << len(chunks)) ^ chunk_flips(run.context.swizzle, step.row)),
        ]
        m.d.comb += [step[name].eq(run.context[name]) for name in ("stage", "immediate", "fill")]

        m.d.comb += [self.steps.valid.eq(self.i.valid), self.i.ready.eq(self.steps.ready & done)]
        with m.If(self.i.valid & self.steps.ready):
            m.d.sync += [self.held.eq(~cut.last), self.begun.eq(~done & (self.begun | cut.word))]
            with m.If(cut.fetch):
                m.d.sync += self.held_segment.eq(taken)
            with m.If(cut.word):
                m.d.sync += [self.source.eq(source + space), self.bytes.eq(bytes_left - space)]
        return m
