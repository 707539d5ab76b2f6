"""The table loader: biases and scales of the channels of a pass, arranged as transfers need them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..layouts import BiasesLayout, GatheredLayout, GatherLayout, PlanLayout
from .layouts import ResultSizes

__all__ = ["TableLoader", "TableTagLayout"]

_ENTRY_BYTES = 8


class TableTagLayout(data.StructLayout):
    """Where an answer goes."""

    def __init__(self, params):
        super().__init__(
            {
                "row": range(2 * ResultSizes(params).steps),
                "part": range(max(1, params.conv.results // params.lanes)),
                "last": 1,  # of the pass
            }
        )


class TableLoader(wiring.Component):
    """Brings the entries of the table, pass by pass, into one of two halves of a memory, ahead of the read-out.

    A row of the memory has R columns, an entry for each result of a transfer. Channels that come several times in a
    transfer, for several places, lie in several columns: an answer is written to all of them. So the columns need no
    choice: column r takes piece r modulo the pieces of a request, which is asked for the channel that belongs there.
    Channels from Co on are not read, and their columns have anything.

    A request brings up to 8 entries; one a cycle while a half is free.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        Must hold from ``start`` until the last pass is loaded.
    start : In(1)
        Strobe: a job begins. All halves are free.
    request : Out(stream of GatherLayout(params, TableTagLayout(params)))
        Pieces of 8 bytes.
    answer : In(GatheredLayout(params, TableTagLayout(params)))
    answer_stb : In(1)
        An answer, which is always taken. In order.
    loaded : Out(1)
        The oldest pass that has not been released is loaded.
    release : In(1)
        Strobe: nothing of the oldest pass is read from the fourth cycle behind this one on.
    row : In(range(2 * ResultSizes(params).steps))
        Row that is read; the upper half of them is that of passes 1, 3, ….
    bias : Out(array of params.conv.results 32)
        Of ``row``, combinational.
    scale : Out(array of params.conv.results 32)
        The same.
    biases : Out(BiasesLayout(params)) if params.floats
        Those of an answer, for the array.
    """

    def __init__(self, params):
        self._params, self._sizes = params, ResultSizes(params)
        results = params.conv.results
        tag = TableTagLayout(params)
        self.memory = Memory(shape=data.ArrayLayout(64, results), depth=2 * self._sizes.steps, init=[])
        self.free = Signal(2)  # halves into which nothing is loaded, nor will be
        self.waiting = Signal(2)  # loaded ones that have not been released
        super().__init__(
            ({"biases": Out(BiasesLayout(params))} if params.floats else {})
            | {
                "plan": In(PlanLayout(params)),
                "start": In(1),
                "request": Out(stream.Signature(GatherLayout(params, tag))),
                "answer": In(GatheredLayout(params, tag)),
                "answer_stb": In(1),
                "loaded": Out(1),
                "release": In(1),
                "row": In(range(2 * self._sizes.steps)),
                "bias": Out(data.ArrayLayout(32, results)),
                "scale": Out(data.ArrayLayout(32, results)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        read = self.memory.read_port(domain="comb")
        m.d.comb += [
            read.addr.eq(self.row),
            *(Cat(self.bias[n], self.scale[n]).eq(read.data[n]) for n in range(self._params.conv.results)),
            self.loaded.eq(self.waiting != 0),
        ]
        span_last, distinct = Signal(range(self._sizes.most_channels)), Signal(3)
        self._pass(m, span_last, distinct)
        requested = self._ask(m, span_last, distinct)
        self._store(m, distinct)

        releases = Signal(4)
        m.d.sync += [
            releases.eq(Cat(self.release, releases)),
            self.waiting.eq(self.waiting + (self.answer_stb & self.answer.tag.last) - self.release),
            self.free.eq(self.free + releases[-1] - requested),
        ]
        with m.If(self.start):
            m.d.sync += [self.free.eq(2), releases.eq(0)]
        return m

    def _pass(self, m, span_last, distinct):
        """Channels of a whole pass, less one, and log2 of those that differ in a transfer."""
        plan, conv = self.plan, self._params.conv
        elements = Signal(range(8))
        m.d.comb += elements.eq(plan.granularity - plan.wide)
        with m.If(plan.lanes):
            results = exact_log2(conv.results)
            m.d.comb += [
                span_last.eq((1 << elements) - 1),
                distinct.eq(Mux(elements < results, elements, results)),
            ]
        with m.Else():
            m.d.comb += [
                span_last.eq(self._sizes.pass_channels - 1),
                distinct.eq(exact_log2(min(conv.results, conv.slaves))),
            ]

    def _ask(self, m, span_last, distinct):
        """Requests of all passes; whether that is the last one of a pass."""
        plan, request, params = self.plan, self.request, self._params
        many = min(params.lanes, params.conv.results)  # pieces of a request
        going, half = Signal(), Signal()
        address = Signal(params.smem.addr_width)  # of the first entry of the request
        behind = Signal(16)  # channels of the job behind the first one of the pass
        offset, last = Signal.like(span_last), Signal.like(span_last)  # channel in the pass, and last one of it
        pieces, pass_over = Signal(range(many)), Signal()  # different pieces of a request, less one
        is_final = Signal()
        m.d.comb += [
            is_final.eq(behind <= span_last),
            last.eq(Mux(is_final, behind, span_last)),
            pieces.eq((1 << distinct) - 1),
            pass_over.eq((offset | pieces) >= last),
            request.valid.eq(going & (self.free != 0)),
            request.p.size.eq(exact_log2(_ENTRY_BYTES)),
            request.p.tag.row.eq(Cat((offset >> distinct)[: exact_log2(self._sizes.steps)], half)),
            request.p.tag.part.eq((offset & ((1 << distinct) - 1)) >> exact_log2(many)),
            request.p.tag.last.eq(pass_over),
        ]
        for number in range(many):
            ours = number & pieces
            piece = request.p.pieces[number]
            m.d.comb += [
                piece.address.eq(address + (ours << exact_log2(_ENTRY_BYTES))),
                piece.high.eq(Mux((offset | ours) <= last, _ENTRY_BYTES, 0)),
            ]
        taken = Signal()
        m.d.comb += taken.eq(request.valid & request.ready)
        with m.If(taken):
            m.d.sync += [
                address.eq(address + _ENTRY_BYTES + (pieces << exact_log2(_ENTRY_BYTES))),
                offset.eq(offset + pieces + 1),
            ]
            with m.If(pass_over):
                m.d.sync += [offset.eq(0), half.eq(~half), behind.eq(behind - span_last - 1), going.eq(~is_final)]
        with m.If(self.start):
            m.d.sync += [
                going.eq(plan.table),
                half.eq(0),
                address.eq(plan.table_address),
                behind.eq(plan.out_channels - 1),
            ]
        return taken & pass_over

    def _store(self, m, distinct):
        """Writes an answer to all columns that it is for."""
        write = self.memory.write_port(granularity=1)
        results, many = self._params.conv.results, min(self._params.lanes, self._params.conv.results)
        entries = Cat(self.answer.data)
        m.d.comb += write.addr.eq(self.answer.tag.row)
        for column in range(results):
            part = (column & ((1 << distinct) - 1)) >> exact_log2(many)
            m.d.comb += [
                write.data[column].eq(entries.word_select(column % many, 64)),
                write.en[column].eq(self.answer_stb & (self.answer.tag.part == part)),
            ]
        if self._params.floats:
            tag, steps = self.answer.tag, exact_log2(self._sizes.steps)
            m.d.comb += [
                self.biases.valid.eq(self.answer_stb),
                self.biases.half.eq(tag.row[steps]),
                self.biases.channel.eq((tag.row[:steps] << distinct) | tag.part << exact_log2(many)),
                *(bias.eq(entries.word_select(n, 64)) for n, bias in enumerate(self.biases.entries)),
            ]
