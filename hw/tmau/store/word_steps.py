"""Word step generator: walks the bus words of a run, and the lines of shared memory that they are made of."""

from amaranth import unsigned
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .tracker import StoreContextLayout, StoredRunLayout

__all__ = ["WordStepGenerator", "WordStepLayout"]


class WordStepLayout(data.StructLayout):
    """One step: at most one bus word, and at most one line for it.

    Bytes ``first … end - 1`` of the word come from shared memory, from byte ``source`` of the line on, and where they
    reach over its end, from the next line.
    """

    def __init__(self, params):
        super().__init__(
            {
                "word": unsigned(1),  # makes a bus word; without, it only fetches a line, or ends an empty transfer
                "first": unsigned(params.bus_log2),
                "end": unsigned(params.bus_log2 + 1),
                "source": unsigned(7),  # byte in the line from which byte ``first`` comes
                "straddle": unsigned(1),  # made of the line before the fetched one, and then of the fetched one
                "fetch": unsigned(1),  # takes a line, which stays until the next one is taken
                "row": unsigned(params.smem.row_width),  # that line: byte address >> 7
                "last": unsigned(1),  # last step of the transfer
                "context": StoreContextLayout(params),
            }
        )


class WordStepGenerator(wiring.Component):
    """Cuts runs into steps: a bus word each.

    Lines are taken in the order of their use, each once as long as the runs of a transfer go on in it. A word that lies
    in two lines takes the second one; if the first one is not there yet, a step without a word takes it before.

    Latency: two cycles from a run to its first step. Throughput: one step a cycle, without a pause between runs.

    Members
    -------
    i : In(stream of StoredRunLayout)
    steps : Out(stream of WordStepLayout)
    """

    def __init__(self, params):
        self.params = params
        self.busy = Signal()
        self.run = Signal(StoredRunLayout(params))  # what is left of the run
        self.held = Signal()  # a line of the transfer is there
        self.held_row = Signal(params.smem.row_width)
        super().__init__(
            {"i": In(stream.Signature(StoredRunLayout(params))), "steps": Out(stream.Signature(WordStepLayout(params)))}
        )

    def elaborate(self, platform):
        m = Module()
        params, run = self.params, self.run
        row = run.source[7:]
        next_row = (row + 1)[: len(row)]
        first = run.address[: params.bus_log2]

        here = Signal()  # the line of the next byte is there
        room = Signal(params.bus_log2 + 1)
        taken = Signal.like(room)  # bytes of the next word
        beyond = Signal(8)  # from the start of the line to the end of the word
        straddle, ends, done = Signal(), Signal(), Signal()
        m.d.comb += [
            here.eq(self.held & (self.held_row == row)),
            room.eq(params.bus_bytes - first),
            ends.eq(run.bytes <= room),
            taken.eq(Mux(ends, run.bytes, room)),
            beyond.eq(run.source[:7] + taken),
            straddle.eq(beyond[7] & (beyond[:7] != 0)),
        ]

        step = Signal(WordStepLayout(params))
        m.d.comb += [
            step.word.eq(~run.empty & (here | ~straddle)),
            step.first.eq(first),
            step.end.eq(first + taken),
            step.source.eq(run.source[:7]),
            step.straddle.eq(straddle),
            step.fetch.eq(~run.empty & (~here | straddle)),
            step.row.eq(Mux(here, next_row, row)),
            step.last.eq(done & run.last),
            step.context.eq(run.context),
            done.eq(run.empty | (step.word & ends)),
        ]

        advance = ~self.steps.valid | self.steps.ready
        m.d.comb += self.i.ready.eq(~self.busy | (advance & done))
        with m.If(advance):
            m.d.sync += self.steps.valid.eq(self.busy)
            with m.If(self.busy):
                m.d.sync += self.steps.p.eq(step)
                with m.If(step.fetch):
                    m.d.sync += [self.held.eq(1), self.held_row.eq(step.row)]
                with m.If(step.word):
                    m.d.sync += [
                        run.source.eq(run.source + taken),
                        run.address.eq(run.address + taken),
                        run.bytes.eq(run.bytes - taken),
                    ]
                with m.If(step.last):
                    m.d.sync += self.held.eq(0)
        with m.If(self.i.ready):
            m.d.sync += [self.busy.eq(self.i.valid), run.eq(self.i.p)]
        return m
