"""The convolution engine's data path: jobs go in, results are written."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.conv import CONV_REGISTERS, JOB

from ..bus.axi4_lite import AccessSignature, Axi4LiteSignature, address_map, map_addr_width, serve_registers
from ..bus.registers import EngineStateSignature
from ..lib.component import bundle, join
from ..lib.stream import SlowQueue
from ..smem.layouts import SharedMemorySignature
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

__all__ = ["CONV_REGISTER_ADDR_WIDTH", "Conv", "ConvDatapath", "ConvUnit", "gather_tags"]


def gather_tags(params):
    """What comes back with a gathered piece to each of those who ask: features, weights, table, second operand."""
    return FeatureTagLayout(params), weight_tag(params), TableTagLayout(params), AddendTagLayout(params)


class ConvDatapath(wiring.Component):
    """Connections only: what each block does is in docs/inside_conv.md.

    Members
    -------
    stopped : In(1) if cores > 1
        The core, of so many in a cluster, is stopped: jobs that have not begun are refused.
    processor : Out(ConvProcessorSignature())
    smem : Out(SharedMemorySignature(params.smem))
    events : Out(ConvEventsLayout(params))
    waiting : Out(8)
        Jobs in the queue.
    idle : Out(1)
        No job is under way, or waits.
    """

    def __init__(self, params, cores=1):
        self._params, self._cores = params, cores
        super().__init__(
            {
                **({"stopped": In(1)} if cores > 1 else {}),
                "processor": Out(ConvProcessorSignature()),
                "smem": Out(SharedMemorySignature(params.smem)),
                "events": Out(ConvEventsLayout(params)),
                "waiting": Out(unsigned(8)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._jobs(m)
        self._gather(m)
        self._multiply(m)
        self._write(m)
        self._count(m)
        return m

    def _jobs(self, m):
        params, processor, smem = self._params, self.processor, self.smem
        m.submodules.queue = queue = self._queue = SlowQueue(unsigned(JOB.bits), params.conv.queue_depth)
        m.submodules.checker = checker = JobChecker(params, self._cores)
        m.submodules.setup = setup = JobSetup(params)
        m.submodules.runner = runner = self._runner = JobRunner(params)
        connect(m, jobs=flipped(processor.jobs), queue=queue.i)
        # Checked and set up at once: both take a job in the cycle after the runner has taken what they make of it.
        connect(m, queue=queue.o, checker=checker.i)
        m.d.comb += [setup.i.valid.eq(queue.o.valid), setup.i.payload.eq(queue.o.payload)]
        connect(m, checker=checker.o, runner=runner.checked)
        connect(m, setup=setup.o, runner=runner.plans)
        join(m, runner=runner.barriers, smem=flipped(smem.barriers))
        join(m, smem=flipped(smem.barrier_results), runner=runner.barrier_results)
        if self._cores > 1:
            m.d.comb += checker.stopped.eq(self.stopped)
        under_way = Signal(8)  # accepted, and not ended
        m.d.sync += under_way.eq(under_way + (processor.jobs.valid & processor.jobs.ready) - runner.ended)
        m.d.comb += [
            processor.job_ended.eq(runner.ended),
            processor.job_end.eq(runner.end),
            self.waiting.eq(queue.level),
            self.idle.eq(under_way == 0),
        ]

    def _gather(self, m):
        params, tags = self._params, gather_tags(self._params)
        m.submodules.gather_share = share = self._share = GatherShare(params, tags)
        m.submodules.gatherer = gatherer = Gatherer(params, shared_tag(tags))
        connect(m, share=share.merged, gatherer=gatherer.i)
        connect(m, gatherer=gatherer.o, share=share.gathered)
        join(m, gatherer=gatherer.reads, smem=flipped(self.smem.reads))
        join(m, smem=flipped(self.smem.read_data), gatherer=gatherer.read_data)

    def _multiply(self, m):
        params, runner, share = self._params, self._runner, self._share
        lanes = runner.compute.lanes
        m.submodules.fetcher = fetcher = FeatureFetcher(params)
        m.submodules.buffer = buffer = self._buffer = FeatureBuffer(params)
        m.submodules.kernel = kernel = KernelRows(params)
        m.submodules.lane_steps = steps = LaneSteps(params)
        m.submodules.loader = loader = self._loader = WeightLoader(params)
        m.submodules.writer = writer = WeightWriter(params)
        m.submodules.array = array = self._array = ConvArray(params)
        m.submodules.sequencer = sequencer = self._sequencer = Sequencer(params, array.latency, array.LOOP)
        connect(m, fetcher=fetcher.requests, share=share.i0)
        connect(m, share=share.o0, buffer=buffer.i)
        connect(m, loader=loader.o, share=share.i1)
        connect(m, share=share.o1, writer=writer.i)
        connect(m, sequencer=sequencer.tile, loader=loader.tile)
        m.d.comb += [
            loader.plan.eq(runner.load),
            loader.start.eq(runner.load_start),
            runner.loading.eq(loader.busy),
            runner.came.eq(loader.came),
            fetcher.plan.eq(runner.fetch),
            fetcher.start.eq(runner.fetch_start),
            runner.fetching.eq(fetcher.busy),
            *(block.plan.eq(runner.compute) for block in (kernel, steps, sequencer, array)),
            sequencer.start.eq(runner.compute_start),
            steps.start.eq(runner.compute_start & lanes),
            sequencer.alike.eq(runner.alike),
            runner.computing.eq(sequencer.busy),
            # Either brings what the sequencer takes.
            sequencer.sets.valid.eq(Mux(lanes, steps.o.valid, buffer.sets.valid)),
            sequencer.sets.payload.eq(Mux(lanes, steps.o.p.flags, buffer.sets.payload)),
            steps.o.ready.eq(sequencer.sets.ready & lanes),
            buffer.sets.ready.eq(sequencer.sets.ready & ~lanes),
            sequencer.lane_read.eq(steps.o.p.read),
            sequencer.halves.eq(steps.o.p.halves),
            kernel.write.eq(buffer.kernel_write),
            kernel.read.eq(steps.o.p.kernel),
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
        each = params.conv.units // params.halves
        for number in range(params.conv.units):
            row = buffer.rows[number].as_value()
            half, in_half = divmod(number, each)
            # In lane-private mode a unit has 16 lanes, if the row has so many.
            mine = FOLDS * in_half < params.conv.row_bytes
            m.d.comb += array.rows[number].eq(Mux(lanes, kernel.rows[half], row) if mine else row)
        # Weights are all there before lines of X are asked for, and those are used before weights are.
        for ours, weights, features in zip(array.writes, writer.writes, buffer.slave_writes, strict=True):
            m.d.comb += ours.eq(Mux(runner.load.lanes, features, weights))

    def _write(self, m):
        runner, share, smem, array = self._runner, self._share, self.smem, self._array
        m.submodules.results = results = self._results = Results(self._params)
        connect(m, sequencer=self._sequencer.tiles, results=results.tiles)
        connect(m, results=results.table, share=share.i2)
        connect(m, results=results.addend, share=share.i3)
        join(m, results=results.scatter, smem=flipped(smem.scatter))
        for name, answer in (("table", share.o2), ("addend", share.o3)):
            m.d.comb += [
                getattr(results, f"{name}_answer").eq(answer.payload),
                getattr(results, f"{name}_stb").eq(answer.valid),
            ]
        written = Signal()  # all results of the job under way
        m.d.sync += written.eq(~runner.write_start & (written | results.done))
        m.d.comb += [
            results.plan.eq(runner.write),
            results.start.eq(runner.write_start),
            array.read_plan.eq(runner.write),
            array.read.eq(results.read),
            results.acc.eq(array.sums),
            runner.written.eq(written),
            runner.readable.eq(smem.scatter_idle),
        ]
        if self._params.floats:
            biases_came = results.table_stb & results.table_answer.tag.last
            m.d.comb += [array.biases.eq(results.biases), self._sequencer.biases.eq(biases_came)]

    def _count(self, m):
        processor, sequencer, events = self.processor, self._sequencer, self.events
        conv, loader = self._params.conv, self._loader
        tag, asked = loader.o.payload.tag, loader.o.valid & loader.o.ready
        features, came = self._share.o0, Signal()  # a word of all slaves
        m.d.comb += came.eq(features.valid & features.payload.tag.slaves & features.payload.tag.complete)
        m.d.comb += [
            events.job.eq(processor.jobs.valid & processor.jobs.ready),
            events.step.eq(sequencer.valid),
            # Only one of both comes in a job, and none of the next one.
            events.feature_rows.eq(Mux(came, conv.slaves, Mux(sequencer.release, conv.units, 0))),
            # Counted when they are asked for: the plan may be that of the next job when they come.
            events.weight_rows.eq(
                Mux(asked, (tag.end - tag.begin)[: len(tag.end)] >> self._runner.load.granularity, 0)
            ),
            events.results.eq(self._results.written),
            events.stall_features.eq(sequencer.stall_features),
            events.stall_weights.eq(sequencer.stall_weights),
            events.stall_results.eq(sequencer.stall_results),
            events.bank_conflict.eq(self.smem.bank_conflict),
        ]


class ConvUnit(wiring.Component):
    """Data path and registers; connections only.

    Members
    -------
    stopped : In(1) if cores > 1
        The core, of so many in a cluster, is stopped. Jobs are still taken, and are refused.
    processor : Out(ConvProcessorSignature())
    smem : Out(SharedMemorySignature(params.smem))
    accesses : In(AccessSignature)
        Registers, at the offsets of ``spec.conv``.
    irq : Out(1)
        Level.
    state : Out(EngineStateSignature())
    """

    def __init__(self, params, cores=1):
        self.params, self._cores = params, cores
        super().__init__(
            {
                **({"stopped": In(1)} if cores > 1 else {}),
                "processor": Out(ConvProcessorSignature()),
                "smem": Out(SharedMemorySignature(params.smem)),
                "accesses": In(AccessSignature()),
                "irq": Out(1),
                "state": Out(EngineStateSignature()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = ConvDatapath(self.params, self._cores)
        m.submodules.control = control = ConvControl(self.params)
        if self._cores > 1:
            m.d.comb += core.stopped.eq(self.stopped)
        join(m, core=core.processor, processor=flipped(self.processor))
        join(m, core=core.smem, smem=flipped(self.smem))
        join(m, accesses=flipped(self.accesses), control=control.accesses)
        join(m, control=control.state, state=flipped(self.state))
        m.d.comb += [
            control.ended.eq(core.processor.job_ended),
            control.end.eq(core.processor.job_end),
            control.events.eq(core.events),
            control.waiting.eq(core.waiting),
            control.idle.eq(core.idle),
            self.irq.eq(control.irq),
        ]
        return m


#: Bits of the byte addresses of the registers.
CONV_REGISTER_ADDR_WIDTH = max(register.offset for register in CONV_REGISTERS).bit_length()


class Conv(wiring.Component):
    """Data path and registers behind AXI4-Lite; connections only.

    The shared memory outside answers ``reads`` in order, takes up to eight chunks at once from ``scatter``, performs
    the operations of ``barriers``, and reports how often its banks conflicted.

    Members
    -------
    s_axil : In(Axi4LiteSignature(CONV_REGISTER_ADDR_WIDTH))
        Registers, at the offsets of ``spec.conv``.
    smem : Out(SharedMemorySignature(params.smem))
        The shared memory outside.
    irq : Out(1)
        Interrupt, a level: a bit is set in both ``irq_status`` and ``irq_enable``.
    **ConvProcessorSignature().members

    Attributes
    ----------
    regions : dict of str to Region
        What lies where on ``s_axil``: ``conv``, the registers.
    """

    def __init__(self, params):
        self.params = params
        self.regions = address_map(conv=CONV_REGISTER_ADDR_WIDTH)
        super().__init__(
            {
                **ConvProcessorSignature().members,
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
                "smem": Out(SharedMemorySignature(params.smem)),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = ConvUnit(self.params)
        join(m, unit=unit.processor, processor=flipped(bundle(self, ConvProcessorSignature())))
        join(m, unit=unit.smem, smem=flipped(self.smem))
        m.d.comb += self.irq.eq(unit.irq)
        serve_registers(m, self.s_axil, self.regions, conv=unit.accesses)
        return m
