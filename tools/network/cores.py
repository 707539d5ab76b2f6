"""Measures networks on several cores: expected cycles, and with ``LONG=1`` in the environment those of the RTL.

Specification: docs/many_cores.md, "Speed".
"""

import os
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tilewright.network.architectures import ARCHITECTURES
from tilewright.network.compiled import compile as compile_network
from tilewright.network.evaluation import evaluate
from tilewright.network.machine import machine_of
from tilewright.network.models.efficientnet import build_quantised
from tilewright.network.plan.explanation import traffic
from tilewright.network.reader import read_model
from tilewright.network.rtl import open_cores, run_on
from tilewright.sim.bench.line import Line, share
from tilewright.verify.random.networks import draw_inputs

__all__ = ["measure", "traffic_line"]

_LATENCY = 100
_PRESETS = ("default",)
_LITE0, _BERT128, _BERT384 = "EfficientNet-Lite0", "BERT-base layer, 128 tokens", "BERT-base layer, 384 tokens"
#: Suppositions that some expected cycles are for, and the fields of a Machine that they change. A hit in a second-level
#: cache takes 7 cycles, and the cache passes a word a cycle, as the port does (docs/cluster.md, "L2").
_SUPPOSED = {"two ports": {"ports": 2}, "L2 hits": {"latency": 7}}
#: Bytes that layers with more weights than pixels load with multicasts, of those that they would load without.
_TRAFFIC = 0.5


class _Case(NamedTuple):
    """A network on some cores, which share its work or have ``separate`` inputs; how many times faster it should be."""

    name: str
    cores: int
    separate: bool = False
    target: float | None = None
    supposed: str | None = None


_CASES = (
    _Case("ResNet-50", 2, target=1.9), _Case("ResNet-50", 4, target=3.5), _Case("ResNet-50", 4, True, 3.9),
    _Case("ResNet-50", 8), _Case("ResNet-50", 16), *(_Case("ResNet-50", 4, supposed=each) for each in _SUPPOSED),
    _Case(_LITE0, 4, target=3.0), _Case(_LITE0, 4, True), *(_Case(_LITE0, 4, supposed=each) for each in _SUPPOSED),
    _Case(_BERT128, 4), *(_Case(_BERT128, 4, supposed=each) for each in _SUPPOSED),
    _Case(_BERT384, 4, target=3.5), *(_Case(_BERT384, 4, supposed=each) for each in _SUPPOSED),
)  # fmt: skip


def measure(preset, settings=(), *, simulator="verilator"):
    """Yields every ``Line`` of a preset with the simulation's cycles a second, or 0 without a simulation.

    The limit is the cycles of one core divided by the number of cores.
    """
    graph, name = None, None
    for case in _CASES if preset in _PRESETS else ():
        if case.name != name:
            name, graph = case.name, _graph(case.name)
            one = compile_network(graph, machine_of(preset, settings))
        machine = replace(machine_of(preset, settings), **_SUPPOSED.get(case.supposed, {}))
        compiled = compile_network(graph, machine, cores=case.cores, separate=case.separate)
        images = case.cores if case.separate else 1
        yield _line(preset, case, images * one.plan.cycles, compiled.plan.cycles, "expected", compiled), 0
        if case.cores == 4 and not (case.separate or case.supposed):
            yield traffic_line(preset, f"{case.name}, {case.cores} cores", compiled.plan), 0
        if os.environ.get("LONG") and not case.supposed:
            with open_cores(preset, case.cores, settings, simulator=simulator, latency=_LATENCY,
                            memory_bytes=len(compiled.image)) as session:  # fmt: skip
                cycles = _run(session, compiled)
                speed = session.simulation.cycles / max(session.simulation.seconds, 1e-9)
            yield _line(preset, case, images * one.plan.cycles, cycles, "RTL", compiled), speed


def traffic_line(preset, name, plan):
    """The ``Line`` of the bytes that layers with more weights than pixels load, of those without multicasts."""
    moved = traffic(plan)
    wide = [each for layer, each in zip(plan.layers, moved, strict=True) if _weights(layer) > _pixels(layer)]
    loaded, alone = (sum(each[column] for each in wide) for column in (0, 2))
    share_of_all = sum(each[0] for each in moved) / sum(each[2] for each in moved)
    ratio = loaded / max(alone, 1)
    return Line(preset, f"loads of layers with more weights: {name}", None, alone, loaded, f"{ratio:.1%}",
                f"<= {_TRAFFIC:.0%}", ratio <= _TRAFFIC,
                note=f"bytes without multicasts and with; of all {len(moved)} layers {share_of_all:.1%}")  # fmt: skip


def _weights(layer):
    return sum(part.weights.size for _, part in layer.stages if part.weights is not None)


def _pixels(layer):
    return sum(place.size for place in layer.brought)


def _graph(name):
    return read_model(build_quantised()) if name == _LITE0 else ARCHITECTURES[name]().graph()


def _line(preset, case, one, cycles, how, compiled):
    """The line of a case that takes ``cycles``, and ``one`` on one core."""
    supposed = f"{case.supposed}: " if case.supposed else ""
    what = f"{supposed}{case.name}, {case.cores} cores{', each its own' if case.separate else ''}: {how}"
    target = case.target and case.target / case.cores
    line = share(preset, what, _LATENCY, round(one / case.cores), cycles, target)
    loaded, _, alone = map(sum, zip(*traffic(compiled.plan), strict=True))
    words, alone = (moved // compiled.plan.machine.bus_bytes for moved in (loaded, alone))
    wanted = f", not {case.target}" if not line.met else ""
    note = f"{one / cycles:.2f} times one core{wanted}; reads {words:,} bus words, {alone:,} without multicast"
    return line.noted(note, compiled.plan.macs / compiled.plan.machine.peak / cycles)


def _run(session, compiled):
    """Cycles of a network on the RTL; its results must be those of the evaluation."""
    cores = range(compiled.plan.machine.cores if compiled.plan.machine.separate else 1)
    inputs = [draw_inputs(np.random.default_rng(core), compiled.graph) for core in cores]
    data, run = run_on(session, compiled, compiled.memory(inputs if compiled.plan.machine.separate else inputs[0]))
    for core in cores:
        expected = evaluate(compiled.graph, inputs[core])
        for name, value in compiled.tensors(data, core=core).items():
            if wrong := (value != expected[name]).sum():
                raise RuntimeError(f"{wrong} results of core {core} are wrong in {name}")
    return max(each.words[-1].cycle for each in run.cores) - min(each.words[0].cycle for each in run.cores)
