"""The convolution engine: data path and registers, and the same behind AXI4-Lite."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.conv import CONV_REGISTERS, JOB

from ..bus.axi4_lite import AccessSignature, Axi4LiteSignature, address_map, map_addr_width, serve_registers
from ..bus.registers import EngineStateSignature
from ..lib.component import bundle
from ..lib.stream import ShallowQueue
from ..smem.signatures import SharedMemorySignature
from .array.array import ConvArray
from .array.lane_steps import LaneSteps
from .array.sequencer import Sequencer
from .array.weights import WeightLoader, WeightWriter, weight_tag
from .control import ConvControl, ConvEventsLayout
from .fetch.buffer import FeatureBuffer, KernelRows
from .fetch.features import FeatureFetcher
from .fetch.gather import Gatherer, GatherShare, shared_tag
from .fetch.sets import FeatureTagLayout
from .job.check import JobChecker
from .job.run import JobRunner
from .job.setup import JobSetup
from .layouts import ConvProcessorSignature
from .params import FOLDS
from .result.operands import AddendTagLayout, TableTagLayout
from .result.results import Results

__all__ = ["CONV_REGISTER_ADDR_WIDTH", "Conv", "ConvUnit", "gather_tags"]

#: Bits of the byte addresses of the registers.
CONV_REGISTER_ADDR_WIDTH = max(register.offset for register in CONV_REGISTERS).bit_length()


def gather_tags(params):
    """Tags of the requesters of gathered pieces: features, weights, biases and scales, second operand."""
    return FeatureTagLayout(params), weight_tag(params), TableTagLayout(params), AddendTagLayout(params)


class ConvUnit(wiring.Component):
    """Data path and registers; connections only. docs/inside_conv.md says what each block does.

    Parameters
    ----------
    params : ConvUnitParams
    cores : int
        Cores of the cluster that the engine is in.
    """

    def __init__(self, params, cores=1):
        self.params, self._cores = params, cores
        self.events = Signal(ConvEventsLayout(params))
        super().__init__(
            {
                # High while the core is stopped: jobs are still accepted, but those that have not begun are refused.
                **({"stopped": In(1)} if cores > 1 else {}),
                "processor": Out(ConvProcessorSignature()),
                "smem": Out(SharedMemorySignature(params.smem)),
                # Registers, at the offsets of ``spec.conv.registers``.
                "accesses": In(AccessSignature()),
                # Interrupt, a level: a bit is set in both ``irq_status`` and ``irq_enable``.
                "irq": Out(1),
                "state": Out(EngineStateSignature()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._control(m)
        self._jobs(m)
        self._gather(m)
        self._multiply(m)
        self._write(m)
        self._count(m)
        return m

    def _control(self, m):
        m.submodules.control = control = self._registers = ConvControl(self.params)
        connect(m, flipped(self.accesses), control.accesses)
        connect(m, control.state, flipped(self.state))
        m.d.comb += [
            control.ended.eq(self.processor.job_ended),
            control.end.eq(self.processor.job_end),
            control.events.eq(self.events),
            self.irq.eq(control.irq),
        ]

    def _jobs(self, m):
        params, processor, smem, control = self.params, self.processor, self.smem, self._registers
        m.submodules.queue = queue = ShallowQueue(unsigned(JOB.bits), params.conv.queue_depth)
        m.submodules.checker = checker = JobChecker(params, self._cores)
        m.submodules.setup = setup = JobSetup(params)
        m.submodules.runner = runner = self._runner = JobRunner(params)
        connect(m, flipped(processor.jobs), queue.i)
        # A register after the queue's memory. The job in it stays in the memory until it is accepted, and is checked
        # and set up at once: both blocks accept it in the cycle after the runner has taken their outputs.
        waiting, accepted = Signal(), Signal()
        job = Signal(JOB.bits)
        m.d.sync += [waiting.eq(queue.o.valid & ~accepted), job.eq(queue.o.payload)]
        m.d.comb += [
            accepted.eq(waiting & checker.i.ready),
            queue.o.ready.eq(accepted),
            checker.i.valid.eq(waiting),
            checker.i.payload.eq(job),
            setup.i.valid.eq(waiting),
            setup.i.payload.eq(job),
        ]
        connect(m, checker.o, runner.checked)
        connect(m, setup.o, runner.plans)
        connect(m, runner.barriers, flipped(smem.barriers))
        connect(m, flipped(smem.barrier_results), runner.barrier_results)
        if self._cores > 1:
            m.d.comb += checker.stopped.eq(self.stopped)
        under_way = Signal(8)  # jobs that have been accepted and have not ended
        m.d.sync += under_way.eq(under_way + (processor.jobs.valid & processor.jobs.ready) - runner.ended)
        m.d.comb += [
            processor.job_ended.eq(runner.ended),
            processor.job_end.eq(runner.end),
            control.waiting.eq(queue.level),
            control.idle.eq(under_way == 0),
        ]

    def _gather(self, m):
        tags = gather_tags(self.params)
        m.submodules.gather_share = share = self._share = GatherShare(self.params, tags)
        m.submodules.gatherer = gatherer = Gatherer(self.params, shared_tag(tags))
        connect(m, share.merged, gatherer.i)
        connect(m, gatherer.o, share.gathered)
        connect(m, gatherer.reads, flipped(self.smem.reads))
        connect(m, flipped(self.smem.read_data), gatherer.read_data)

    def _multiply(self, m):
        params, runner, share = self.params, self._runner, self._share
        lanes = runner.compute.lanes
        m.submodules.fetcher = fetcher = FeatureFetcher(params)
        m.submodules.buffer = buffer = FeatureBuffer(params)
        m.submodules.kernel = kernel = KernelRows(params)
        m.submodules.lane_steps = steps = LaneSteps(params)
        m.submodules.loader = loader = self._loader = WeightLoader(params)
        m.submodules.writer = writer = WeightWriter(params)
        m.submodules.array = array = self._array = ConvArray(params)
        m.submodules.sequencer = sequencer = self._sequencer = Sequencer(params, array.latency, array.LOOP)
        connect(m, fetcher.requests, share.i0)
        connect(m, share.o0, buffer.i)
        connect(m, loader.o, share.i1)
        connect(m, share.o1, writer.i)
        connect(m, sequencer.tile, loader.tile)
        m.d.comb += [
            loader.plan.eq(runner.load),
            loader.start.eq(runner.load_start),
            runner.loading.eq(loader.busy),
            runner.weights_read.eq(loader.weights_read),
            fetcher.plan.eq(runner.fetch),
            fetcher.start.eq(runner.fetch_start),
            runner.fetching.eq(fetcher.busy),
            *(block.plan.eq(runner.compute) for block in (kernel, steps, sequencer, array)),
            sequencer.start.eq(runner.compute_start),
            steps.start.eq(runner.compute_start & lanes),
            sequencer.overlaps.eq(runner.overlaps),
            runner.computing.eq(sequencer.busy),
            # Sets come from the buffer, or in lane-private mode from ``LaneSteps``.
            sequencer.sets.valid.eq(Mux(lanes, steps.o.valid, buffer.sets.valid)),
            sequencer.sets.payload.eq(Mux(lanes, steps.o.payload.flags, buffer.sets.payload)),
            steps.o.ready.eq(sequencer.sets.ready & lanes),
            buffer.sets.ready.eq(sequencer.sets.ready & ~lanes),
            sequencer.lane_read.eq(steps.o.payload.read),
            sequencer.halves.eq(steps.o.payload.halves),
            kernel.write.eq(buffer.kernel_write),
            kernel.read.eq(steps.o.payload.kernel),
            steps.written.eq(buffer.written),
            steps.written_kernel.eq(buffer.written_kernel),
            fetcher.freed.eq(steps.freed),
            fetcher.freed_kernel.eq(steps.freed_kernel),
            fetcher.release.eq(sequencer.release),
            loader.answered.eq(writer.answered),
            writer.begins.eq(loader.begins),
            loader.freed.eq(sequencer.freed),
            sequencer.written.eq(writer.written),
            buffer.read.eq(sequencer.set),
            array.valid.eq(sequencer.valid),
            array.step.eq(sequencer.step),
        ]
        half_units = params.conv.units // params.halves
        for number in range(params.conv.units):
            row = buffer.rows[number].as_value()
            half, in_half = divmod(number, half_units)
            # In lane-private mode a unit computes 16 elements of the row, if the row has that many.
            used = FOLDS * in_half < params.conv.row_bytes
            m.d.comb += array.rows[number].eq(Mux(lanes, kernel.rows[half], row) if used else row)
        # One write port serves both: weights are complete before lines of X are requested, and all lines have been used
        # before weights are requested.
        for write, weights, features in zip(array.writes, writer.writes, buffer.slave_writes, strict=True):
            m.d.comb += write.eq(Mux(runner.load.lanes, features, weights))

    def _write(self, m):
        runner, share, smem, array = self._runner, self._share, self.smem, self._array
        m.submodules.results = results = self._results = Results(self.params)
        connect(m, self._sequencer.tiles, results.tiles)
        connect(m, results.table, share.i2)
        connect(m, results.addend, share.i3)
        connect(m, share.o2, results.table_answer)
        connect(m, share.o3, results.addend_answer)
        connect(m, results.scatter, flipped(smem.scatter))
        m.d.sync += runner.written.eq(~runner.write_start & (runner.written | results.done))
        m.d.comb += [
            results.plan.eq(runner.write),
            results.start.eq(runner.write_start),
            array.read_plan.eq(runner.write),
            array.read.eq(results.read),
            results.acc.eq(array.sums),
            runner.readable.eq(smem.scatter_idle),
        ]
        if self.params.floats:
            biases_loaded = share.o2.valid & share.o2.payload.tag.last
            m.d.comb += [array.biases.eq(results.biases), self._sequencer.biases.eq(biases_loaded)]

    def _count(self, m):
        processor, sequencer, events = self.processor, self._sequencer, self.events
        conv, loader, features = self.params.conv, self._loader, self._share.o0
        tag, requested = loader.o.payload.tag, loader.o.valid & loader.o.ready
        # A word of all slaves is complete.
        word_stored = features.valid & features.payload.tag.slaves & features.payload.tag.complete
        rows = (tag.end - tag.begin)[: len(tag.end)] >> self._runner.load.granularity
        m.d.comb += [
            events.job.eq(processor.jobs.valid & processor.jobs.ready),
            events.step.eq(sequencer.valid),
            # A job has words of slaves or sets, and those of two jobs do not overlap.
            events.feature_rows.eq(Mux(word_stored, conv.slaves, Mux(sequencer.release, conv.units, 0))),
            # Counted with the request: when the answer comes the plan may be that of the next job.
            events.weight_rows.eq(Mux(requested, rows, 0)),
            events.results.eq(self._results.written),
            *(
                events[name].eq(getattr(sequencer, name))
                for name in ("stall_features", "stall_weights", "stall_results")
            ),
            events.bank_conflict.eq(self.smem.bank_conflict),
        ]


class Conv(wiring.Component):
    """The convolution engine behind AXI4-Lite, for designs that bring their own shared memory; connections only.

    The shared memory outside answers ``smem.reads`` in order, accepts up to eight chunks at once from ``smem.scatter``,
    performs the operations of ``smem.barriers``, and reports bank conflicts.

    Parameters
    ----------
    params : ConvUnitParams

    Attributes
    ----------
    regions : dict of str to Region
        The address map of ``s_axil``: ``conv``, the registers.
    """

    def __init__(self, params):
        self.params = params
        self.regions = address_map(conv=CONV_REGISTER_ADDR_WIDTH)
        super().__init__(
            {
                **ConvProcessorSignature().members,
                # Registers, at the offsets of ``spec.conv.registers``.
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
                # The shared memory outside.
                "smem": Out(SharedMemorySignature(params.smem)),
                # Interrupt, a level: a bit is set in both ``irq_status`` and ``irq_enable``.
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = ConvUnit(self.params)
        connect(m, unit.processor, flipped(bundle(self, ConvProcessorSignature())))
        connect(m, unit.smem, flipped(self.smem))
        m.d.comb += self.irq.eq(unit.irq)
        serve_registers(m, self.s_axil, self.regions, conv=unit.accesses)
        return m
