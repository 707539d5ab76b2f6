"""From the two walkers to the two paths."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec import LINE_BYTES

from ...bus.bursts import RangeLayout
from ...lib.routing import pick
from ...lib.stream import SkidBuffer
from ..layouts import BoxRunLayout, RowLayout, StoreRunLayout

__all__ = ["LINE_LOG2", "PrefetchLines", "RequestGenerator", "RunRouter"]


class RunRouter(wiring.Component):
    """Hands runs of both walkers to the path that they are for.

    Latency 1, one run a cycle. What the walkers see of ``ready`` is a register, so that no path leads from what becomes
    of a run to which one is next.
    """

    def __init__(self, params):
        self.params = params
        self.buffer = SkidBuffer(BoxRunLayout(params))
        prefetches = {"prefetches": Out(stream.Signature(BoxRunLayout(params)))} if params.prefetches else {}
        super().__init__(
            prefetches
            | {
                # Only one of them is valid at a time; Dispatch sees to that. Without the feature ``im2col`` there are
                # no pixels.
                "tiles": In(stream.Signature(BoxRunLayout(params))),
                "pixels": In(stream.Signature(BoxRunLayout(params))),
                "loads": Out(stream.Signature(BoxRunLayout(params))),
                "stores": Out(stream.Signature(StoreRunLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = self.buffer
        walkers = (self.tiles, self.pixels) if self.params.has("im2col") else (self.tiles,)
        pick(m, walkers, buffer.i.payload, buffer.i.valid, buffer.i.ready)
        run, valid = buffer.o.payload, buffer.o.valid
        m.d.comb += [
            self.loads.payload.eq(run),
            self.loads.valid.eq(valid & ~run.store),
            self.stores.valid.eq(valid & run.store),
            buffer.o.ready.eq(Mux(run.store, self.stores.ready, self.loads.ready)),
        ]
        m.d.comb += [self.stores.payload[name].eq(run[name]) for name, _ in StoreRunLayout(self.params)]
        if self.params.prefetches:
            m.d.comb += [self.prefetches.payload.eq(run), self.prefetches.valid.eq(valid & run.prefetch)]
            with m.If(run.prefetch):
                m.d.comb += [self.loads.valid.eq(0), buffer.o.ready.eq(self.prefetches.ready)]
        return m


#: Bits of a byte's place in a line.
LINE_LOG2 = exact_log2(LINE_BYTES)


class PrefetchLines(wiring.Component):
    """Names every line that a run has a byte in, but for that of the run before, of the same transfer.

    Latency 1; one line a cycle, and a cycle for each run.
    """

    def __init__(self, params):
        self._params = params
        lines = unsigned(params.addr_width - LINE_LOG2)
        self.left = Signal(params.smem.addr_width + 2 - LINE_LOG2)  # lines behind the one at the output
        self.named = Signal()  # a line of the transfer has been named, and the last one was
        self.previous = Signal(lines)
        # Numbers of lines of 128 bytes. Registered.
        # ``ready`` is a register.
        super().__init__({"i": In(stream.Signature(BoxRunLayout(params))), "o": Out(stream.Signature(lines))})

    def elaborate(self, platform):
        m = Module()
        run, o = self.i.payload, self.o
        first, beyond, again = Signal.like(o.payload), Signal.like(self.left), Signal()
        m.d.comb += [
            first.eq(run.address[LINE_LOG2:]),
            beyond.eq((run.address[:LINE_LOG2] + run.bytes - 1) >> LINE_LOG2),
            again.eq(self.named & (first == self.previous)),
            self.i.ready.eq(~o.valid),
        ]
        with m.If(self.i.valid & self.i.ready):
            with m.If(run.inside):
                m.d.sync += [
                    o.valid.eq(~again | (beyond != 0)),
                    o.payload.eq(first + again),
                    self.left.eq(beyond - again),
                    self.previous.eq(first + beyond),
                ]
            m.d.sync += self.named.eq((self.named | run.inside) & ~run.last)
        with m.Elif(o.valid & o.ready):
            m.d.sync += [o.valid.eq(self.left != 0), o.payload.eq(o.payload + 1), self.left.eq(self.left - 1)]
        return m


class RequestGenerator(wiring.Component):
    """Turns runs into bus-word requests, and describes each run to the load path.

    A run whose first bus word is the last one of the inside run before it, of the same transfer, requests only the
    rest, which may be nothing. A run whose words come from the store path requests nothing. Combinational; one run a
    cycle. A row is offered no later than its request. A run inside leaves when a request could, even if it has none:
    whether it has one is found out late.
    """

    def __init__(self, params):
        self.params = params
        #: Bits of the number of words of a run: its bytes may start anywhere in a word.
        self.count_width = params.smem.addr_width + 2 - params.bus_log2
        self.previous = Signal(params.word_width)  # last bus word of the inside run before this one
        self.previous_valid = Signal()  # there is one, of the same transfer
        super().__init__(
            {
                # For the load path only.
                "i": In(stream.Signature(BoxRunLayout(params))),
                # One for each run.
                "rows": Out(stream.Signature(RowLayout(params))),
                # At most one for each run, in the same order. ``ready`` comes without a request.
                "requests": Out(stream.Signature(RangeLayout(params.word_width, self.count_width))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus_log2 = self.params.bus_log2
        run, row, request = self.i.payload, self.rows.payload, self.requests.payload

        first_word, offset = run.address[bus_log2:], run.address[:bus_log2]
        beyond = Signal(len(run.bytes) + 1)  # bytes from the start of the first word to the end of the run, minus one
        m.d.comb += beyond.eq(offset + run.bytes - 1)

        previous, previous_valid = self.previous, self.previous_valid
        shared = Signal()
        m.d.comb += shared.eq(run.inside & ~run.loop & previous_valid & (first_word == previous))
        m.d.comb += [
            row.inside.eq(run.inside),
            row.offset.eq(offset),
            row.shared.eq(shared),
            row.skip.eq(run.skip),
            row.last.eq(run.last),
            row.folded.eq(run.folded),
            row.bytes.eq(run.bytes),
            request.word.eq(Mux(shared, previous + 1, first_word)),
            request.beyond.eq((beyond >> bus_log2) - shared),
        ]

        # Row and request leave independently, the row first or together with the request.
        row_sent = Signal()
        row_done = row_sent | self.rows.ready
        needs_words = run.inside & ~run.loop & (~shared | (beyond >> bus_log2 != 0))
        m.d.comb += [
            self.rows.valid.eq(self.i.valid & ~row_sent),
            self.requests.valid.eq(self.i.valid & needs_words & row_done),
            self.i.ready.eq(row_done & (self.requests.ready | ~run.inside | run.loop)),
        ]
        m.d.sync += row_sent.eq(self.i.valid & row_done & ~self.i.ready)

        with m.If(self.i.valid & self.i.ready):
            with m.If(run.inside):
                m.d.sync += [previous_valid.eq(1), previous.eq(first_word + (beyond >> bus_log2))]
            with m.If(run.last):
                m.d.sync += previous_valid.eq(0)
        return m
