"""Measures networks on several cores: expected cycles, and with ``LONG=1`` in the environment those of the RTL.

Specification: docs/many_cores.md, "Speed".
"""

import os
from typing import NamedTuple

import numpy as np

from tilewright.network.architectures import ARCHITECTURES
from tilewright.network.compiled import compile as compile_network
from tilewright.network.evaluation import evaluate
from tilewright.network.machine import machine_of
from tilewright.network.models.efficientnet import build_quantised
from tilewright.network.reader import read_model
from tilewright.network.rtl import open_cores, run_on
from tilewright.sim.bench.line import share
from tilewright.verify.random.networks import draw_inputs

__all__ = ["measure"]

_LATENCY = 100
_PRESETS = ("default",)
_LITE0 = "EfficientNet-Lite0"


class _Case(NamedTuple):
    """A network on some cores, which share its work or have ``separate`` inputs; how many times faster it should be."""

    name: str
    cores: int
    separate: bool = False
    target: float | None = None


_CASES = (
    _Case("ResNet-50", 2, target=1.9), _Case("ResNet-50", 4, target=3.5), _Case("ResNet-50", 4, True, 3.9),
    _Case("ResNet-50", 8), _Case("ResNet-50", 16), _Case(_LITE0, 4, target=3.0), _Case(_LITE0, 4, True),
    _Case("BERT-base layer, 128 tokens", 4), _Case("BERT-base layer, 384 tokens", 4, target=3.5),
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
        compiled = compile_network(graph, machine_of(preset, settings), cores=case.cores, separate=case.separate)
        images = case.cores if case.separate else 1
        yield _line(preset, case, images * one.plan.cycles, compiled.plan.cycles, "expected", compiled), 0
        if os.environ.get("LONG"):
            with open_cores(preset, case.cores, settings, simulator=simulator, latency=_LATENCY,
                            memory_bytes=len(compiled.image)) as session:  # fmt: skip
                cycles = _run(session, compiled)
                speed = session.simulation.cycles / max(session.simulation.seconds, 1e-9)
            yield _line(preset, case, images * one.plan.cycles, cycles, "RTL", compiled), speed


def _graph(name):
    return read_model(build_quantised()) if name == _LITE0 else ARCHITECTURES[name]().graph()


def _line(preset, case, one, cycles, how, compiled):
    """The line of a case that takes ``cycles``, and ``one`` on one core."""
    what = f"{case.name}, {case.cores} cores{', each its own' if case.separate else ''}: {how}"
    target = case.target and case.target / case.cores
    line = share(preset, what, _LATENCY, round(one / case.cores), cycles, target)
    loads = [span for span in compiled.plan.spans if span.engine == "load"]
    words, alone = sum(span.words for span in loads), sum(span.words * span.receivers for span in loads)
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
