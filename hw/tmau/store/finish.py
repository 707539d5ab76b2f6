"""The end of a store: responses of its bursts are gathered, its completion is reported."""

from amaranth import unsigned
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ...bus.writes import WriteResponseLayout
from ...lib.join import join
from ...lib.stream import DeepQueue
from ..layouts import CompletionLayout
from .layouts import EndLayout

__all__ = ["StoreFinisher"]


class StoreFinisher(wiring.Component):
    """Ends transfers, in order: those with ``loop`` at once, others with the last response.

    An error of a quiet transfer goes on to the next one. Of several errors of a command the first one counts, but any
    of its source, after which nothing was written, before any of its writes.

    Latency: none from the last response to the completion, but three cycles from the end. Throughput: one response, and
    one transfer, a cycle.

    Members
    -------
    ends : In(stream of EndLayout)
        One for each transfer; ``commands_in_flight`` of them fit. Its ``ready`` stays until one comes.
    responses : In(stream of WriteResponseLayout)
        One with ``last`` for each transfer without ``loop``, which waits for the transfer's end.
    completions : Out(stream of CompletionLayout)
    done_stb : Out(1)
        A transfer is complete.
    """

    def __init__(self, params):
        self.params = params
        self.queue = DeepQueue(EndLayout(params), params.commands_in_flight)
        super().__init__(
            {
                "ends": In(stream.Signature(EndLayout(params))),
                "responses": In(stream.Signature(WriteResponseLayout(params.addr_width))),
                "completions": Out(stream.Signature(CompletionLayout(params))),
                "done_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        join(m, ends=flipped(self.ends), queue=queue.i)
        end, response, completion = queue.o.p, self.responses.p, self.completions.p
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
