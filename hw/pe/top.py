"""The processing engine: its data path, registers and pager, and the top for designs with their own shared memory."""

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.pe import PE_REGISTERS

from ..bus.axi4_lite import AccessSignature, Axi4LiteSignature, address_map, map_addr_width, serve_registers
from ..bus.registers import EngineStateSignature
from ..lib.component import bundle
from ..lib.layouts import command_layout
from ..lib.routing import StreamArbiter
from ..smem.signatures import SharedMemorySignature
from .address.faults import FaultCollector
from .address.sequencer import Sequencer
from .address.translate import PageTable, Translator
from .arithmetic.path import ArithmeticPath, path_latency
from .arithmetic.router import Router
from .arithmetic.start import ArithmeticStart
from .compute import ComputePath, mac_array, multiply_latency
from .control import Control
from .issue.decode import Decoder
from .issue.issue import Issue
from .issue.kernels import Kernels
from .issue.lane_ops import LaneOps
from .issue.scoreboard import Scoreboard
from .issue.waits import Waits
from .layouts import INSTRUCTION_BITS, PageWriteLayout, ProcessorSignature, SegmentWriteLayout
from .memory import MemoryPath
from .pager import MoveDoneLayout, Pager
from .registers import PredicateFile, PredicateRows, RegisterFile
from .segments import SegmentTable

__all__ = ["PE_REGISTER_ADDR_WIDTH", "Pe", "PeUnit"]

#: Bits of the byte addresses of the registers.
PE_REGISTER_ADDR_WIDTH = max(register.offset for register in PE_REGISTERS).bit_length()


_STALLS = ("stall_columns", "stall_factors", "stall_product")


class PeUnit(wiring.Component):
    """All blocks of a processing engine, connected, with a counter of jobs in flight.

    Instructions, segments and pages that a processor puts into registers are merged with its streams. In a cluster,
    when ``stopped``, instructions that have not started are refused, and no wait blocks.
    """

    def __init__(self, params, cores=1):
        self._params, self._cores = params, cores
        super().__init__(
            {
                **({"core_number": In(4), "stopped": In(1)} if cores > 1 else {}),
                "processor": Out(ProcessorSignature(params)),
                "smem": Out(SharedMemorySignature(params.smem)),
                "accesses": In(AccessSignature()),  # registers, at the offsets of ``spec.pe``
                "irq": Out(1),  # level
                "state": Out(EngineStateSignature()),
                "put_busy": Out(1),  # an item was put and has not been accepted
                "page_moves": Out(stream.Signature(command_layout())),  # TMAU commands; tags from ``PAGER_TAG`` on
                "page_moved": In(MoveDoneLayout()),  # completions of TMAU commands
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, cores, smem = self._params, self._cores, flipped(self.smem)
        m.submodules.control = control = Control(params)
        m.submodules.pager = pager = Pager(params)
        m.submodules.decoder = decoder = Decoder(params)
        m.submodules.issue = issue = Issue(params, cores)
        m.submodules.waits = waits = Waits(params, cores)
        computes = bool(params.units)
        array = mac_array(params)
        latency = path_latency(params, multiply_latency(array)) if computes else None
        m.submodules.scoreboard = scoreboard = Scoreboard(params, latency + 1 if computes else 0)
        m.submodules.segment_table = segment_table = SegmentTable(params)
        m.submodules.predicates = predicates = PredicateRows(params) if computes else PredicateFile(params)
        m.submodules.registers = registers = RegisterFile(params)
        m.submodules.sequencer = sequencer = Sequencer(params)
        m.submodules.page_table = page_table = PageTable(params)
        m.submodules.translator = translator = Translator(params, cores)
        m.submodules.collector = collector = FaultCollector(params)
        m.submodules.memory = memory = MemoryPath(params)
        m.submodules.compute = compute = ComputePath(params, array, latency)

        if computes:
            instructions, no_kernel, arithmetic_idle = self._compute(
                m,
                decoder,
                issue,
                scoreboard,
                sequencer,
                predicates,
                registers,
                compute,
                control,
                latency,
                multiply_latency(array),
            )
        else:
            instructions, no_kernel, arithmetic_idle = self._move(m, decoder, issue, predicates, registers)
        # Processor: streams and registers.
        for name, shape, sink, *sources in (
            ("instructions", INSTRUCTION_BITS, instructions, control.instructions),
            ("segments", SegmentWriteLayout(params), segment_table.writes, control.segments),
            ("pages", PageWriteLayout(params), page_table.writes, control.pages, pager.writes),
        ):
            m.submodules[f"{name}_arbiter"] = arbiter = StreamArbiter(shape, 1 + len(sources))
            for source, i in zip((flipped(getattr(self.processor, name)), *sources), arbiter.i, strict=True):
                connect(m, source=source, arbiter=i)
            connect(m, arbiter=arbiter.o, sink=sink)
        connect(m, accesses=flipped(self.accesses), control=control.accesses)
        connect(m, control=control.state, state=flipped(self.state))
        connect(m, control=control.pager_requests, pager=pager.requests)
        connect(m, pager=pager.commands, page_moves=flipped(self.page_moves))
        # Instructions.
        connect(m, issue=issue.waits, waits=waits.i)
        connect(m, issue=issue.faults, control=control.issued)
        connect(m, issue=issue.segment, segment_table=segment_table.read)
        connect(m, issue=issue.access, scoreboard=scoreboard.access)
        connect(m, issue=issue.mm_registers, scoreboard=scoreboard.mm_registers)
        connect(m, issue=issue.load_registers, scoreboard=scoreboard.load_registers)
        connect(m, issue=issue.jobs, sequencer=sequencer.jobs)
        connect(m, issue=issue.multiplies, compute=compute.multiplies)
        connect(m, waits=waits.barriers, barriers=smem.barriers)
        connect(m, barrier_results=smem.barrier_results, waits=waits.barrier_results)
        # Loading side.
        connect(m, sequencer=sequencer.lane_reads, registers=registers.lane_reads)
        connect(m, sequencer=sequencer.predicates, predicates=predicates.reads)
        connect(m, sequencer=sequencer.linear, translator=translator.i)
        connect(m, translator=translator.lookups, page_table=page_table.lookups)
        connect(m, translator=translator.o, collector=collector.i)
        connect(m, collector=collector.o, memory=memory.accesses)
        connect(m, collector=collector.faults, control=control.collected)
        connect(m, memory=memory.reads, reads=smem.reads)
        connect(m, read_data=smem.read_data, memory=memory.read_data)
        connect(m, memory=memory.scatter, scatter=smem.scatter)
        connect(m, memory=memory.loads, registers=registers.loads)
        # Computing side.
        connect(m, memory=memory.columns, compute=compute.columns)
        connect(m, compute=compute.registers, registers=registers.compute)
        connect(m, compute=compute.order, scoreboard=scoreboard.compute)

        # A job is in flight until it has reported, and then until its accesses have taken effect.
        jobs, settled = Signal(range(64)), Signal()
        started, reported = issue.jobs.valid & issue.jobs.ready, collector.faults.valid & collector.faults.ready
        m.d.sync += jobs.eq(jobs + started - reported)
        events = control.events
        m.d.comb += [
            issue.segment_written.eq(segment_table.writes.valid & segment_table.writes.ready),
            issue.page_written.eq(page_table.written),
            issue.loading_idle.eq(sequencer.idle),
            translator.page.eq(page_table.page),
            translator.page_written.eq(page_table.written),
            memory.scatter_idle.eq(self.smem.scatter_idle),
            scoreboard.load_done.eq(memory.load_done),
            settled.eq(~collector.o.valid & memory.idle & memory.stores_idle & scoreboard.empty & arithmetic_idle),
            waits.quiet.eq((jobs == 0) & settled),
            pager.done.eq(self.page_moved),
            control.halted.eq(waits.halted),
            control.idle.eq(waits.quiet & issue.idle & decoder.idle & no_kernel),
            events.instruction.eq(decoder.accepted),
            *(events[name].eq(getattr(compute, name)) for name in ("step", *_STALLS)),
            events.line_fills.eq(memory.line_fill),
            events.bank_conflict.eq(self.smem.bank_conflict),
            events.translation_miss.eq(translator.miss),
            self.processor.fault_valid.eq(control.reported),
            self.processor.fault.eq(control.report),
            self.processor.halted.eq(waits.halted),
            self.irq.eq(control.irq),
            self.put_busy.eq(control.put_busy),
        ]
        if cores > 1:
            m.d.comb += [
                *(block.stopped.eq(self.stopped) for block in (issue, waits, translator)),
                issue.wait_refused.eq(waits.refused),
            ]
        return m

    def _move(self, m, decoder, issue, predicates, registers):
        """Without arithmetic: mov and setp. Returns the stream of instructions, and that nothing else is under way."""
        m.submodules.lane_ops = lane_ops = LaneOps(self._params, self._cores)
        connect(m, decoder=decoder.o, issue=issue.i)
        connect(m, issue=issue.lane_operations, lane_ops=lane_ops.i)
        connect(m, lane_ops=lane_ops.moves, registers=registers.moves)
        connect(m, lane_ops=lane_ops.reads, registers=registers.issue_reads)
        connect(m, lane_ops=lane_ops.predicates, predicates=predicates.issue_reads)
        connect(m, lane_ops=lane_ops.predicate_writes, predicates=predicates.writes)
        if self._cores > 1:
            m.d.comb += lane_ops.core_number.eq(self.core_number)
        instructions = stream.Signature(INSTRUCTION_BITS).flip().create(path=("instructions",))
        m.d.comb += [
            decoder.i.valid.eq(instructions.valid),
            decoder.i.payload.word.eq(instructions.payload),
            instructions.ready.eq(decoder.i.ready),
        ]
        return instructions, Const(1), Const(1)

    def _compute(
        self, m, decoder, issue, scoreboard, sequencer, predicates, registers, compute, control, latency, multiply
    ):
        """Kernels and arithmetic. Returns the same, and whether no kernel runs."""
        params = self._params
        m.submodules.kernels = kernels = Kernels(params)
        m.submodules.router = router = Router(params, self._cores)
        m.submodules.arithmetic_start = start = ArithmeticStart(params, latency)
        m.submodules.arithmetic_path = path = ArithmeticPath(params, latency)
        connect(m, kernels=kernels.o, decoder=decoder.i)
        connect(m, decoder=decoder.o, router=router.i)
        connect(m, router=router.others, issue=issue.i)
        connect(m, router=router.operations, start=start.i)
        connect(m, start=start.access, scoreboard=scoreboard.arithmetic)
        connect(m, start=start.registers, registers=registers.arithmetic)
        m.d.comb += [
            decoder.passes.eq(router.passes | issue.takes),
            issue.arithmetic_pending.eq(start.pending),
            router.rests.eq(issue.rests),
            *(block.turn.eq(issue.turn) for block in (router, start, scoreboard)),
            router.uniform_set.eq(issue.uniform_set),
            router.uniform.eq(issue.uniform),
            kernels.loop_count.eq(issue.loop_count),
            kernels.drained.eq(decoder.idle & issue.idle & start.quiet),
            issue.arithmetic_quiet.eq(start.quiet),
            issue.written.eq(start.written),
            issue.written_register.eq(start.written_register),
            scoreboard.job_issued.eq(issue.job_issued),
            scoreboard.issuing.eq(issue.issuing),
            scoreboard.multiplies.eq(issue.is_mm),
            scoreboard.job_reads.eq(issue.job_reads),
            scoreboard.jobs_read.eq(issue.loading_idle),
            scoreboard.offsets_read.eq(sequencer.offsets_read),
            *(target.eq(item) for target, item in zip(scoreboard.in_flight, start.in_flight, strict=True)),
            start.writes_ahead.eq(compute.writes_ahead),
            path.operands.eq(start.operands),
            *(path.left[bank].eq(registers.arithmetic.left_rows[bank]) for bank in range(2)),
            *(path.right[bank].eq(registers.arithmetic.right_rows[bank]) for bank in range(2)),
            start.divided.eq(path.divided),
            start.division_threads.eq(path.division_threads),
            start.results.eq(path.results),
            start.holds.eq(path.holds),
            start.threads.eq(path.threads),
            *(target.eq(number) for target, number in zip(predicates.numbers, start.predicate_numbers, strict=True)),
            *(target.eq(row) for target, row in zip(start.predicate_rows, predicates.rows, strict=True)),
            predicates.write.eq(start.predicate_write),
            predicates.target.eq(start.predicate_target),
            predicates.values.eq(start.predicate_values),
            predicates.threads.eq(start.predicate_threads),
        ]
        late = latency - multiply - 1
        m.d.comb += [
            control.events.arithmetic.eq(start.starts),
            control.events.stall_operand.eq(start.stall_operand),
            control.events.stall_port.eq(start.stall_port),
        ]
        m.d.comb += control.unreported.eq((router.accepted & ~router.i.payload.inside) + kernels.ended + kernels.loaded)
        if late >= 0:
            item = start.in_flight[late]
            m.d.comb += [
                compute.reserved[bank].eq(item.valid & ~item.to_predicate & (item.target[0] == bank))
                for bank in range(2)
            ]
        if "lookup" in params.units:
            m.d.comb += [
                getattr(path, name).eq(getattr(kernels, name)) for name in ("entry_write", "entry", "entry_data")
            ]
        if self._cores > 1:
            m.d.comb += [
                router.core_number.eq(self.core_number),
                *(block.stopped.eq(self.stopped) for block in (router, kernels)),
            ]
        return kernels.i, kernels.idle, start.quiet


class Pe(wiring.Component):
    """A processing engine behind AXI4-Lite, for designs that have a shared memory.

    The shared memory answers ``reads`` in order, accepts up to eight chunks at once from ``scatter``, performs the
    operations of ``barriers``, and reports bank conflicts. A TMAU moves pages.

    Attributes
    ----------
    regions : dict of str to Region
        Address map of ``s_axil``: ``pe``, the registers.
    """

    def __init__(self, params):
        self.params = params
        self.regions = address_map(pe=PE_REGISTER_ADDR_WIDTH)
        super().__init__(
            {
                **ProcessorSignature(params).members,
                # Registers, at the offsets of ``spec.pe``.
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
                "smem": Out(SharedMemorySignature(params.smem)),  # The shared memory outside.
                # Interrupt, a level: a bit is set in both ``irq_status`` and ``irq_enable``.
                "irq": Out(1),
                # Commands that move pages, for a TMAU; their tags are 0x8000 plus the page entry.
                "page_moves": Out(stream.Signature(command_layout())),
                "page_moved": In(MoveDoneLayout()),  # Completions of the commands of the TMAU.
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = PeUnit(self.params)
        connect(m, unit=unit.processor, processor=flipped(bundle(self, ProcessorSignature(self.params))))
        connect(m, unit=unit.smem, smem=flipped(self.smem))
        connect(m, unit=unit.page_moves, page_moves=flipped(self.page_moves))
        m.d.comb += [unit.page_moved.eq(self.page_moved), self.irq.eq(unit.irq)]
        serve_registers(m, self.s_axil, self.regions, pe=unit.accesses)
        return m
