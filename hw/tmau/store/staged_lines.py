"""TO BE DELETED: staged words to lines, until the line fetcher takes words as they come."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import LINE_BYTES

from ..layouts import StagedWordLayout
from .layouts import StoredRunLayout

__all__ = ["StagedLineLayout", "StagedLines"]


class StagedLineLayout(data.StructLayout):
    """A line from the load path."""

    def __init__(self, params):
        super().__init__(
            {"data": unsigned(8 * LINE_BYTES), "error": unsigned(1), "address": unsigned(params.addr_width)}
        )


class StagedLines(wiring.Component):
    """Gathers the words of each line of a staged run.

    Members
    -------
    runs : In(stream of StoredRunLayout)
    i : In(stream of StagedWordLayout)
    o : Out(stream of StagedLineLayout)
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "runs": In(stream.Signature(StoredRunLayout(params))),
                "i": In(stream.Signature(StagedWordLayout(params))),
                "o": Out(stream.Signature(StagedLineLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        run, words = self.runs.p, LINE_BYTES // self.params.bus_bytes
        wanted = run.context.stage & ~run.empty
        count = Signal(range(LINE_BYTES * 64))
        final, full = Signal(), Signal()
        m.d.comb += [
            final.eq(((count + 1) << self.params.bus_log2) >= run.bytes),
            full.eq(final | ((count + 1) % words == 0)),
            self.i.ready.eq(self.runs.valid & wanted & ~self.o.valid),
            self.runs.ready.eq(~wanted | (self.i.valid & self.i.ready & final)),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                count.eq(count + 1),
                self.o.p.data.word_select(count % words, self.params.bus_width).eq(self.i.p.data),
                self.o.p.error.eq(self.i.p.error),
                self.o.p.address.eq(self.i.p.address),
                self.o.valid.eq(full),
            ]
            with m.If(final):
                m.d.sync += count.eq(0)
        return m
