"""The write generator: legal bursts for the runs of a store."""

from amaranth import unsigned
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.tmau.processors import own_tag_bits

from ...bus.burst import BurstSplitter
from ...bus.writes import WriteBurstLayout, processor_members
from .layouts import StoredRunLayout

__all__ = ["WriteGenerator"]


#: What the bursts of a run take over from it.
_TAG = {"empty": unsigned(1), "last": unsigned(1), "reduction": unsigned(4), "element": unsigned(4)}


class WriteGenerator(wiring.Component):
    """Requests every bus word that a run touches, in as few bursts as page boundary and ``max_burst`` allow.

    Exactly one burst of a transfer has ``last``: the last one of its last run, or, if that is empty, an empty one.
    Runs with ``loop`` request nothing. Latency: one cycle from a run to its first burst. Throughput: one burst a cycle,
    one run a cycle. ``i.ready`` depends on registers only.

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
            tag=data.StructLayout(_TAG | processor_members(params.window_owners)),
        )
        super().__init__(
            {
                "i": In(stream.Signature(StoredRunLayout(params))),
                "bursts": Out(
                    stream.Signature(WriteBurstLayout(params.addr_width, params.bus_bytes, params.window_owners))
                ),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus_log2 = self.params.bus_log2
        m.submodules.splitter = splitter = self.splitter
        run, asked, burst = self.i.p, splitter.i.p, self.bursts.p

        beyond = Signal(len(run.bytes) + 1)  # bytes from the start of the first word to the end of the run, minus one
        m.d.comb += [
            beyond.eq(run.address[:bus_log2] + run.bytes - 1),
            asked.word.eq(run.address[bus_log2:]),
            asked.beyond.eq(Mux(run.empty, 0, beyond >> bus_log2)),
            asked.tag.empty.eq(run.empty),
            asked.tag.last.eq(run.last),
            asked.tag.reduction.eq(run.context.reduction),
            asked.tag.element.eq(run.context.element),
            splitter.i.valid.eq(self.i.valid & ~run.context.loop),
            self.i.ready.eq(splitter.i.ready),
        ]
        made = splitter.o.p
        m.d.comb += [
            self.bursts.valid.eq(splitter.o.valid),
            splitter.o.ready.eq(self.bursts.ready),
            burst.word.eq(made.word),
            burst.beats_minus_one.eq(made.beats_minus_one),
            burst.empty.eq(made.tag.empty),
            burst.last.eq(made.tag.last & splitter.last),
            burst.reduction.eq(made.tag.reduction),
            burst.element.eq(made.tag.element),
        ]
        if self.params.confines_apart:
            m.d.comb += [
                asked.tag.processor.eq(run.context.tag[own_tag_bits(self.params.processors) :]),
                burst.processor.eq(made.tag.processor),
            ]
        return m
