"""The request generator: every bus word of a run that its neighbour has not requested.

Specification: docs/tmau.md, "Memory side".
"""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...bus.reads import RangeLayout
from ..layouts import BoxRunLayout, RowLayout

__all__ = ["RequestGenerator"]


class RequestGenerator(wiring.Component):
    """Turns runs into bus-word requests, and describes each run to the load path.

    A run whose first bus word is the last one of the inside run before it, of the same transfer, requests only the
    rest, which may be nothing. A run whose words come from the store path requests nothing. Combinational; one run a
    cycle. A row is offered no later than its request. A run inside leaves when a request could, even if it has none:
    whether it has one is found out late.

    Members
    -------
    i : In(stream of BoxRunLayout)
        For the load path only.
    rows : Out(stream of RowLayout)
        One for each run.
    requests : Out(stream of RangeLayout)
        At most one for each run, in the same order. ``ready`` comes without a request.
    """

    def __init__(self, params):
        self.params = params
        #: Bits of the number of words of a run: its bytes may start anywhere in a word.
        self.count_width = params.smem.addr_width + 2 - params.bus_log2
        self.previous = Signal(params.word_width)  # last bus word of the inside run before this one
        self.previous_valid = Signal()  # there is one, of the same transfer
        super().__init__(
            {
                "i": In(stream.Signature(BoxRunLayout(params))),
                "rows": Out(stream.Signature(RowLayout(params))),
                "requests": Out(stream.Signature(RangeLayout(params.word_width, self.count_width))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus_log2 = self.params.bus_log2
        run, row, request = self.i.p, self.rows.p, self.requests.p

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
