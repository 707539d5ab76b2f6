"""The blocks of the processing engine, connected."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.spec.pe import PE_REGISTERS

from ..bus.axi4_lite import AccessSignature, Axi4LiteSignature, address_map, map_addr_width, serve_registers
from ..bus.registers import EngineStateSignature
from ..lib.component import bundle, join
from ..lib.layouts import command_layout
from ..lib.routing import StreamArbiter
from ..smem.layouts import SharedMemorySignature
from .address.faults import FaultCollector
from .address.sequencer import Sequencer
from .address.translate import PageTable, Translator
from .compute import ComputePath, MacArray
from .control import Control, EventsLayout
from .issue.decode import Decoder
from .issue.issue import Issue
from .issue.lane_ops import LaneOps
from .issue.scoreboard import Scoreboard
from .issue.waits import Waits
from .layouts import INSTRUCTION_BITS, FaultLayout, PageWriteLayout, ProcessorSignature, SegmentWriteLayout
from .memory import MemoryPath
from .pager import MoveDoneLayout, Pager
from .registers import PredicateFile, RegisterFile
from .segments import SegmentTable

__all__ = ["PE_REGISTER_ADDR_WIDTH", "Pe", "PeDatapath", "PeUnit"]


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


class PeUnit(wiring.Component):
    """Data path, registers and pager; connections only.

    What a processor puts into registers joins what comes in streams, item by item.

    Members
    -------
    core_number : In(4) if cores > 1
        Number of this core, of so many in a cluster.
    stopped : In(1) if cores > 1
        It is stopped. What comes is still taken, and instructions are refused: so what was put does not wait.
    processor : Out(ProcessorSignature)
    smem : Out(SharedMemorySignature)
    accesses : In(AccessSignature)
        Registers, at the offsets of ``spec.pe``.
    irq : Out(1)
        Level.
    state : Out(EngineStateSignature())
    put_busy : Out(1)
        What was put has not been taken.
    page_moves : Out(stream of command_layout())
        Commands that move pages, for a TMAU; of tags from ``PAGER_TAG`` on.
    page_moved : In(MoveDoneLayout)
        What the TMAU has completed.
    """

    def __init__(self, params, cores=1):
        self.params, self._cores = params, cores
        super().__init__(
            {
                **({"core_number": In(4), "stopped": In(1)} if cores > 1 else {}),
                "processor": Out(ProcessorSignature(params)),
                "smem": Out(SharedMemorySignature(params.smem)),
                "accesses": In(AccessSignature()),
                "irq": Out(1),
                "state": Out(EngineStateSignature()),
                "put_busy": Out(1),
                "page_moves": Out(stream.Signature(command_layout())),
                "page_moved": In(MoveDoneLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = PeDatapath(self.params, self._cores)
        m.submodules.control = control = Control(self.params)
        m.submodules.pager = pager = Pager(self.params)
        if self._cores > 1:
            m.d.comb += [core.core_number.eq(self.core_number), core.stopped.eq(self.stopped)]
        self._merge(m, "instructions", INSTRUCTION_BITS, core, control.instructions)
        self._merge(m, "segments", SegmentWriteLayout(self.params), core, control.segments)
        self._merge(m, "pages", PageWriteLayout(self.params), core, control.pages, pager.writes)

        join(m, core=core.smem, smem=flipped(self.smem))
        join(m, core=core.issued, control=control.issued)
        join(m, core=core.collected, control=control.collected)
        join(m, accesses=flipped(self.accesses), control=control.accesses)
        join(m, control=control.state, state=flipped(self.state))
        join(m, control=control.pager_requests, pager=pager.requests)
        join(m, pager=pager.commands, page_moves=flipped(self.page_moves))
        m.d.comb += [
            pager.done.eq(self.page_moved),
            control.events.eq(core.events),
            control.halted.eq(core.halted),
            control.idle.eq(core.idle),
            self.processor.fault_valid.eq(control.reported),
            self.processor.fault.eq(control.report),
            self.processor.halted.eq(core.halted),
            self.irq.eq(control.irq),
            self.put_busy.eq(control.put_busy),
        ]
        return m

    def _merge(self, m, name, shape, core, *others):
        """What comes at the port ``name``, and from others, in turns."""
        port, sink = getattr(self.processor, name), getattr(core, name)
        arbiter = StreamArbiter(shape, 1 + len(others))
        m.submodules[f"{name}_arbiter"] = arbiter
        for source, i in zip((flipped(port), *others), arbiter.i, strict=True):
            join(m, source=source, arbiter=i)
        join(m, arbiter=arbiter.o, core=sink)


#: Bits of the byte addresses of the registers.
PE_REGISTER_ADDR_WIDTH = max(register.offset for register in PE_REGISTERS).bit_length()


class Pe(wiring.Component):
    """Data path, registers and pager behind AXI4-Lite; connections only.

    The shared memory outside answers ``reads`` in order, takes up to eight chunks at once from ``scatter``, performs
    the operations of ``barriers``, and reports how often its banks conflicted. A TMAU outside moves pages.

    Members
    -------
    s_axil : In(Axi4LiteSignature(PE_REGISTER_ADDR_WIDTH))
        Registers, at the offsets of ``spec.pe``.
    smem : Out(SharedMemorySignature)
        The shared memory outside.
    irq : Out(1)
        Interrupt, a level: a bit is set in both ``irq_status`` and ``irq_enable``.
    page_moves : Out(stream of command_layout())
        Commands that move pages, for a TMAU; their tags are 0x8000 plus the page entry.
    page_moved : In(MoveDoneLayout)
        What the TMAU has completed.
    **ProcessorSignature(params).members

    Attributes
    ----------
    regions : dict of str to Region
        What lies where on ``s_axil``: ``pe``, the registers.
    """

    def __init__(self, params):
        self.params = params
        self.regions = address_map(pe=PE_REGISTER_ADDR_WIDTH)
        super().__init__(
            {
                **ProcessorSignature(params).members,
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
                "smem": Out(SharedMemorySignature(params.smem)),
                "irq": Out(1),
                "page_moves": Out(stream.Signature(command_layout())),
                "page_moved": In(MoveDoneLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = PeUnit(self.params)
        join(m, unit=unit.processor, processor=flipped(bundle(self, ProcessorSignature(self.params))))
        join(m, unit=unit.smem, smem=flipped(self.smem))
        join(m, unit=unit.page_moves, page_moves=flipped(self.page_moves))
        m.d.comb += [unit.page_moved.eq(self.page_moved), self.irq.eq(unit.irq)]
        serve_registers(m, self.s_axil, self.regions, pe=unit.accesses)
        return m
