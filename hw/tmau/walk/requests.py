"""Runs after the walkers: routed to the paths, described and requested for loads, and reported as prefetches."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec import LINE_BYTES

from ...bus.bursts import RangeLayout
from ...lib.routing import connect_exclusive
from ...lib.stream import SkidBuffer
from ..layouts import BoxRunLayout, RowLayout, StoreRunLayout

__all__ = ["LINE_LOG2", "PrefetchLines", "RequestGenerator", "RunRouter"]


class RunRouter(wiring.Component):
    """Sends the runs of both walkers to their path. Latency 1, one run a cycle; ``ready`` is a register."""

    def __init__(self, params):
        self._params = params
        self.buffer = SkidBuffer(BoxRunLayout(params))
        prefetches = {"prefetches": Out(stream.Signature(BoxRunLayout(params)))} if params.prefetches else {}
        super().__init__(
            prefetches
            | {
                # Dispatch makes sure that at most one is valid. Without the feature ``im2col`` ``pixels`` is not used.
                "tiles": In(stream.Signature(BoxRunLayout(params))),
                "pixels": In(stream.Signature(BoxRunLayout(params))),
                "loads": Out(stream.Signature(BoxRunLayout(params))),
                "stores": Out(stream.Signature(StoreRunLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = self.buffer
        walkers = (self.tiles, self.pixels) if self._params.has("im2col") else (self.tiles,)
        connect_exclusive(m, walkers, buffer.i.payload, buffer.i.valid, buffer.i.ready)
        run, valid = buffer.o.payload, buffer.o.valid
        m.d.comb += [
            self.loads.payload.eq(run),
            *(self.stores.payload[name].eq(run[name]) for name, _ in StoreRunLayout(self._params)),
            self.loads.valid.eq(valid & ~run.store),
            self.stores.valid.eq(valid & run.store),
            buffer.o.ready.eq(Mux(run.store, self.stores.ready, self.loads.ready)),
        ]
        if self._params.prefetches:
            m.d.comb += [self.prefetches.payload.eq(run), self.prefetches.valid.eq(valid & run.prefetch)]
            with m.If(run.prefetch):
                m.d.comb += [self.loads.valid.eq(0), buffer.o.ready.eq(self.prefetches.ready)]
        return m


#: Bits of a byte offset in a line.
LINE_LOG2 = exact_log2(LINE_BYTES)


class PrefetchLines(wiring.Component):
    """Reports the number of each line of 128 bytes that a run touches, except the last line of the previous run.

    Latency 1, one line a cycle, and one cycle for each run.
    """

    def __init__(self, params):
        self._params = params
        lines = unsigned(params.addr_width - LINE_LOG2)
        self.remaining = Signal(params.smem.addr_width + 2 - LINE_LOG2)  # lines after the one at the output
        self.previous = Signal(lines)  # last line of the transfer that was reported
        self.previous_valid = Signal()
        super().__init__(
            {
                "i": In(stream.Signature(BoxRunLayout(params))),  # ``ready`` is a register.
                "o": Out(stream.Signature(lines)),  # Registered.
            }
        )

    def elaborate(self, platform):
        m = Module()
        run, o = self.i.payload, self.o
        first, beyond, again = Signal.like(o.payload), Signal.like(self.remaining), Signal()
        m.d.comb += [
            first.eq(run.address[LINE_LOG2:]),
            beyond.eq((run.address[:LINE_LOG2] + run.bytes - 1) >> LINE_LOG2),
            again.eq(self.previous_valid & (first == self.previous)),
            self.i.ready.eq(~o.valid),
        ]
        with m.If(self.i.valid & self.i.ready):
            with m.If(run.inside):
                m.d.sync += [
                    o.valid.eq(~again | (beyond != 0)),
                    o.payload.eq(first + again),
                    self.remaining.eq(beyond - again),
                    self.previous.eq(first + beyond),
                ]
            m.d.sync += self.previous_valid.eq((self.previous_valid | run.inside) & ~run.last)
        with m.Elif(o.valid & o.ready):
            m.d.sync += [
                o.valid.eq(self.remaining != 0),
                o.payload.eq(o.payload + 1),
                self.remaining.eq(self.remaining - 1),
            ]
        return m


class RequestGenerator(wiring.Component):
    """Requests the bus words of runs, and describes each run to the load path (docs/tmau.md, "Memory side").

    If the first bus word of a run is the last word of the previous inside run of the transfer, the run requests only
    the remaining words, if any. A run whose words come from the store path requests nothing. Combinational, one run a
    cycle. A row is offered before its request or together with it. An inside run waits for ``requests.ready`` even if
    it needs no request, because that is known late.
    """

    def __init__(self, params):
        self._params = params
        #: Bits of the number of words of a run: its bytes may start anywhere in a word.
        self.count_width = params.smem.addr_width + 2 - params.bus_log2
        self.previous = Signal(params.word_width)  # last bus word of the previous inside run of the transfer
        self.previous_valid = Signal()
        super().__init__(
            {
                "i": In(stream.Signature(BoxRunLayout(params))),  # Of the load path.
                "rows": Out(stream.Signature(RowLayout(params))),  # One for each run.
                # At most one for each run, in the same order. ``ready`` must not depend on ``valid``.
                "requests": Out(stream.Signature(RangeLayout(params.word_width, self.count_width))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus_log2 = self._params.bus_log2
        run, row, request = self.i.payload, self.rows.payload, self.requests.payload

        first_word, offset = run.address[bus_log2:], run.address[:bus_log2]
        beyond = Signal(len(run.bytes) + 1)  # bytes from the start of the first word to the end of the run, minus one
        previous, previous_valid, shared = self.previous, self.previous_valid, Signal()
        m.d.comb += [
            beyond.eq(offset + run.bytes - 1),
            shared.eq(run.inside & ~run.loop & previous_valid & (first_word == previous)),
            *(row[name].eq(run[name]) for name in ("inside", "skip", "last", "folded", "bytes")),
            row.offset.eq(offset),
            row.shared.eq(shared),
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
