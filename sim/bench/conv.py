"""Measures the convolution engine on the layers of networks, with resident operands, in exact cycles.

Specification: docs/conv.md, "Order of work".
"""

from dataclasses import replace

from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.smem.params import SmemParams

from ..session import ConvSession
from ..settings import changed
from .conv_cases import first_job, golden_result, sample_of
from .conv_layers import NETWORKS
from .line import share, timed

__all__ = ["Runner", "layer_line", "measure"]

#: Shared memory of the benchmark's engines: weights of large layers have to lie there.
_SMEM_BYTES = 1 << 20
#: What the array waits for.
_CAUSES = ("stall_features", "stall_weights", "stall_results", "bank_conflicts")
#: Layers of so many cycles have a target.
_LARGE = 10_000
_TARGET, _DEPTHWISE_TARGET, _SUM_TARGET = 0.97, 0.90, 0.96
_SUMMED = "ResNet-50"
#: First layers of networks, and the share of the peak that they are to reach: kernel, stride, channels.
_FIRST = {(7, 2, 3): 0.86, (3, 2, 3): 0.73}


def measure(preset, settings=(), *, simulator="verilator"):
    """Yields every ``Line`` of a preset with the simulation's cycles a second so far."""
    # Layers are of integers, for which floats would only be simulated too.
    params = changed(CONV_UNIT_PRESETS[preset].without_floats(), settings).replace(smem=SmemParams(_SMEM_BYTES))
    with ConvSession(params=params, simulator=simulator) as session:
        yield from timed(session, _lines(session, preset))


def _lines(session, preset):
    runner = Runner(session)
    sums = []
    for network, layers in NETWORKS.items():
        for layer, count in layers.items():
            case = sample_of(layer, session.params.conv, _SMEM_BYTES)
            cycles, causes = runner.run(case)
            yield layer_line(preset, network, case, count, cycles, causes)
            target = _FIRST.get((layer.kernel, layer.stride, layer.channels))
            if target:
                # Where results are so few that the layer cannot have it, there is none.
                yield _of_peak(preset, network, case, cycles, target if case.plan.utilisation >= target else None)
            if network == _SUMMED:
                sums.append((case.whole, count, cycles / case.plan.limit))
    yield _sum(preset, sums)


class Runner:
    """Runs cases, each behind a job that hides its check and setup as any job before it does."""

    def __init__(self, session):
        self._session = session
        self._first = first_job(session.params.conv, _SMEM_BYTES)
        _, self._counters = self._run([self._first], None)

    def run(self, case):
        """Cycles from the end of the first job to that of the case, and counters; results must be golden's."""
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
        return self._session.run(jobs, shared=smem), self._session.registers()


def layer_line(preset, network, case, count, cycles, causes):
    """A layer beside its limit."""
    plan = case.plan
    target = _DEPTHWISE_TARGET if case.layer.depthwise else _TARGET
    line = share(
        preset, f"{network}, {count}: {case.name}", None, plan.limit, cycles,
        target if case.whole.limit >= _LARGE else None, **causes,
    )  # fmt: skip
    use = plan.shape.macs / (plan.peak * cycles)
    return line.noted(f"{plan.bound}, {cycles - plan.limit} over", use)


def _of_peak(preset, network, case, cycles, target):
    """A first layer beside the peak of the array."""
    plan = case.plan
    ideal = -(-plan.shape.macs // plan.peak)
    return share(preset, f"{network}: {case.name}: MACs of the peak", None, ideal, cycles, target)


def _sum(preset, layers):
    """All layers of a network beside the peak: each takes as much more than its limit as its sample did."""
    peak, macs = layers[0][0].peak, sum(plan.shape.macs * count for plan, count, _ in layers)
    cycles = round(sum(plan.limit * count * over for plan, count, over in layers))
    limit = sum(plan.limit * count for plan, count, _ in layers)
    line = share(preset, f"{_SUMMED} in sum: MACs of the peak", None, -(-macs // peak), cycles, _SUM_TARGET)
    return replace(line, note=f"{limit / cycles:.1%} of the limit of {limit}")
