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

    The places of all tiles go three ways: to the read-out, which makes transfers of R results; to the addend reader,
    ahead of that; and to the run cutter, which knows where the bytes go when they have come.

    Throughput: a transfer a cycle where a place has 4 · NS channels, or in lane-private mode R or more, of 8 bits;
    otherwise a piece of a run a cycle, of at most W = max(16, 4 · NS) bytes, or with pairs (:class:`ResultSizes`)
    two of at most W / 2 bytes.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        Must hold from ``start`` to ``done``.
    start : In(1)
        Strobe: a job begins. Not before ``done`` of the last one.
    tiles : In(stream of range(params.accumulator_banks))
        A tile is complete, in the bank that it says; in the order of work. Taken in the cycle before its last read is
        at ``read``, which has to see what was there then.
    read : Out(AccumulatorReadLayout(params))
        Always served; of those that nobody needs anything.
    acc : In(array of params.conv.results 32)
        What was read three cycles ago.
    table : Out(stream of GatherLayout(params, TableTagLayout(params)))
    table_answer : In(GatheredLayout(params, TableTagLayout(params)))
    table_stb : In(1)
        An answer, which is always taken. In order.
    addend : Out(stream of GatherLayout(params, AddendTagLayout(params)))
    addend_answer : In(GatheredLayout(params, AddendTagLayout(params)))
    addend_stb : In(1)
        The same.
    scatter : Out(stream of ScatterWriteLayout(params.smem))
        Registered.
    done : Out(1)
        Strobe: all results of the job have been accepted by ``scatter``, and all its tiles have been taken.
    written : Out(range(ResultSizes(params).piece_bytes + 1))
        Results that ``scatter`` accepts in this cycle.
    biases : Out(BiasesLayout(params)) if params.floats
        For the array; ``table_answer`` is the last one of a pass if it says so.
    """

    def __init__(self, params):
        self._params = params
        self.walker = PointWalker(params, ("y", "addend"), pairs=ResultSizes(params).pairs)
        self.grouper = Grouper(params)
        self.line_pairs = LinePairs(params) if params.halves > 1 else None
        self.fork = Fork(GroupPlaceLayout(params), 3)
        self.table_loader, self.addends = TableLoader(params), AddendReader(params)
        self.readout, self.post = ReadOut(params), PostProcessor(params.conv)
        self.cutter, self.assembler, self.writer = RunCutter(params), Assembler(params), Writer(params)
        table, addend = TableTagLayout(params), AddendTagLayout(params)
        super().__init__(
            ({"biases": Out(BiasesLayout(params))} if params.floats else {})
            | {
                "plan": In(PlanLayout(params)),
                "start": In(1),
                "tiles": In(stream.Signature(range(params.accumulator_banks))),
                "read": Out(AccumulatorReadLayout(params)),
                "acc": In(data.ArrayLayout(32, params.conv.results)),
                "table": Out(stream.Signature(GatherLayout(params, table))),
                "table_answer": In(GatheredLayout(params, table)),
                "table_stb": In(1),
                "addend": Out(stream.Signature(GatherLayout(params, addend))),
                "addend_answer": In(GatheredLayout(params, addend)),
                "addend_stb": In(1),
                "scatter": Out(stream.Signature(ScatterWriteLayout(params.smem))),
                "done": Out(1),
                "written": Out(range(ResultSizes(params).piece_bytes + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.walker, m.submodules.grouper, m.submodules.fork = self.walker, self.grouper, self.fork
        m.submodules.table, m.submodules.addends = self.table_loader, self.addends
        m.submodules.readout, m.submodules.post = self.readout, self.post
        m.submodules.cutter, m.submodules.assembler, m.submodules.writer = self.cutter, self.assembler, self.writer
        with_plan = (self.walker, self.grouper, self.table_loader, self.addends, self.readout, self.cutter)
        m.d.comb += [block.plan.eq(self.plan) for block in (*with_plan, self.assembler, self.writer)]
        started = (self.walker, self.grouper, self.table_loader, self.readout)
        m.d.comb += [*(block.start.eq(self.start) for block in started), self.post.job.eq(self.plan.post)]

        connect(m, places=self.walker.o, grouper=self.grouper.i)
        if self.line_pairs is None:
            connect(m, grouper=self.grouper.o, fork=self.fork.i)
        else:
            m.submodules.line_pairs = self.line_pairs
            m.d.comb += self.line_pairs.plan.eq(self.plan)
            connect(m, grouper=self.grouper.o, pairs=self.line_pairs.i)
            connect(m, pairs=self.line_pairs.o, fork=self.fork.i)
        for port, block in zip(self.fork.o, (self.readout, self.addends, self.cutter), strict=True):
            connect(m, fork=port, block=block.i)
        self._connect_readout(m)
        self._connect_memory(m)

        connect(m, readout=self.readout.o, post=self.post.i)
        connect(m, post=self.post.o, assembler=self.assembler.i)
        connect(m, readout=self.readout.flush, assembler=self.assembler.flush)
        connect(m, cutter=self.cutter.o, assembler=self.assembler.pieces)
        connect(m, assembler=self.assembler.o, writer=self.writer.i)
        m.d.comb += self.readout.left.eq(self.post.o.valid & self.post.o.ready)
        self._end(m)
        return m

    def _connect_readout(self, m):
        readout, table, addends = self.readout, self.table_loader, self.addends
        connect(m, tiles=flipped(self.tiles), readout=readout.tiles)
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
        ]
        if self._params.floats:
            m.d.comb += self.biases.eq(table.biases)

    def _connect_memory(self, m):
        connect(m, loader=self.table_loader.request, table=flipped(self.table))
        connect(m, reader=self.addends.request, addend=flipped(self.addend))
        connect(m, writer=self.writer.o, scatter=flipped(self.scatter))
        m.d.comb += [
            self.table_loader.answer.eq(self.table_answer),
            self.table_loader.answer_stb.eq(self.table_stb),
            self.addends.answer.eq(self.addend_answer),
            self.addends.answer_stb.eq(self.addend_stb),
            self.written.eq(self.writer.written),
        ]

    def _end(self, m):
        """All is done when the last place has gone its ways, and all that was made of places too."""
        under_way, quiet = Signal(), Signal()
        m.d.comb += [
            quiet.eq(
                ~Cat(self.walker.o.valid, self.grouper.o.valid, self.writer.o.valid).any()
                & (1 if self.line_pairs is None else self.line_pairs.idle)
                & self.readout.idle
                & self.cutter.idle
            ),
            self.done.eq(under_way & quiet),
        ]
        with m.If(self.start):
            m.d.sync += under_way.eq(1)
        with m.Elif(quiet):
            m.d.sync += under_way.eq(0)
