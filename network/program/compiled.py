"""A network as a program with its memory (docs/network.md, "The plan")."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tilewright.golden import Core, GlobalMemory, TensorMap, program_bytes
from tilewright.golden.arguments import integer, listed, shown, truth
from tilewright.progress import report, work
from tilewright.spec import DESCRIPTOR

from ..arithmetic.ends import quantise
from ..errors import ModelError
from ..evaluation import check_inputs, compute
from ..graph import Graph
from ..lower.lowering import lower
from ..lower.places import LINE, LONG, Held, padded
from ..plan.tiles import Tiler
from ..plan.together import combine
from .explain import explain
from .machine import MACHINES, Machine
from .memory import plan_memory
from .move_steps import has_transposes
from .order import streams_of
from .placing import Placer
from .schedule import RESERVED, Schedule
from .steps import Jobs
from .transposes import Identity

__all__ = ["Compiled", "compile", "first_nodes"]

#: What can run a program.
_BACKENDS = ("golden", "rtl")


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program, and what it needs of memory.

    Attributes
    ----------
    graph : Graph
    machine : Machine
    layers : tuple of Layer
    tiles : tuple of list of (Layer, Split)
        What each is cut to; none for one that only moves bytes.
    places : dict of str to Place
        Tensors that lie in memory; the name in a place is that of the tensor whose memory it is.
    plan : MemoryPlan
    schedule : Schedule
        The words, and what is expected to happen when.
    start : int
        Address of the program.
    image : uint8 array
        Global memory from address 0 on, before the inputs are written.
    """

    graph: object
    machine: object
    layers: tuple
    tiles: tuple
    places: dict
    plan: object
    schedule: object
    start: int
    image: np.ndarray = field(repr=False)

    @property
    def words(self):
        """Words of the program."""
        return len(self.schedule.words)

    @property
    def explanation(self):
        """The plan as text, a line for each layer."""
        return explain(self)

    def memory(self, inputs):
        """Global memory as the program finds it, a uint8 array; ``inputs`` as of :meth:`run`."""
        inputs = check_inputs(self.graph, inputs)
        data = self.image.copy()
        for name in inputs:
            if name in self.places:
                self._view(data, name)[...] = inputs[name]
        for node in self.graph.nodes:
            if node.kind == "Quantize" and node.inputs[0] in inputs:
                at, dtype = node.attributes, self.graph.tensors[node.output].dtype
                self._view(data, node.output)[...] = quantise(inputs[node.inputs[0]], at.scale, at.zero, dtype)
        return data

    def tensors(self, data, names=None):
        """Tensors in ``data``, global memory as the program left it, by name; without ``names`` the outputs."""
        self._check_memory(data)
        makers = {node.output: node for node in self.graph.tail}

        def value(name):
            if name in makers:
                return compute(self.graph, makers[name], {source: value(source) for source in makers[name].inputs})
            if name not in self.places:
                raise ModelError(f"tensor {name!r} is not in memory, for it was not asked for when this was compiled")
            return self.tensor(data, name)

        return {name: value(name) for name in self._wanted(names)}

    def _wanted(self, names):
        """Names of tensors of the network, those of its outputs if ``names`` are None."""
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
            Those of the network, by name; an array if there is one.
        on : str
            "golden": the core without cycles. "rtl": the hardware, simulated, whose first run builds the simulator.
        names : sequence of str
            Tensors that are wanted instead of the outputs: any, if it was compiled with ``every_tensor``.

        Returns
        -------
        dict of str to array
        """
        if not isinstance(on, str) or on not in _BACKENDS:
            raise ModelError(f"on must be one of {', '.join(_BACKENDS)}, not {shown(on)}")
        names = self._wanted(names)
        data = self.run_golden(inputs) if on == "golden" else self.run_rtl(inputs)[0]
        return self.tensors(data, names)

    def tensor(self, data, name):
        """A tensor in ``data``, global memory as the program left it."""
        self._check_memory(data)
        if not isinstance(name, str) or name not in self.places:
            raise ModelError(f"tensor {shown(name)} is not in memory")
        return np.ascontiguousarray(self._view(data, name))

    def _view(self, data, name):
        place = self.places[name]
        return place.view(data, self.plan.tensors[place.name])

    def run_rtl(self, inputs, **options):
        """Global memory after the program on simulated hardware, and its ``Run``.

        ``options`` are those of ``open_accelerator``, such as ``latency``.
        """
        from .rtl import run_rtl  # needs what simulates hardware

        return run_rtl(self, self.memory(inputs), **options)

    def run_golden(self, inputs):
        """Global memory after the program on the golden model; ``inputs`` as of :meth:`memory`."""
        gmem = GlobalMemory(self.memory(inputs))
        core = Core(gmem, np.zeros(self.machine.smem_bytes, np.uint8), conv=self.machine.conv,
                    bus_bytes=self.machine.bus_bytes)  # fmt: skip
        with work("golden"):
            for step in core.steps(self.start, self.words):
                report("words", step.index, self.words)
        if core.record is not None:
            raise RuntimeError(f"the program stopped with {core.record}")
        return gmem.read(0, len(self.image))


def compile(source, preset="default", *, every_tensor=False, layers=None):  # noqa: A001 - what users call it
    """The :class:`Compiled` of a network.

    Parameters
    ----------
    source : Graph, str or Path
        A network, or the file of a model.
    preset : str or Machine
        The core that it is for.
    every_tensor : bool
        Every tensor lies in memory at the end: nothing is done together, and no room is used twice.
    layers : int
        Only so many nodes.

    Raises
    ------
    ModelError
        What cannot be done, with the node's name; one sentence.
    """
    if not isinstance(preset, Machine) and not (isinstance(preset, str) and preset in MACHINES):
        raise ModelError(f"preset must be one of {', '.join(MACHINES)}, or a network.Machine, not {shown(preset)}")
    every_tensor = truth("every_tensor", every_tensor)
    layers = layers if layers is None else integer("layers", layers, 1)
    graph = source
    if not isinstance(source, Graph | str | Path):
        raise TypeError(f"source must be a network.Graph or the path of a model file, not {shown(source)}")
    if not isinstance(source, Graph):
        from ..reader import read  # needs the package onnx, which graphs do not

        graph = read(source)
    return _compile(first_nodes(graph, layers), MACHINES[preset] if isinstance(preset, str) else preset, every_tensor)


def first_nodes(graph, count):
    """The first nodes of a graph; its outputs are what none of them reads. All of it if ``count`` is None."""
    if count is None or count >= len(graph.nodes):
        return graph
    nodes = graph.nodes[:count]
    read_ones = {name for node in nodes for name in node.inputs}
    outputs = tuple(node.output for node in nodes if node.output not in read_ones or node.output in graph.outputs)
    return replace(graph, nodes=nodes, outputs=outputs)


def _needed(graph):
    """The graph without nodes that no output needs."""
    names, nodes = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if node.output in names:
            names.update(node.inputs)
            nodes.append(node)
    return replace(graph, nodes=tuple(reversed(nodes)))


def _compile(graph, machine, every_tensor):
    graph = graph if every_tensor else _needed(graph)
    lowered = lower(graph, machine.conv, every_tensor)
    kept = {lowered.places[name].name for name in lowered.places if every_tensor or _at_an_end(graph, name)}
    tiler = Tiler(machine, RESERVED)
    layers = combine(lowered.layers, tiler, kept)
    needed = kept | {place.name for layer in layers for place in layer.brought if not isinstance(place, Held)}
    between = {layer.sources[0].name for layer in layers if layer.first}
    between |= {layer.output.name for layer in layers if isinstance(layer.output, Held)} - needed
    tiles = tuple([] if layer.moves else tiler.tiles(layer) for layer in layers)
    transposes = any(has_transposes(layer, machine.conv, machine.smem_bytes - RESERVED) for layer in layers)
    images = _Images(tiles, Identity(machine.conv) if transposes else None)
    stored = {}
    for place in lowered.all_places:
        # Where several tensors are views of one memory, the largest says how large it is.
        if place.name in between:
            continue
        if place.name not in stored or place.size > stored[place.name].size:
            stored[place.name] = place
    plan = plan_memory(layers, images.sizes, list(stored.values()), kept)
    placer = Placer(machine, plan, lambda layer: plan.weights[images.number(layer)])
    steps = placer.steps(layers, tiles, needed)
    maps = _maps(steps, plan)
    schedule = Schedule(streams_of(steps, machine.smem_bytes, plan.end), machine, plan.end, maps)
    program = program_bytes(schedule.words)
    start = padded(plan.end + DESCRIPTOR.bytes * len(maps), LINE)
    image = np.zeros(start + padded(len(program), LINE), np.uint8)
    images.write(image, plan.weights)
    for spec, address in maps.items():
        image[address : address + DESCRIPTOR.bytes] = np.frombuffer(_descriptor(spec, plan).pack(), np.uint8)
    image[start : start + len(program)] = program
    places = {name: place for name, place in lowered.places.items() if place.name not in between}
    return Compiled(graph, machine, layers, tiles, places, plan, schedule, start, image)


class _Images:
    """Weights of all tiles, each image once, and the identity behind them if there is one."""

    def __init__(self, tiles, identity):
        self._images, self._numbers = [], {}
        for layer, one in (tile for group in tiles for tile in group):
            key = self._key(layer)
            if key not in self._numbers:
                self._numbers[key] = len(self._images)
                self._images.append(one.image)
        if identity:
            self._images.append(identity)
        self.sizes = [image.size for image in self._images]

    @staticmethod
    def _key(layer):
        """Where the arrays lie: columns of one layer have one image."""
        arrays = (array for _, part in layer.stages for array in (part.weights, part.table) if array is not None)
        return tuple((array.ctypes.data, array.shape) for array in arrays)

    def number(self, layer):
        """Which image a layer has."""
        return self._numbers[self._key(layer)]

    def write(self, memory, addresses):
        """Puts all of them into ``memory``."""
        for address, image in zip(addresses, self._images, strict=True):
            memory[address : address + image.size] = image.data()


def _maps(steps, plan):
    """Addresses of the descriptors of all boxes, by their :class:`Map`."""
    used = [transfer.map for step in steps if not isinstance(step, Jobs) for transfer in step.transfers if transfer.map]
    return {spec: plan.end + DESCRIPTOR.bytes * number for number, spec in enumerate(dict.fromkeys(used))}


def _descriptor(spec, plan):
    """The tensor map of a box."""
    cut, base = spec.place, spec.place.base
    unit, (rows, columns) = cut.unit, cut.step
    # Gaps are outside of the tensor: nothing is fetched for them, and nothing is written.
    size, stride, box = (cut.first_channel + cut.channels) // unit, (), (cut.pixel_pitch // unit,)
    if cut.long:
        size, stride, box = size * unit // LONG, (LONG,), (LONG // unit, cut.pixel_pitch // LONG)
    sizes = (*box[:-1], size, base.width, base.height, base.batch)
    return TensorMap(
        element=f"u{8 * unit}", address=plan.tensors[base.name], size=sizes,
        stride=(*stride, base.channels, base.row_pitch, base.image_pitch),
        traversal=(*(1 for _ in box), columns, rows, 1),
        box=(*box, cut.columns, (spec.rows - 1) * rows + 1, 1),
        unaligned=base.channels % 16 != 0 or cut.channels % 16 != 0,
    )  # fmt: skip


def _at_an_end(graph, name):
    """Whether a tensor is an input or an output of what the engines do."""
    ends = {*graph.inputs, *graph.outputs}
    ends.update(node.output for node in graph.nodes if node.kind == "Quantize")
    ends.update(source for node in graph.tail for source in node.inputs)
    return name in ends
