"""The convolutions of the benchmark: layers of networks, whole or as samples that fit shared memory, and their jobs."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from tilewright.golden import (
    Conv,
    ConvLayer,
    ConvPlan,
    ConvShape,
    PostProcessing,
    convolution_plans,
    job_word,
    plan_convolution,
    request_cycles,
)
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import CoreParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CHANNELS_AT_ONCE

from ..hdl.settings import changed
from ..session import Session
from .conv_layers import NETWORKS, NetworkLayer
from .line import share, timed

__all__ = ["MOST_CYCLES", "LayerCase", "Runner", "first_job", "golden_result", "layer_line", "measure", "sample_of"]

#: Cycles that a sample takes at the limit, at most.
MOST_CYCLES = 60_000
#: Gaps between pixels of X that are considered, in bytes.
_GAPS = range(0, 128, 16)
#: Bytes of shared memory that are reserved for the first job, and for alignment of tensors to lines.
_RESERVED = 4096


@dataclass(frozen=True)
class LayerCase:
    """The first output lines and channels of a layer, divided into blocks like the whole layer.

    Attributes
    ----------
    layer : NetworkLayer
    params : ConvParams
    lines, channels : int
        Output lines and output channels.
    """

    layer: NetworkLayer
    params: object
    lines: int
    channels: int

    @property
    def name(self):
        """The name of the layer, with the lines and channels that run if these are fewer."""
        layer = self.layer
        lines = [f"{self.lines} of {layer.out_size} lines"] if self.lines < layer.out_size else []
        channels = [f"{self.channels} channels"] if self.channels < layer.out_channels else []
        return ", ".join([layer.name, *lines, *channels])

    @property
    def whole(self):
        """The :class:`ConvPlan` of the whole layer."""
        return _whole(self.layer, self.params)[0]

    @property
    def gap(self):
        """Bytes after each pixel of X."""
        return _whole(self.layer, self.params)[1]

    @cached_property
    def plan(self):
        """The :class:`ConvPlan` of the sample."""
        return ConvPlan(_shape(self.layer, self.lines, self.channels), self.params, **self._cut)

    @property
    def _cut(self):
        return {name: getattr(self.whole, name) for name in ("block_bytes", "merge", "raster")}

    def job(self):
        """A :class:`ConvLayer` with random contents: u8, s8 and u8 results, a scale for each channel."""
        layer, generator = self.layer, np.random.default_rng(self.layer.size + self.layer.channels)
        rows, columns, padding = _window(layer, self.lines)
        inner = self.channels if layer.depthwise else layer.channels
        x = generator.integers(0, 256, (1, rows, columns, inner), np.uint8)
        square = layer.kernel, layer.kernel
        k = generator.integers(-128, 128, (self.channels, *square, *(() if layer.depthwise else (inner,))), np.int8)
        # The scale spreads the sums over the range of results.
        spread = 73 * 73 * np.sqrt(k[0].size)
        post = PostProcessing(
            output="u8", bias=generator.integers(-5000, 5000, self.channels), zero=128,
            scale=(generator.uniform(30, 60, self.channels) / spread).astype(np.float32),
        )  # fmt: skip
        return ConvLayer(
            x, k, "u8s8", stride=(layer.stride, layer.stride), padding=padding, zeros=(128, 0), post=post,
            operation="depthwise" if layer.depthwise else "convolution", params=self.params, plan=self._cut,
            gap=self.gap,
        )  # fmt: skip


def sample_of(layer, params, memory_bytes, most=MOST_CYCLES):
    """The largest case of a layer that fits ``most`` cycles at its limit, and ``memory_bytes`` of shared memory.

    It has at least two passes if the layer has them, so that weights change, and then as many lines as possible.
    """
    unit = CHANNELS_AT_ONCE * params.slaves
    # In a depthwise layer, fewer channels would give smaller pixels.
    fewer = () if layer.depthwise else range(unit, layer.out_channels, unit)
    cases = []
    for count in {layer.out_channels, *fewer}:

        def over(lines, count=count):
            case = LayerCase(layer, params, lines, count)
            plan = case.plan
            return _bytes(plan.shape, case.gap) > memory_bytes - _RESERVED or plan.limit > most

        lines = bisect_left(range(1, layer.out_size + 1), True, key=over)
        if lines:
            cases.append(LayerCase(layer, params, lines, count))
    if not cases:
        return LayerCase(layer, params, 1, min([layer.out_channels, *fewer]))
    passes = min(2, max(case.plan.channel_tiles for case in cases))
    return max(cases, key=lambda case: (min(case.plan.channel_tiles, passes), case.lines, case.channels))


def first_job(params, memory_bytes):
    """A job that runs while the next one is checked and set up; it writes the last byte of shared memory."""
    return job_word(
        operation="max_pool", type="u8u8", output="element", x=0, y=memory_bytes - 1, channels=1, width=32, height=32,
        out_channels=1, out_width=1, out_height=1, kernel=(32, 32), x_pitch=(1, 32, 1024), y_pitch=(1, 1, 1),
        granularity=(params.row_bytes // 16).bit_length() - 1,
    )  # fmt: skip


def golden_result(job, params, smem):
    """The results of a job from the golden model, with this memory."""
    engine = Conv(smem.copy(), params)
    if not engine.execute(job.word):
        raise RuntimeError(f"the golden model refuses the job: {engine.errors[0]}")
    return job.result(engine.smem)


def _window(layer, lines):
    """Rows and columns of X that ``lines`` output lines need, and their padding."""
    first = layer.padding[0]
    seen = (lines - 1) * layer.stride + layer.kernel - first
    rows = min(seen, layer.size)
    return rows, layer.size, (first, seen - rows, *layer.padding)


def _shape(layer, lines, channels):
    rows, columns, padding = _window(layer, lines)
    operation = "depthwise" if layer.depthwise else "convolution"
    inner = channels if layer.depthwise else layer.channels
    return ConvShape.of((1, rows, columns, inner), channels, (layer.kernel,) * 2, (layer.stride,) * 2, padding,
                        operation=operation, table=True)  # fmt: skip


@cache
def _whole(layer, params):
    """The plan of a layer, and the gap behind its pixels.

    In a depthwise layer, pieces of many points are read together, which should be in different banks, and each block of
    a point, or of two points where possible, is a write.
    """
    shape = _shape(layer, layer.out_size, layer.out_channels)

    def fetched(plan, gap):
        return plan.fetch_cycles * request_cycles(plan, layer.channels + gap)

    if not layer.depthwise:
        plan = plan_convolution(shape, params, "fetch")
        return plan, 0 if plan.merge > 1 else min(_GAPS, key=lambda gap: (fetched(plan, gap), gap))

    def cycles(plan, gap):
        return max(plan.mac_cycles, fetched(plan, gap), plan.write_cycles, plan.limit)

    choices = [(plan, gap) for gap in _GAPS for plan in convolution_plans(shape, params)]
    return min(choices, key=lambda one: (cycles(*one), one[1], -one[0].block_bytes))


def _bytes(shape, gap):
    """Bytes of shared memory that the tensors take, including bytes that are not read."""
    x = shape.height * shape.width * (shape.channels + gap)
    k = shape.taps * shape.out_channels * (1 if shape.operation.lanes else shape.channels)
    return x + k + 8 * shape.out_channels + shape.bytes_written


#: Shared memory of the benchmark's engines, which must hold the weights of large layers.
_SMEM_BYTES = 1 << 20
#: Counters of the cycles in which the array waits.
_CAUSES = ("stall_features", "stall_weights", "stall_results", "bank_conflicts")
#: Layers with at least this many cycles have a target.
_LARGE = 10_000
_TARGET, _DEPTHWISE_TARGET, _SUM_TARGET = 0.97, 0.90, 0.96
_SUMMED = "ResNet-50"
#: Target share of the peak for first layers of networks, by kernel, stride, channels.
_FIRST = {(7, 2, 3): 0.86, (3, 2, 3): 0.73}


def measure(preset, settings=(), *, simulator="verilator"):
    """Yields every ``Line`` of a preset with the simulation's cycles a second so far."""
    # Layers have integers; without floats the simulation is faster.
    params = changed(CONV_UNIT_PRESETS[preset].without_floats(), settings).replace(smem=SmemParams(_SMEM_BYTES))
    with Session(params=CoreParams(conv=params), simulator=simulator) as session:
        yield from timed(session, _lines(session, preset))


def _lines(session, preset):
    runner = Runner(session)
    sums = []
    for network, layers in NETWORKS.items():
        for layer, count in layers.items():
            case = sample_of(layer, session.params.conv.conv, _SMEM_BYTES)
            cycles, causes = runner.run(case)
            yield layer_line(preset, network, case, count, cycles, causes)
            target = _FIRST.get((layer.kernel, layer.stride, layer.channels))
            if target:
                # Layers that cannot reach the target, because the engine gives too few results a cycle, have none.
                yield _of_peak(preset, network, case, cycles, target if case.plan.utilisation >= target else None)
            if network == _SUMMED:
                sums.append((case.whole, count, cycles / case.plan.limit))
    yield _sum(preset, sums)


class Runner:
    """Runs cases, each after a job during which it is checked and set up, as in a sequence of layers."""

    def __init__(self, session):
        self._session = session
        self._first = first_job(session.params.conv.conv, _SMEM_BYTES)
        _, self._counters = self._run([self._first], None)

    def run(self, case):
        """Cycles from the end of the first job to the end of the case, and counters; results must equal golden's."""
        job = case.job()
        expected = golden_result(job, case.params, job.smem)
        run, counters = self._run([self._first, job.word], job.smem)
        smem = self._session.shared_memory.read(0, len(job.smem))
        wrong = (job.result(smem) != expected).sum()
        if wrong or run.jobs[1].code:
            raise RuntimeError(f"{wrong} results of {case.name} are wrong, and its job ended with {run.jobs[1]}")
        causes = {name: counters[name] - self._counters[name] for name in _CAUSES}
        return run.jobs[1].cycle - run.jobs[0].cycle, causes

    def _run(self, jobs, smem):
        self._session.reset()
        return self._session.run(jobs=jobs, preload=smem), self._session.registers()


def layer_line(preset, network, case, count, cycles, causes):
    """The line of a layer: its cycles and its limit."""
    plan = case.plan
    target = _DEPTHWISE_TARGET if case.layer.depthwise else _TARGET
    line = share(
        preset, f"{network}, {count}: {case.name}", None, plan.limit, cycles,
        target if case.whole.limit >= _LARGE else None, **causes,
    )  # fmt: skip
    use = plan.shape.macs / (plan.peak * cycles)
    return line.noted(f"{plan.bound}, {cycles - plan.limit} over", use)


def _of_peak(preset, network, case, cycles, target):
    """The line of a first layer: its share of the peak of the array."""
    plan = case.plan
    ideal = -(-plan.shape.macs // plan.peak)
    return share(preset, f"{network}: {case.name}: MACs of the peak", None, ideal, cycles, target)


def _sum(preset, layers):
    """The line of a network: its share of the peak, if each layer exceeds its limit as much as its sample."""
    peak, macs = layers[0][0].peak, sum(plan.shape.macs * count for plan, count, _ in layers)
    cycles = round(sum(plan.limit * count * over for plan, count, over in layers))
    limit = sum(plan.limit * count for plan, count, _ in layers)
    line = share(preset, f"{_SUMMED} in sum: MACs of the peak", None, -(-macs // peak), cycles, _SUM_TARGET)
    return replace(line, note=f"{limit / cycles:.1%} of the limit of {limit}")
