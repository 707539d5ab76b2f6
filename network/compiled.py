"""A network compiled to a program with its memory (docs/network.md, "The plan")."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tilewright.golden import Cluster, Core, Cores, GlobalMemory
from tilewright.golden.arguments import integer, listed, shown, truth
from tilewright.golden.smem import Barrier
from tilewright.progress import report, work
from tilewright.spec.cluster import MOST_CORES

from .arithmetic import quantise
from .barriers import barriers_of_cores
from .evaluation import check_inputs, compute
from .failures import check_records
from .graph import Graph, ModelError, needed
from .lower.heads import in_head_groups
from .lower.lowering import lower
from .lower.rows import lacks_kernel
from .machine import MACHINES, Machine
from .plan.explanation import explain
from .plan.plan import make_plan
from .words import memory_image, starts_of, words_of

__all__ = ["Compiled", "compile", "first_nodes", "shared_memory"]

#: What can run a program.
_BACKENDS = ("golden", "rtl")


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program with its global memory.

    Attributes
    ----------
    graph : Graph
    plan : Plan
        Every choice, with expected cycles.
    places : dict of str to Place
        Tensors that lie in memory. Several may share the memory of one: the name in a place is the name of that one.
    programs : list of list of int
        The words of the program of each core.
    image : uint8 array
        Global memory from address 0 on, before the inputs are written.
    """

    graph: object
    plan: object
    places: dict
    programs: list = field(repr=False)
    image: np.ndarray = field(repr=False)

    @property
    def words(self):
        """The words of the program of the first core."""
        return self.programs[0]

    @property
    def starts(self):
        """For each core the address of its program in memory and the number of words."""
        return starts_of(self.plan, self.programs)

    @property
    def explanation(self):
        """The plan as text, a line for each layer."""
        return explain(self.plan, sum(map(len, self.programs)), len(self.image))

    def memory(self, inputs):
        """Global memory before the program, a uint8 array; ``inputs`` as for :meth:`run`."""
        data = self.image.copy()
        for core, given in enumerate(self._given(inputs)):
            self._write(data, check_inputs(self.graph, given), core)
        return data

    def _given(self, inputs):
        """The inputs of each core that has its own; otherwise of all, alone in a list."""
        machine = self.plan.machine
        if not machine.separate:
            return [inputs]
        if not isinstance(inputs, list | tuple) or len(inputs) != machine.cores:
            raise ModelError(f"inputs must be a list of those of {machine.cores} cores, not {shown(inputs)}")
        return inputs

    def _write(self, data, inputs, core):
        values = dict(inputs)
        for node in self.graph.head:
            values[node.output] = compute(self.graph, node, values)
        for name in values.keys() & self.places.keys():
            self._view(data, name, core)[...] = values[name]
        for node in self.graph.nodes:
            if node.kind == "Quantize" and node.inputs[0] in values:
                at, dtype = node.attributes, self.graph.tensors[node.output].dtype
                self._view(data, node.output, core)[...] = quantise(values[node.inputs[0]], at.scale, at.zero, dtype)

    def tensors(self, data, names=None, core=0):
        """Tensors in ``data``, global memory after the program, by name: those in ``names``, or the outputs.

        ``core`` is the number of a core that has inputs of its own.
        """
        self._check_memory(data)
        makers, values = {node.output: node for node in self.graph.tail}, {}

        def give(name):
            """Computes a tensor and all that it needs, without recursion: the tail may be long."""
            waiting = [name]
            while waiting:
                node = makers.get(waiting[-1])
                missing = [source for source in (node.inputs if node else ()) if source not in values]
                waiting += missing
                if not missing:
                    made = waiting.pop()
                    values[made] = compute(self.graph, node, values) if node else self._in_memory(data, made, core)
            return values[name]

        return {name: give(name) for name in self._wanted(names)}

    def _in_memory(self, data, name, core):
        if name not in self.places:
            raise ModelError(f"tensor {name!r} is not in memory: compile with every_tensor to keep it")
        return self.tensor(data, name, core)

    def _wanted(self, names):
        """``names``, if they are tensors of the network; the outputs if ``names`` is None."""
        if names is None:
            return list(dict.fromkeys(self.graph.outputs))
        for name in listed("names", names):
            if not isinstance(name, str) or name not in self.graph.tensors:
                raise ModelError(f"the network has no tensor {shown(name)}")
        return list(names)

    def _check_memory(self, data):
        """ModelError unless ``data`` can be global memory."""
        fits = isinstance(data, np.ndarray) and data.dtype == np.uint8 and data.ndim == 1
        if not fits or len(data) < len(self.image):
            size = f"{len(self.image):,} bytes or more"
            raise ModelError(f"data must be global memory, a flat uint8 array of {size}, not {shown(data)}")

    def run(self, inputs, on="golden", names=None):
        """Runs the program.

        Parameters
        ----------
        inputs : dict of str to array, or array
            Inputs of the network by name; the array alone if there is only one. A list of these, one for each core, if
            each has its own.
        on : str
            "golden": the golden model of the core. "rtl": simulated hardware; the first run builds the simulator.
        names : sequence of str
            Tensors to return instead of the outputs; any, if it was compiled with ``every_tensor``.

        Returns
        -------
        dict of str to array
            Or a list of them, one for each core.
        """
        if not isinstance(on, str) or on not in _BACKENDS:
            raise ModelError(f"on must be one of {', '.join(_BACKENDS)}, not {shown(on)}")
        names = self._wanted(names)
        data = self.run_golden(inputs) if on == "golden" else self.run_rtl(inputs)[0]
        if self.plan.machine.separate:
            return [self.tensors(data, names, core) for core in range(self.plan.machine.cores)]
        return self.tensors(data, names)

    def tensor(self, data, name, core=0):
        """A tensor in ``data``, global memory after the program; ``core`` as for :meth:`tensors`."""
        self._check_memory(data)
        if not isinstance(name, str) or name not in self.places:
            raise ModelError(f"tensor {shown(name)} is not in memory")
        return np.ascontiguousarray(self._view(data, name, core))

    def _view(self, data, name, core):
        place = self.places[name]
        return place.view(data, self.plan.tensors[place.name] + core * self.plan.apart)

    def run_rtl(self, inputs, **options):
        """Global memory after the program on simulated hardware, and its ``Run``.

        ``options`` are those of ``open_accelerator``, such as ``latency``.
        """
        from .rtl import run_rtl  # imports the simulator

        return run_rtl(self, self.memory(inputs), **options)

    def run_golden(self, inputs):
        """Global memory after the program on the golden model; ``inputs`` as for :meth:`run`."""
        gmem = GlobalMemory(self.memory(inputs))
        machine = self.plan.machine
        sizes = {"pe": machine.pe, "conv": machine.conv}
        if machine.cores > 1:
            shared = [shared_memory(machine) for _ in range(machine.cores)]
            cores = Cores(Cluster(gmem, shared, bus_bytes=machine.bus_bytes), watchdog=True, **sizes)
            with work("golden"):
                check_records(self.plan, cores.run(self.starts, max(map(len, self.programs))))
            return gmem.read(0, len(self.image))
        core = Core(gmem, shared_memory(machine), bus_bytes=machine.bus_bytes, **sizes)
        with work("golden"):
            for step in core.steps(self.plan.start, len(self.words), len(self.words)):
                report("words", step.index, len(self.words))
        check_records(self.plan, [core.record])
        return gmem.read(0, len(self.image))


def shared_memory(machine):
    """Shared memory of a core before its program, a uint8 array: in a cluster the barriers of meetings are ready."""
    smem = np.zeros(machine.smem_bytes, np.uint8)
    for address in barriers_of_cores(machine.cores):
        Barrier(pending=1, expected=1).write(smem, address)
    return smem


def compile(source, preset="default", *, cores=1, separate=False, every_tensor=False, layers=None):  # noqa: A001
    """The :class:`Compiled` of a network.

    Parameters
    ----------
    source : Graph, str or Path
        A network, or the file of a model.
    preset : str or Machine
        The core that runs the program.
    cores : int
        Cores of a cluster that compute the network, 1 to 16; 1: as many as a Machine has.
    separate : bool
        Each core computes inputs of its own. Otherwise all of them share the work.
    every_tensor : bool
        Keep every tensor in memory: no layers are done together, and no memory is used twice.
    layers : int
        Compile only the first nodes, this many.

    Raises
    ------
    ModelError
        If a node cannot be compiled; one sentence with its name.
    """
    if not isinstance(preset, Machine) and not (isinstance(preset, str) and preset in MACHINES):
        raise ModelError(f"preset must be one of {', '.join(MACHINES)}, or a network.Machine, not {shown(preset)}")
    every_tensor = truth("every_tensor", every_tensor)
    layers = layers if layers is None else integer("layers", layers, 1)
    graph = source
    if not isinstance(source, Graph | str | Path):
        raise TypeError(f"source must be a network.Graph or the path of a model file, not {shown(source)}")
    if not isinstance(source, Graph):
        from .reader import read  # needs the package onnx, which graphs do not

        graph = read(source)
    machine = MACHINES[preset] if isinstance(preset, str) else preset
    cores, separate = integer("cores", cores, 1, MOST_CORES), truth("separate", separate)
    machine = replace(machine, cores=machine.cores if cores == 1 else cores, separate=separate or machine.separate)
    if machine.cores > 1 and not machine.local_copies:
        sentence = "signal to each other by copies within shared memory, but the access unit has no local_copies"
        raise ModelError(f"{machine.cores} cores {sentence}")
    return _compile(first_nodes(graph, layers), machine, every_tensor)


def first_nodes(graph, count):
    """The first ``count`` nodes of a graph, whose outputs are the tensors that none of them reads; None: all nodes."""
    if count is None or count >= len(graph.nodes):
        return graph
    nodes = graph.nodes[:count]
    inputs = {name for node in nodes for name in node.inputs}
    outputs = tuple(node.output for node in nodes if node.output not in inputs or node.output in graph.outputs)
    return replace(graph, nodes=nodes, outputs=outputs)


def _compile(graph, machine, every_tensor):
    graph, room = graph if every_tensor else needed(graph), machine.smem_bytes - machine.reserved
    unfit = (node for node in graph.nodes if lacks_kernel(graph, node, machine.pe, room))
    graph = replace(graph, hosted=frozenset(node.output for node in unfit if graph.is_late(node)))
    grouped = graph if every_tensor or machine.shared else in_head_groups(graph)
    lowered = lower(grouped, machine, room, every_tensor)
    kept = {place.name for name, place in lowered.places.items()
            if every_tensor or name in lowered.constants or _at_an_end(graph, name)}  # fmt: skip
    plan = make_plan(lowered, machine, kept)
    programs = [words_of(plan, schedule) for schedule in plan.schedules]
    places = {name: place for name, place in lowered.places.items() if place.name not in plan.inside}
    image = memory_image(plan, programs)
    for name in lowered.constants.keys() & places.keys():
        for core in range(machine.cores if machine.separate else 1):
            address = plan.tensors[places[name].name] + core * plan.apart
            places[name].view(image, address)[...] = lowered.constants[name]
    return Compiled(graph, plan, places, programs, image)


def _at_an_end(graph, name):
    """Whether a tensor is an input or an output of the part of the network that the engines compute."""
    ends = {*graph.inputs, *graph.outputs}
    ends.update(node.output for node in graph.nodes if node.kind == "Quantize")
    ends.update(source for node in graph.tail for source in node.inputs)
    return name in ends
