"""The blocks of the processing engine, connected."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..lib.join import join
from ..smem.signatures import SharedMemorySignature
from .address.faults import FaultCollector
from .address.pages import PageTable
from .address.sequencer import Sequencer
from .address.translate import Translator
from .compute.mac import MacArray
from .compute.path import ComputePath
from .control import EventsLayout
from .issue.decode import Decoder
from .issue.issue import Issue
from .issue.lane_ops import LaneOps
from .issue.scoreboard import Scoreboard
from .issue.waits import Waits
from .layouts import INSTRUCTION_BITS, FaultLayout, PageWriteLayout, SegmentWriteLayout
from .memory.path import MemoryPath
from .state.predicates import PredicateFile
from .state.registers import RegisterFile
from .state.segments import SegmentTable

__all__ = ["PeDatapath"]


class PeDatapath(wiring.Component):
    """The data path; connections only, but for the count of jobs under way.

    Members
    -------
    core_number : In(4) if cores > 1
        Number of this core, of so many in a cluster.
    stopped : In(1) if cores > 1
        It is stopped: instructions that have not begun are refused, and nothing waits for what need not come.
    instructions : In(stream of INSTRUCTION_BITS)
        In program order.
    segments : In(stream of SegmentWriteLayout)
    pages : In(stream of PageWriteLayout)
    smem : Out(SharedMemorySignature)
    issued, collected : Out(stream of FaultLayout)
        Together one item for every instruction, of code NONE if there was no error.
    events : Out(EventsLayout)
    halted : Out(1)
        Strobe: a halt is performed, and so is all before it.
    idle : Out(1)
        No instruction is under way.
    """

    def __init__(self, params, cores=1):
        self.params, self._cores = params, cores
        self._decoder, self._issue = Decoder(params), Issue(params, cores)
        self._lane_ops, self._waits = LaneOps(params, cores), Waits(params, cores)
        self._scoreboard = Scoreboard(params)
        self._segment_table, self._page_table = SegmentTable(params), PageTable(params)
        self._predicates, self._registers = PredicateFile(params), RegisterFile(params)
        self._sequencer, self._translator = Sequencer(params), Translator(params, cores)
        self._collector, self._memory = FaultCollector(params), MemoryPath(params)
        self._compute = ComputePath(params, MacArray(params))
        super().__init__(
            {
                **({"core_number": In(4), "stopped": In(1)} if cores > 1 else {}),
                "instructions": In(stream.Signature(INSTRUCTION_BITS)),
                "segments": In(stream.Signature(SegmentWriteLayout(params))),
                "pages": In(stream.Signature(PageWriteLayout(params))),
                "smem": Out(SharedMemorySignature(params.smem)),
                "issued": Out(stream.Signature(FaultLayout(params))),
                "collected": Out(stream.Signature(FaultLayout(params))),
                "events": Out(EventsLayout()),
                "halted": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.decoder = self._decoder
        m.submodules.issue = self._issue
        m.submodules.lane_ops = self._lane_ops
        m.submodules.waits = self._waits
        m.submodules.scoreboard = self._scoreboard
        m.submodules.segment_table = self._segment_table
        m.submodules.predicates = self._predicates
        m.submodules.registers = self._registers
        m.submodules.sequencer = self._sequencer
        m.submodules.page_table = self._page_table
        m.submodules.translator = self._translator
        m.submodules.collector = self._collector
        m.submodules.memory = self._memory
        m.submodules.compute = self._compute
        self._connect_instructions(m)
        self._connect_loading_side(m)
        self._connect_computing_side(m)
        self._watch(m)
        return m

    def _connect_instructions(self, m):
        decoder, issue, lane_ops, waits = self._decoder, self._issue, self._lane_ops, self._waits
        registers, predicates = self._registers, self._predicates
        join(m, instructions=flipped(self.instructions), decoder=decoder.i)
        join(m, decoder=decoder.o, issue=issue.i)
        join(m, issue=issue.lane_operations, lane_ops=lane_ops.i)
        join(m, issue=issue.waits, waits=waits.i)
        join(m, issue=issue.faults, issued=flipped(self.issued))
        join(m, issue=issue.segment, segment_table=self._segment_table.read)
        join(m, issue=issue.access, scoreboard=self._scoreboard.access)
        join(m, issue=issue.mm_registers, scoreboard=self._scoreboard.mm_registers)
        join(m, issue=issue.load_registers, scoreboard=self._scoreboard.load_registers)
        join(m, waits=waits.barriers, barriers=flipped(self.smem.barriers))
        join(m, barrier_results=flipped(self.smem.barrier_results), waits=waits.barrier_results)
        if self._cores > 1:
            m.d.comb += [
                lane_ops.core_number.eq(self.core_number),
                *(block.stopped.eq(self.stopped) for block in (issue, waits, self._translator)),
                issue.wait_refused.eq(waits.refused),
            ]
        join(m, lane_ops=lane_ops.moves, registers=registers.moves)
        join(m, lane_ops=lane_ops.reads, registers=registers.issue_reads)
        join(m, lane_ops=lane_ops.predicates, predicates=predicates.issue_reads)
        join(m, lane_ops=lane_ops.predicate_writes, predicates=predicates.writes)
        m.d.comb += [
            issue.segment_written.eq(self.segments.valid & self.segments.ready),
            issue.page_written.eq(self._page_table.written),
            issue.loading_idle.eq(self._sequencer.idle),
            self.halted.eq(waits.halted),
        ]

    def _connect_loading_side(self, m):
        sequencer, translator, collector, memory = self._sequencer, self._translator, self._collector, self._memory
        registers, page_table = self._registers, self._page_table
        join(m, segments=flipped(self.segments), segment_table=self._segment_table.writes)
        join(m, pages=flipped(self.pages), page_table=page_table.writes)
        join(m, issue=self._issue.jobs, sequencer=sequencer.jobs)
        join(m, sequencer=sequencer.lane_reads, registers=registers.lane_reads)
        join(m, sequencer=sequencer.predicates, predicates=self._predicates.reads)
        join(m, sequencer=sequencer.linear, translator=translator.i)
        join(m, translator=translator.lookups, page_table=page_table.lookups)
        join(m, translator=translator.o, collector=collector.i)
        join(m, collector=collector.o, memory=memory.accesses)
        join(m, collector=collector.faults, collected=flipped(self.collected))
        join(m, memory=memory.reads, reads=flipped(self.smem.reads))
        join(m, read_data=flipped(self.smem.read_data), memory=memory.read_data)
        join(m, memory=memory.scatter, scatter=flipped(self.smem.scatter))
        join(m, memory=memory.loads, registers=registers.loads)
        m.d.comb += [
            translator.page.eq(page_table.page),
            translator.page_written.eq(page_table.written),
            memory.scatter_idle.eq(self.smem.scatter_idle),
            self._scoreboard.load_done.eq(memory.load_done),
        ]

    def _connect_computing_side(self, m):
        compute = self._compute
        join(m, issue=self._issue.multiplies, compute=compute.multiplies)
        join(m, memory=self._memory.columns, compute=compute.columns)
        join(m, compute=compute.registers, registers=self._registers.compute)
        join(m, compute=compute.order, scoreboard=self._scoreboard.compute)

    def _watch(self, m):
        """What is under way, and what happens.

        A job is under way until it has reported, and then until its accesses have had their effect. The blocks in
        between have some thirty registers for accesses, each of which may be of another job.
        """
        issue, memory, compute, waits, events = self._issue, self._memory, self._compute, self._waits, self.events
        jobs = Signal(range(64))
        begun, reported = issue.jobs.valid & issue.jobs.ready, self.collected.valid & self.collected.ready
        m.d.sync += jobs.eq(jobs + begun - reported)
        settled = ~self._collector.o.valid & memory.idle & memory.stores_idle & self._scoreboard.empty
        m.d.comb += [
            waits.quiet.eq((jobs == 0) & settled),
            self.idle.eq(waits.quiet & issue.idle & self._decoder.idle),
            events.instruction.eq(self._decoder.accepted),
            events.step.eq(compute.step),
            events.stall_columns.eq(compute.stall_columns),
            events.stall_factors.eq(compute.stall_factors),
            events.stall_product.eq(compute.stall_product),
            events.line_fills.eq(memory.line_fill),
            events.bank_conflict.eq(self.smem.bank_conflict),
            events.translation_miss.eq(self._translator.miss),
        ]
