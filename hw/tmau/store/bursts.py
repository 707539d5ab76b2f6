"""Bursts of the store path: the requests of each run, and the responses that end a transfer."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.tmau_registers import own_tag_bits

from ...bus.bursts import BurstSplitter, WriteBurstLayout, WriteResponseLayout, processor_members
from ...lib.stream import DeepQueue
from ..layouts import CompletionLayout
from .layouts import EndLayout, StoredRunLayout

__all__ = ["StoreFinisher", "WriteGenerator"]

#: Members of a run that its bursts copy.
_TAG = {"empty": unsigned(1), "last": unsigned(1), "reduction": unsigned(4), "element": unsigned(4)}


class WriteGenerator(wiring.Component):
    """Requests all bus words of a run, in as few bursts as page boundaries and ``max_burst`` allow.

    One burst of a transfer has ``last``: the last burst of its last run, or an empty burst if that run is empty. Runs
    with ``loop`` request nothing. Latency: one cycle from a run to its first burst. Throughput: one burst a cycle, one
    run a cycle. ``i.ready`` depends on registers only.
    """

    def __init__(self, params):
        self._params = params
        self.splitter = BurstSplitter(
            word_width=params.word_width,
            count_width=params.smem.addr_width + 2 - params.bus_log2,  # a run may start anywhere in a word
            bus_bytes=params.bus_bytes,
            max_burst=params.max_burst,
            tag=data.StructLayout(_TAG | processor_members(params.window_owners)),
        )
        burst = WriteBurstLayout(params.addr_width, params.bus_bytes, params.window_owners)
        super().__init__({"i": In(stream.Signature(StoredRunLayout(params))), "bursts": Out(stream.Signature(burst))})

    def elaborate(self, platform):
        m = Module()
        bus_log2 = self._params.bus_log2
        m.submodules.splitter = splitter = self.splitter
        run, request = self.i.payload, splitter.i.payload
        part, burst = splitter.o.payload, self.bursts.payload

        beyond = Signal(len(run.bytes) + 1)  # bytes from the start of the first word to the end of the run, minus one
        m.d.comb += [
            beyond.eq(run.address[:bus_log2] + run.bytes - 1),
            request.word.eq(run.address[bus_log2:]),
            request.beyond.eq(Mux(run.empty, 0, beyond >> bus_log2)),
            *(request.tag[name].eq(run[name]) for name in ("empty", "last")),
            *(request.tag[name].eq(run.context[name]) for name in ("reduction", "element")),
            splitter.i.valid.eq(self.i.valid & ~run.context.loop),
            self.i.ready.eq(splitter.i.ready),
            self.bursts.valid.eq(splitter.o.valid),
            splitter.o.ready.eq(self.bursts.ready),
            *(burst[name].eq(part[name]) for name in ("word", "beats_minus_one")),
            *(burst[name].eq(part.tag[name]) for name in ("empty", "reduction", "element")),
            burst.last.eq(part.tag.last & splitter.last),
        ]
        if self._params.confines_apart:
            m.d.comb += [
                request.tag.processor.eq(run.context.tag[own_tag_bits(self._params.processors) :]),
                burst.processor.eq(part.tag.processor),
            ]
        return m


class StoreFinisher(wiring.Component):
    """Ends transfers in order: transfers with ``loop`` at once, others with the last response.

    An error of a quiet transfer goes on to the next one. The first error of a command is reported, but an error of its
    source, after which nothing is written, takes precedence over errors of writes.

    Latency: 0 from the last response to the completion, three cycles from the end. Throughput: one response and one
    transfer a cycle.
    """

    def __init__(self, params):
        self._params = params
        self.queue = DeepQueue(EndLayout(params), params.commands_in_flight)
        super().__init__(
            {
                # One for each transfer; up to ``commands_in_flight`` wait here. ``ready`` stays high until one arrives.
                "ends": In(stream.Signature(EndLayout(params))),
                # One with ``last`` for each transfer without ``loop``. It waits for the transfer's end.
                "responses": In(stream.Signature(WriteResponseLayout(params.addr_width))),
                "completions": Out(stream.Signature(CompletionLayout(params))),
                "done_stb": Out(1),  # Strobe: a transfer is complete.
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        connect(m, flipped(self.ends), queue.i)
        end, response, completion = queue.o.payload, self.responses.payload, self.completions.payload
        waiting = queue.o.valid & ~end.loop

        outcome = data.StructLayout({"error": 1, "write": 1, "address": unsigned(self._params.addr_width)})
        earlier = Signal(outcome)  # of the command, before this response
        current = Signal(outcome)
        m.d.comb += [current.error.eq(response.error), current.write.eq(1), current.address.eq(response.address)]
        source_error = response.last & end.error
        with m.If(earlier.error & ~(source_error & earlier.write)):
            m.d.comb += current.eq(earlier)
        with m.Elif(source_error):
            m.d.comb += [current.error.eq(1), current.write.eq(0), current.address.eq(end.address)]

        m.d.comb += [
            self.completions.valid.eq(self.responses.valid & response.last & waiting & ~end.quiet),
            completion.tag.eq(end.tag),
            completion.bytes.eq(end.bytes),
            completion.error.eq(current.error),
            completion.write.eq(current.write & current.error),
            completion.address.eq(current.address),
            self.responses.ready.eq(~response.last | (waiting & (end.quiet | self.completions.ready))),
            queue.o.ready.eq(end.loop | (self.responses.valid & response.last & self.responses.ready)),
            self.done_stb.eq(queue.o.valid & queue.o.ready),
        ]
        with m.If(self.responses.valid & self.responses.ready):
            m.d.sync += earlier.eq(current)
            with m.If(response.last & ~end.quiet):
                m.d.sync += earlier.error.eq(0)
        return m
