"""The results of a job: from finished accumulators to shared memory."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.routing import Fork
from ...smem.layouts import ScatterWriteLayout
from ..fetch.places import PointWalker
from ..layouts import AccumulatorReadLayout, BiasesLayout, GatheredLayout, GatherLayout, PlanLayout
from .groups import Grouper, LinePairs
from .layouts import GroupPlaceLayout, ResultSizes
from .operands import AddendReader, AddendTagLayout, TableLoader, TableTagLayout
from .post import PostProcessor
from .readout import ReadOut
from .runs import RunCutter
from .writer import Assembler, Writer

__all__ = ["Results"]


class Results(wiring.Component):
    """Reads out, post-processes and writes all results of a job (docs/conv.md, "Results").

    The places of all tiles go to three blocks: to the read-out, which makes transfers of R results; ahead of that to
    the addend reader; and to the run cutter, which computes the addresses of the results.

    Throughput: a transfer a cycle if a place has 4 · NS channels, or in lane-private mode R or more, of 8 bits.
    Otherwise a piece of a run a cycle, of at most W = max(16, 4 · NS) bytes, or with pairs (:class:`ResultSizes`) two
    pieces of at most W / 2 bytes.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params, sizes = params, ResultSizes(params)
        self.walker = PointWalker(params, ("y", "addend"), pairs=sizes.pairs)
        self.grouper = Grouper(params)
        self.line_pairs = LinePairs(params) if params.halves > 1 else None
        self.fork = Fork(GroupPlaceLayout(params), 3)
        self.table_loader, self.addends = TableLoader(params), AddendReader(params)
        self.readout, self.post = ReadOut(params), PostProcessor(params.conv)
        self.cutter, self.assembler, self.writer = RunCutter(params), Assembler(params), Writer(params)
        table, addend = TableTagLayout(params), AddendTagLayout(params)
        super().__init__(
            # For the array; the answer with ``last`` has the last ones of a pass.
            ({"biases": Out(BiasesLayout(params))} if params.floats else {})
            | {
                "plan": In(PlanLayout(params)),  # constant from ``start`` to ``done``
                "start": In(1),  # Strobe: a job begins, after ``done`` of the previous one.
                # The bank of a complete tile, in the order of work. Transferred in the cycle before its last read is at
                # ``read``, which still needs the accumulators as they were then.
                "tiles": In(stream.Signature(range(params.accumulator_banks))),
                "read": Out(AccumulatorReadLayout(params)),  # always served
                "acc": In(data.ArrayLayout(32, params.conv.results)),  # of the read of three cycles ago
                # Requests to the gatherer, and its answers in order.
                "table": Out(stream.Signature(GatherLayout(params, table))),
                "table_answer": In(stream.Signature(GatheredLayout(params, table), always_ready=True)),
                "addend": Out(stream.Signature(GatherLayout(params, addend))),
                "addend_answer": In(stream.Signature(GatheredLayout(params, addend), always_ready=True)),
                "scatter": Out(stream.Signature(ScatterWriteLayout(params.smem))),  # registered
                # Strobe: ``scatter`` has accepted all results of the job, and all its tiles have been accepted.
                "done": Out(1),
                "written": Out(range(sizes.piece_bytes + 1)),  # results that ``scatter`` accepts in this cycle
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.walker, m.submodules.grouper, m.submodules.fork = self.walker, self.grouper, self.fork
        m.submodules.table, m.submodules.addends = table, addends = self.table_loader, self.addends
        m.submodules.readout, m.submodules.post = readout, post = self.readout, self.post
        m.submodules.cutter, m.submodules.assembler, m.submodules.writer = self.cutter, self.assembler, self.writer
        started = (self.walker, self.grouper, table, readout)
        m.d.comb += [
            *(block.plan.eq(self.plan) for block in (*started, addends, self.cutter, self.assembler, self.writer)),
            *(block.start.eq(self.start) for block in started),
            post.job.eq(self.plan.post),
        ]
        connect(m, self.walker.o, self.grouper.i)
        places, pairs_idle = self.grouper.o, 1
        if self.line_pairs is not None:
            m.submodules.line_pairs = pairs = self.line_pairs
            m.d.comb += pairs.plan.eq(self.plan)
            connect(m, places, pairs.i)
            places, pairs_idle = pairs.o, pairs.idle
        connect(m, places, self.fork.i)
        for port, block in zip(self.fork.o, (readout, addends, self.cutter), strict=True):
            connect(m, port, block.i)

        connect(m, table.request, flipped(self.table))
        connect(m, flipped(self.table_answer), table.answer)
        connect(m, addends.request, flipped(self.addend))
        connect(m, flipped(self.addend_answer), addends.answer)
        connect(m, flipped(self.tiles), readout.tiles)
        m.d.comb += [
            self.read.eq(readout.read),
            readout.acc.eq(self.acc),
            readout.table_loaded.eq(table.loaded),
            table.release.eq(readout.table_release),
            table.row.eq(readout.table_row),
            readout.bias.eq(table.bias),
            readout.scale.eq(table.scale),
            readout.addend_loaded.eq(addends.loaded),
            addends.release.eq(readout.addend_release),
            addends.group.eq(readout.addend_group),
            addends.step.eq(readout.addend_step),
            readout.addend.eq(addends.addend),
            readout.departed.eq(post.o.valid & post.o.ready),
            self.written.eq(self.writer.written),
        ]
        if self._params.functions:
            m.d.comb += [post.start.eq(self.start), post.function_row.eq(table.function_row)]
        if self._params.floats:
            m.d.comb += self.biases.eq(table.biases)
        connect(m, readout.o, post.i)
        connect(m, post.o, self.assembler.i)
        connect(m, readout.flush, self.assembler.flush)
        connect(m, self.cutter.o, self.assembler.pieces)
        connect(m, self.assembler.o, self.writer.i)
        connect(m, self.writer.o, flipped(self.scatter))

        # Done when no place, and nothing that was made of places, is under way.
        active, quiet = Signal(), Signal()
        pending = Cat(self.walker.o.valid, self.grouper.o.valid, self.writer.o.valid).any()
        m.d.comb += [quiet.eq(~pending & pairs_idle & readout.idle & self.cutter.idle), self.done.eq(active & quiet)]
        with m.If(self.start):
            m.d.sync += active.eq(1)
        with m.Elif(quiet):
            m.d.sync += active.eq(0)
        return m
