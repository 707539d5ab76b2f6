"""Workloads of an exploration by name, the hardware that each needs, and what a run of it gives."""

from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from math import ceil
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tilewright.errors import UsageError
from tilewright.hw.core.params import ENGINES, core_params
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.network.architectures import ARCHITECTURES
from tilewright.network.compiled import compile as compile_network
from tilewright.network.machine import machine_of_core
from tilewright.network.reader.model import load, read_model
from tilewright.sim.bench.conv_layers import NETWORKS
from tilewright.sim.bench.pe import products, run_product
from tilewright.sim.bench.tmau import fill_memory, run_steady
from tilewright.sim.bench.tmau_cases import steady_cases
from tilewright.sim.hdl.settings import changed
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import judge
from tilewright.sim.replay.hardware import hardware_of
from tilewright.sim.replay.outcome import differences
from tilewright.sim.replay.rtl import run_case
from tilewright.sim.session.core import LARGE, NETWORK_BYTES, Session
from tilewright.spec.names import suggestion
from tilewright.verify.random.networks import draw_inputs

from ..network.bench import compiled_sample, cycles_of, run_compared, sample_of

__all__ = ["KINDS", "Hardware", "Kind", "workload_names"]

_MEMORY_BYTES = 16 << 20


class Hardware(NamedTuple):
    """A core and the global memory of its session: what a model is built for.

    Attributes
    ----------
    params : CoreParams
    memory_bytes : int
    """

    params: object
    memory_bytes: int = _MEMORY_BYTES

    def open(self, latency):
        """A ``Session``, whose model is built if it is not there yet."""
        return Session(params=self.params, memory_bytes=self.memory_bytes, latency=latency)


class Kind(NamedTuple):
    """A kind of workload.

    Attributes
    ----------
    groups : tuple of str
        Groups of parameters that the hardware has.
    names : callable
        Returns the names that there are; None if the name is a file.
    hardware : callable
        Takes a point; returns the :class:`Hardware`, or None if none is needed.
    run : callable
        Takes a point, and a session unless no hardware is needed; returns figures as a dictionary. ValueError or
        RuntimeError says why there are none.
    """

    groups: tuple
    names: Callable | None
    hardware: Callable
    run: Callable


def workload_names(text, folder):
    """The workloads that a text names, each as ``kind: name``; UsageError if there are none.

    Parameters
    ----------
    text : str
        A kind and a name; a name may be a shell pattern, or the path of a file.
    folder : Path
        Paths are relative to it.
    """
    kind, colon, name = (part.strip() for part in text.partition(":"))
    if not colon or kind not in KINDS:
        raise UsageError(f"a workload must be KIND: NAME with a kind of {', '.join(KINDS)}, not {text!r}")
    if (names := KINDS[kind].names) is not None:
        known = names()
        found = [each for each in known if each == name] or [each for each in known if fnmatchcase(each, name)]
        if found:
            return [f"{kind}: {each}" for each in found]
    if kind != "replay" and not name.endswith(".onnx"):
        raise UsageError(f"there is no {kind} {name!r}{suggestion(name, known) or ': ' + '; '.join(known)}")
    path = Path(folder, name).resolve()
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    return [f"{kind}: {path}"]


def _share(limit, cycles, **others):
    return {"cycles": cycles, "limit": limit, "utilisation": round(100 * limit / cycles, 2)} | others


def _one_engine(*engines):
    return lambda point: Hardware(changed(core_params(point.preset, engines), point.settings))


def _tile(point, session):
    cases = {case.name: case for case in steady_cases(session.params.smem.size_bytes)}
    if point.name not in cases:
        raise ValueError(f"{point.name} does not fit {session.params.smem.size_bytes} bytes of shared memory")
    fill_memory(session)
    limit, cycles, run = run_steady(session, cases[point.name])
    return _share(limit, cycles, read_words=run.data_beats + run.reducer_beats, write_words=run.write_beats)


def _product(point, session):
    found = {product.name: product for product in products(point.preset, session.params.pe)}
    if point.name not in found:
        raise ValueError(f"the processing engine has no multipliers for {point.name}")
    cycles, _ = run_product(session, found[point.name])
    return _share(found[point.name].limit(session.params.pe), cycles)


def _products():
    return dict.fromkeys(product.name for preset, pe in PE_PRESETS.items() for product in products(preset, pe))


def _accelerator(point):
    memory_bytes = NETWORK_BYTES if point.preset in LARGE else _MEMORY_BYTES
    return Hardware(changed(core_params(point.preset, ENGINES), point.settings), memory_bytes)


def _machine(point):
    return replace(machine_of_core(_accelerator(point).params), latency=point.latency)


def _layer(point, session):
    (layer,) = (layer for name, layer in _layers().items() if name == point.name)
    rows = sample_of(layer, session.params.conv.conv.peak)
    compiled, inputs = compiled_sample(layer, rows, _machine(point))
    return _of_program(compiled, run_compared(session, compiled, inputs, point.name))


def _layers():
    return {f"{network}, {layer.name}": layer for network, layers in NETWORKS.items() for layer in layers}


def _network(point, session):
    compiled, inputs = _compiled(point)
    return _of_program(compiled, run_compared(session, compiled, inputs, point.name))


def _compiled(point):
    """A network as a program, and inputs."""
    if point.name in ARCHITECTURES:
        maker = ARCHITECTURES[point.name]()
        return compile_network(maker.graph(), _machine(point)), maker.draw()
    graph = read_model(load(Path(point.name)))
    return compile_network(graph, _machine(point)), draw_inputs(np.random.default_rng(point.seed), graph)


def _plan(point, session):
    return _of_program(_compiled(point)[0], None)


def _of_program(compiled, run):
    """Figures of a program; without a run, those of its plan."""
    plan = compiled.plan
    moved = {way: sum(span.words for span in plan.spans if span.engine == way) for way in ("load", "store")}
    limits = {"macs": ceil(plan.macs / plan.machine.peak)} | moved
    bound = max(limits, key=limits.get)
    expected = plan.cycles
    cycles = cycles_of(run) if run else expected
    words = (run.data_beats, run.write_beats) if run else (moved["load"], moved["store"])
    return _share(limits[bound], cycles, bound=bound, macs=round(100 * limits["macs"] / cycles, 2), expected=expected,
                  read_words=words[0], write_words=words[1])  # fmt: skip


def _replay_hardware(point):
    """Of all cases of a file: it must be the same."""
    (first, *others) = read_cases(Path(point.name))
    made = {_case_hardware(case, point) for case in (first, *others)}
    if len(made) > 1:
        raise ValueError(f"the cases of {point.name} need different hardware")
    return made.pop()


def _case_hardware(case, point):
    if case.kind in ("conv", "core") or getattr(case, "cores", 1) > 1 or not hasattr(case, "gmem"):
        raise ValueError(f"case {case.name!r} is not of the access unit of one core")
    params = changed(hardware_of(case, point.preset), point.settings)
    return Hardware(params, max(1 << (case.gmem.size - 1).bit_length(), _MEMORY_BYTES))


def _replay(point, session):
    total = dict.fromkeys(("cycles", "limit_words", "read_words", "write_words"), 0)
    for case in read_cases(Path(point.name)):
        golden, outcome = judge(case, session.params), run_case(case, session)
        if wrong := differences(outcome, golden.outcome, golden.open_bytes):
            raise RuntimeError(f"case {case.name!r}: {'; '.join(wrong)}")
        total = {name: count + outcome.record[name] for name, count in total.items()}
    limit = total.pop("limit_words")
    return _share(limit, **total)


_MOVER, _ALL = ("tmau", "smem"), (*ENGINES, "smem")
#: Kinds of workloads by the word before the colon.
KINDS = {
    #: Tiles of ``make bench``, back to back.
    "tile": Kind(_MOVER, lambda: [case.name for case in steady_cases()], _one_engine("tmau"), _tile),
    #: Products in shared memory.
    "product": Kind(("pe", "smem"), lambda: list(_products()), _one_engine("pe"), _product),
    #: Layers of published networks from global memory to global memory, large ones with fewer rows.
    "layer": Kind(_ALL, lambda: list(_layers()), _accelerator, _layer),
    #: Whole networks: published shapes with random weights, or a file ``.onnx``.
    "network": Kind(_ALL, lambda: list(ARCHITECTURES), _accelerator, _network),
    #: The same as the compiler expects them, without a simulation.
    "plan": Kind(_ALL, lambda: list(ARCHITECTURES), lambda point: None, _plan),
    #: A file of cases of the access unit.
    "replay": Kind(_MOVER, None, _replay_hardware, _replay),
}
