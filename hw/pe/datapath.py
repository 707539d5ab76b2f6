"""The rooms of the processing engine, connected."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..lib.join import join
from ..smem.layouts import BarrierRequestLayout, BarrierResultLayout, ReadLayout, ScatterWriteLayout, read_data_layout
from .address.faults import FaultCollector
from .address.pages import PageTable
from .address.sequencer import Sequencer
from .address.translate import Translator
from .compute.mac import MacArray
from .compute.path import Compute
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

__all__ = ["PeDatapath", "shared_memory_members"]

#: Ports of the register file that the computing side has alone.
_COMPUTE_PORTS = {
    "product_register": 1, "product_enable": 1, "product_row": 0, "factor_row": 0, "results_valid": 1,
    "results_register": 1, "results_threads": 1, "results_data": 1, "starved": 0,
}  # fmt: skip
_SCOREBOARD_OF_ISSUE = {
    "reads_valid": 1, "reads": 1, "writes_valid": 1, "writes": 1, "clear": 0, "mm_add": 1, "mm_ready": 0,
    "mm_products": 1, "mm_factors": 1, "load_add": 1, "load_ready": 0, "load": 1,
}  # fmt: skip


def shared_memory_members(params):
    """What a processing engine wants of shared memory, as members of a component.

    reads, read_data : streams of ReadLayout out and read_data_layout in
    scatter : stream of ScatterWriteLayout, out
    scatter_idle : 1, in
        What was accepted can be read.
    barriers, barrier_results : streams of BarrierRequestLayout out and BarrierResultLayout in
    bank_conflict : 1, in
        Strobe, counted.
    """
    return {
        "reads": Out(stream.Signature(ReadLayout(params.smem))),
        "read_data": In(stream.Signature(read_data_layout())),
        "scatter": Out(stream.Signature(ScatterWriteLayout(params.smem))),
        "scatter_idle": In(1),
        "barriers": Out(stream.Signature(BarrierRequestLayout(params.smem))),
        "barrier_results": In(stream.Signature(BarrierResultLayout())),
        "bank_conflict": In(1),
    }


class PeDatapath(wiring.Component):
    """The data path; connections only, but for the count of jobs under way.

    Members
    -------
    instructions : stream of unsigned(128), in
        In program order.
    segments, pages : streams of SegmentWriteLayout and PageWriteLayout, in
    issued, collected : streams of FaultLayout, out
        Together one item for every instruction, of code NONE if there was no error.
    events : EventsLayout, out
    halted : 1, out
        Strobe: a halt is performed, and so is all before it.
    idle : 1, out
        No instruction is under way.

    and those of :func:`shared_memory_members`.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            shared_memory_members(params)
            | {
                "instructions": In(stream.Signature(INSTRUCTION_BITS)),
                "segments": In(stream.Signature(SegmentWriteLayout(params))),
                "pages": In(stream.Signature(PageWriteLayout(params))),
                "issued": Out(stream.Signature(FaultLayout(params))),
                "collected": Out(stream.Signature(FaultLayout(params))),
                "events": Out(EventsLayout()),
                "halted": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        m.submodules.decoder = decoder = Decoder(params)
        m.submodules.issue = issue = Issue(params)
        m.submodules.lane_ops = lane_ops = LaneOps(params)
        m.submodules.waits = waits = Waits(params)
        m.submodules.scoreboard = scoreboard = Scoreboard(params)
        m.submodules.segment_table = segment_table = SegmentTable(params)
        m.submodules.predicates = predicates = PredicateFile(params)
        m.submodules.registers = registers = RegisterFile(params)
        m.submodules.sequencer = sequencer = Sequencer(params)
        m.submodules.page_table = page_table = PageTable(params)
        m.submodules.translator = translator = Translator(params)
        m.submodules.collector = collector = FaultCollector(params)
        m.submodules.memory_side = memory_side = MemoryPath(params)
        m.submodules.compute = compute = Compute(params, MacArray(params))

        # Instructions
        join(m, instructions=flipped(self.instructions), decoder=decoder.i)
        join(m, decoder=decoder.o, issue=issue.i)
        join(m, issue=issue.lane_operations, lane_ops=lane_ops.i)
        join(m, issue=issue.waits, waits=waits.i)
        join(m, issue=issue.faults, issued=flipped(self.issued))
        join(m, waits=waits.barriers, barriers=flipped(self.barriers))
        join(m, barrier_results=flipped(self.barrier_results), waits=waits.barrier_results)
        join(m, lane_ops=lane_ops.moves, registers=registers.moves)
        join(m, lane_ops=lane_ops.reads, registers=registers.issue_reads)
        join(m, lane_ops=lane_ops.predicate_writes, predicates=predicates.writes)
        m.d.comb += [
            lane_ops.lane_data.eq(registers.lane_data),
            predicates.issue_group.eq(lane_ops.predicate_group),
            issue.segment_entry.eq(segment_table.entry),
            segment_table.number.eq(issue.segment_number),
            issue.segment_written.eq(self.segments.valid & self.segments.ready),
            issue.page_written.eq(page_table.written),
            issue.loading_idle.eq(sequencer.idle),
            self.halted.eq(waits.halted),
        ]
        m.d.comb += [
            ours.eq(theirs) for ours, theirs in zip(lane_ops.predicate_rows, predicates.issue_rows, strict=True)
        ]
        _wire(m, issue, scoreboard, _SCOREBOARD_OF_ISSUE)

        # The loading side
        join(m, segments=flipped(self.segments), segment_table=segment_table.writes)
        join(m, pages=flipped(self.pages), page_table=page_table.writes)
        join(m, issue=issue.jobs, sequencer=sequencer.jobs)
        join(m, sequencer=sequencer.lane_reads, registers=registers.lane_reads)
        join(m, sequencer=sequencer.linear, translator=translator.i)
        join(m, translator=translator.lookups, page_table=page_table.lookups)
        join(m, translator=translator.o, collector=collector.i)
        join(m, collector=collector.o, memory_side=memory_side.accesses)
        join(m, collector=collector.faults, collected=flipped(self.collected))
        join(m, memory_side=memory_side.reads, reads=flipped(self.reads))
        join(m, read_data=flipped(self.read_data), memory_side=memory_side.read_data)
        join(m, memory_side=memory_side.scatter, scatter=flipped(self.scatter))
        join(m, memory_side=memory_side.loads, registers=registers.loads)
        m.d.comb += [
            predicates.enable.eq(sequencer.predicate_enable),
            translator.page.eq(page_table.page),
            translator.page_written.eq(page_table.written),
            memory_side.scatter_idle.eq(self.scatter_idle),
            scoreboard.load_done.eq(memory_side.load_done),
        ]
        for lane, answer in enumerate(sequencer.lane_data):
            m.d.comb += [
                answer.eq(registers.lane_data[lane]),
                predicates.groups[lane].eq(sequencer.predicate_groups[lane]),
                sequencer.predicates[lane].eq(predicates.rows[lane]),
            ]

        # The computing side
        join(m, issue=issue.multiplies, compute=compute.multiplies)
        join(m, memory_side=memory_side.columns, compute=compute.columns)
        join(m, compute=compute.factor_reads, registers=registers.factor_reads)
        _wire(m, compute, registers, _COMPUTE_PORTS)
        _wire(m, compute, scoreboard, {"factors_ready": 0, "factors_taken": 1, "mm_done": 1})

        # A job is under way until it has reported, and then until its accesses have had their effect. The rooms in
        # between have some thirty registers for accesses, each of which may be of another job.
        jobs = Signal(range(64))
        begun, reported = issue.jobs.valid & issue.jobs.ready, self.collected.valid & self.collected.ready
        m.d.sync += jobs.eq(jobs + begun - reported)
        m.d.comb += [
            waits.quiet.eq(
                (jobs == 0) & ~collector.o.valid & memory_side.idle & memory_side.stores_idle & scoreboard.empty
            ),
            self.idle.eq(waits.quiet & issue.idle & ~decoder.o.valid),
            self.events.instruction.eq(decoder.accepted),
            self.events.step.eq(compute.step),
            self.events.stall_columns.eq(compute.stall_columns),
            self.events.stall_factors.eq(compute.stall_factors),
            self.events.stall_product.eq(compute.stall_product),
            self.events.line_fills.eq(memory_side.line_fill),
            self.events.bank_conflict.eq(self.bank_conflict),
            self.events.translation_miss.eq(translator.miss),
        ]
        return m


def _wire(m, one, other, ports):
    """Connects ports of the same name; the number says whether ``one`` drives it."""
    for name, drives in ports.items():
        source, sink = (one, other) if drives else (other, one)
        m.d.comb += getattr(sink, name).eq(getattr(source, name))
