"""The write generator: legal bursts for the runs of a store."""

from amaranth import unsigned
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...bus.burst import BurstSplitter, RangeLayout
from ...bus.writes import WriteBurstLayout
from .tracker import StoredRunLayout

__all__ = ["WriteGenerator"]


class _AskedLayout(data.StructLayout):
    """The bus words of a run."""

    def __init__(self, word_width, count_width):
        super().__init__(
            {
                "range": RangeLayout(word_width, count_width),
                "empty": unsigned(1),
                "last": unsigned(1),
                "reduction": unsigned(4),
                "element": unsigned(4),
            }
        )


class WriteGenerator(wiring.Component):
    """Asks for every bus word that a run touches, in as few bursts as page boundary and ``max_burst`` allow.

    Exactly one burst of a transfer has ``last``: the last one of its last run, or, if that is empty, an empty one.
    Runs with ``loop`` ask for nothing. Latency: one cycle from a run to its first burst. Throughput: one burst a cycle.

    Members
    -------
    i : In(stream of StoredRunLayout)
    bursts : Out(stream of WriteBurstLayout)
    """

    def __init__(self, params):
        self.params = params
        count_width = params.smem.addr_width + 2 - params.bus_log2  # a run may start anywhere in a word
        self.splitter = BurstSplitter(
            word_width=params.word_width,
            count_width=count_width,
            bus_bytes=params.bus_bytes,
            max_burst=params.max_burst,
        )
        self.asked = Signal(_AskedLayout(params.word_width, count_width))
        super().__init__(
            {
                "i": In(stream.Signature(StoredRunLayout(params))),
                "bursts": Out(stream.Signature(WriteBurstLayout(params.addr_width, params.bus_bytes))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus_log2 = self.params.bus_log2
        m.submodules.splitter = splitter = self.splitter
        run, burst = self.i.p, self.bursts.p

        asked = self.asked
        valid = Signal()
        final = Signal()  # no burst of the run follows the one that is offered
        m.d.comb += [
            splitter.i.p.eq(asked.range),
            splitter.i.valid.eq(valid & ~asked.empty),
            splitter.o.ready.eq(self.bursts.ready),
            final.eq(asked.empty | splitter.last),
            self.bursts.valid.eq(valid),
            burst.word.eq(splitter.o.p.word),
            burst.beats_minus_one.eq(splitter.o.p.beats_minus_one),
            burst.empty.eq(asked.empty),
            burst.last.eq(asked.last & final),
            burst.reduction.eq(asked.reduction),
            burst.element.eq(asked.element),
            self.i.ready.eq(~valid | (self.bursts.ready & final)),
        ]

        beyond = Signal(len(run.bytes) + 1)  # bytes from the start of the first word to the end of the run, minus one
        m.d.comb += beyond.eq(run.address[:bus_log2] + run.bytes - 1)
        with m.If(self.i.ready):
            m.d.sync += [
                valid.eq(self.i.valid & ~run.context.loop),
                asked.range.word.eq(run.address[bus_log2:]),
                asked.range.count.eq((beyond >> bus_log2) + 1),
                asked.empty.eq(run.empty),
                asked.last.eq(run.last),
                asked.reduction.eq(run.context.reduction),
                asked.element.eq(run.context.element),
            ]
        return m
