"""Measures layers of ResNet-50, and EfficientNet-Lite0 whole, as compiled programs, in exact cycles.

All from global memory to global memory. Of other networks it prints the cycles that their plans expect; with ``LONG=1``
in the environment they run too.

Specification: docs/network.md, "The plan".
"""

import os
from math import ceil

from tilewright.network.architectures import ARCHITECTURES
from tilewright.network.compiled import compile as compile_network
from tilewright.network.drawn import NetworkMaker
from tilewright.network.evaluation import evaluate
from tilewright.network.machine import machine_of_core
from tilewright.network.models.efficientnet import build_quantised
from tilewright.network.models.photographs import load_photograph, prepare
from tilewright.network.reader import read_model
from tilewright.network.rtl import run_on
from tilewright.sim.bench.conv_layers import NETWORKS
from tilewright.sim.bench.line import share, timed
from tilewright.sim.session.core import open_accelerator

__all__ = ["TARGETS", "compiled_sample", "cycles_of", "measure", "run_compared", "sample_of"]

_NETWORK = "ResNet-50"
_LATENCY = 100
#: The maximum number of cycles of a sample's multiplications; larger layers are measured with fewer rows of X.
_MOST_CYCLES = 120_000
#: Of all multiplications of the network.
_TARGET = 0.90
#: A whole network takes at most 1.5 times the cycles of its multiplications.
_WHOLE_PRESETS, _WHOLE_TARGET = ("default",), 1 / 1.5
#: The targets of networks with random weights: all cycles divided by the cycles of their multiplications.
TARGETS = {
    "EfficientNet-B0": 1.8, "MobileNetV3-large": 2.0, "MobileNetV3-small": None,
    "MobileNetV3-small without excitation": 2.5, "ResNet-50": 1.1, "YOLOv5n, 320": 1.3,
    "BERT-base layer, 128 tokens": 1.25, "BERT-base layer, 384 tokens": 1.35, "ViT-B layer, 197 tokens": 1.25,
    "DeiT-S layer, 197 tokens": 1.5, "MobileViT-xxs": 2.0, "ConvNeXt-atto": 2.0,
}  # fmt: skip


def measure(preset, settings=(), *, simulator="verilator"):
    """Yields every ``Line`` of a preset with the simulation's cycles a second so far."""
    with open_accelerator(preset, settings, simulator=simulator, latency=_LATENCY) as session:
        yield from timed(session, _lines(session, preset))


def sample_of(layer, peak):
    """A layer of fewer rows, as many as the ``peak``, in MACs a cycle, does in time."""
    macs_a_row = layer.out_size * layer.kernel**2 * layer.channels * layer.out_channels
    return min(layer.out_size, max(1, _MOST_CYCLES * peak // macs_a_row))


def _lines(session, preset):
    if preset in _WHOLE_PRESETS:
        yield _whole(session, preset)
        for name, target in TARGETS.items():
            yield from _expected(session, preset, name, target)
    cycles_of_all = macs_of_all = 0
    for layer, count in NETWORKS[_NETWORK].items():
        rows = sample_of(layer, session.params.conv.conv.peak)
        compiled, cycles = _run(session, layer, rows)
        macs, machine = sum(part.macs for part in compiled.plan.layers), compiled.plan.machine
        moved = {way: sum(span.words for span in compiled.plan.spans if span.engine == way)
                 for way in ("load", "store")}  # fmt: skip
        limits = {"macs": ceil(macs / machine.conv.peak)} | moved
        bound = max(limits, key=limits.get)
        cut = f", {rows} of {layer.out_size} lines" if rows < layer.out_size else ""
        line = share(preset, f"{_NETWORK}, {count}: {layer.name}{cut}", _LATENCY, limits[bound], cycles, None)
        yield line.noted(bound, macs / machine.conv.peak / cycles)
        whole = count * layer.out_size / rows
        cycles_of_all += cycles * whole
        macs_of_all += macs * whole
    peak = session.params.conv.conv.peak
    yield share(preset, f"{_NETWORK} in sum: MACs of the peak", _LATENCY, round(macs_of_all / peak),
                round(cycles_of_all), _TARGET)  # fmt: skip


def _whole(session, preset):
    """EfficientNet-Lite0 on a photograph, with only its answer kept."""
    graph = read_model(build_quantised())
    (name,) = graph.inputs
    compiled = compile_network(graph, machine_of_core(session.params))
    run = run_compared(session, compiled, {name: prepare(load_photograph("coffee"))}, "EfficientNet-Lite0")
    macs = sum(layer.macs for layer in compiled.plan.layers)
    limit = ceil(macs / compiled.plan.machine.peak)
    return share(preset, "EfficientNet-Lite0, whole", _LATENCY, limit, cycles_of(run), _WHOLE_TARGET)


def _expected(session, preset, name, target):
    """A network with random weights: the expected cycles, and with ``LONG=1`` those of the simulation."""
    maker = ARCHITECTURES[name]()
    compiled = compile_network(maker.graph(), machine_of_core(session.params))
    limit = ceil(compiled.plan.macs / compiled.plan.machine.peak)
    target = target and 1 / target
    yield share(preset, f"{name}: expected", _LATENCY, limit, compiled.plan.cycles, target)
    if os.environ.get("LONG"):
        run = run_compared(session, compiled, maker.draw(), name)
        yield share(preset, name, _LATENCY, limit, cycles_of(run), target)


def compiled_sample(layer, rows, machine):
    """``rows`` output rows of a layer with random weights as a program for a machine, and an input."""
    maker = NetworkMaker(layer.size + layer.channels)
    seen = min(layer.size, (rows - 1) * layer.stride + layer.kernel - layer.padding[0])
    before, behind = layer.padding
    x = maker.input((1, layer.channels, seen, layer.size))
    pad = (before, before, behind if rows == layer.out_size else 0, behind)
    maker.conv(x, layer.out_channels, layer.kernel, stride=layer.stride, pad=pad)
    return compile_network(maker.graph(), machine), maker.draw()


def _run(session, layer, rows):
    """A layer as a program, and its cycles."""
    compiled, inputs = compiled_sample(layer, rows, machine_of_core(session.params))
    return compiled, cycles_of(run_compared(session, compiled, inputs, layer.name))


def run_compared(session, compiled, inputs, what):
    """The ``Run`` of a program; its results must be those of the evaluation."""
    data, run = run_on(session, compiled, compiled.memory(inputs))
    expected = evaluate(compiled.graph, inputs)
    for name, value in compiled.tensors(data).items():
        if wrong := (value != expected[name]).sum():
            raise RuntimeError(f"{wrong} results of {what} are wrong")
    return run


def cycles_of(run):
    """Cycles of a program from its first word to its end."""
    return run.words[-1].cycle - run.words[0].cycle
