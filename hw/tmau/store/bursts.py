"""The write generator: legal bursts for the runs of a store."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.tmau_registers import own_tag_bits

from ...bus.bursts import BurstSplitter, WriteBurstLayout, WriteResponseLayout, processor_members
from ...lib.stream import DeepQueue
from ..layouts import CompletionLayout
from .layouts import EndLayout, StoredRunLayout

__all__ = ["StoreFinisher", "WriteGenerator"]

#: What the bursts of a run take over from it.
_TAG = {"empty": unsigned(1), "last": unsigned(1), "reduction": unsigned(4), "element": unsigned(4)}


class WriteGenerator(wiring.Component):
    """Requests every bus word that a run touches, in as few bursts as page boundary and ``max_burst`` allow.

    Exactly one burst of a transfer has ``last``: the last one of its last run, or, if that is empty, an empty one.
    Runs with ``loop`` request nothing. Latency: one cycle from a run to its first burst. Throughput: one burst a cycle,
    one run a cycle. ``i.ready`` depends on registers only.
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
        run, asked, burst = self.i.payload, splitter.i.payload, self.bursts.payload

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
        made = splitter.o.payload
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


class StoreFinisher(wiring.Component):
    """Ends transfers, in order: those with ``loop`` at once, others with the last response.

    An error of a quiet transfer goes on to the next one. Of several errors of a command the first one counts, but any
    of its source, after which nothing was written, before any of its writes.

    Latency: none from the last response to the completion, but three cycles from the end. Throughput: one response, and
    one transfer, a cycle.
    """

    def __init__(self, params):
        self.params = params
        self.queue = DeepQueue(EndLayout(params), params.commands_in_flight)
        super().__init__(
            {
                # One for each transfer; ``commands_in_flight`` of them fit. Its ``ready`` stays until one comes.
                "ends": In(stream.Signature(EndLayout(params))),
                # One with ``last`` for each transfer without ``loop``, which waits for the transfer's end.
                "responses": In(stream.Signature(WriteResponseLayout(params.addr_width))),
                "completions": Out(stream.Signature(CompletionLayout(params))),
                # A transfer is complete.
                "done_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        connect(m, flipped(self.ends), queue.i)
        end, response, completion = queue.o.payload, self.responses.payload, self.completions.payload
        waiting = queue.o.valid & ~end.loop

        outcome = data.StructLayout({"error": 1, "write": 1, "address": unsigned(self.params.addr_width)})
        before = Signal(outcome)  # of the command, up to this response
        now = Signal(outcome)
        m.d.comb += [now.error.eq(response.error), now.write.eq(1), now.address.eq(response.address)]
        staged = self.params.has("local_copies")
        unread = response.last & (end.error if staged else 0)
        with m.If(before.error & ~(unread & before.write)):
            m.d.comb += now.eq(before)
        if staged:
            with m.Elif(unread):
                m.d.comb += [now.error.eq(1), now.write.eq(0), now.address.eq(end.address)]

        m.d.comb += [
            self.completions.valid.eq(self.responses.valid & response.last & waiting & ~end.quiet),
            completion.tag.eq(end.tag),
            completion.bytes.eq(end.bytes),
            completion.error.eq(now.error),
            completion.write.eq(now.write & now.error),
            completion.address.eq(now.address),
            self.responses.ready.eq(~response.last | (waiting & (end.quiet | self.completions.ready))),
            queue.o.ready.eq(end.loop | (self.responses.valid & response.last & self.responses.ready)),
            self.done_stb.eq(queue.o.valid & queue.o.ready),
        ]
        with m.If(self.responses.valid & self.responses.ready):
            m.d.sync += before.eq(now)
            with m.If(response.last & ~end.quiet):
                m.d.sync += before.error.eq(0)
        return m
