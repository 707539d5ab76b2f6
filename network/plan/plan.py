"""The plan of a network: every choice with what it is expected to take, as data.

See docs/network.md, "The plan".
"""

from dataclasses import dataclass, replace

from tilewright.spec import DESCRIPTOR

from ..barriers import groups_of
from ..graph import ModelError
from ..lower.places import LINE, Held, padded
from ..tiling.tiles import Tiler
from ..tiling.together import beside_kernels, combine
from .cores import make_schedules
from .interleave import interleaved
from .kernel_steps import KernelImage
from .meetings import find_meetings, share_loads, with_meetings
from .move_steps import Identity, has_transposes
from .placing import Placer, kernel_bytes
from .steps import Load, Store, streams_of

__all__ = ["Plan", "make_plan"]

#: Kernels alone use at most shared memory divided by this.
_KERNEL_SHARE = 3
#: After how many other orders of the steps of kernels and jobs, none of them faster, no more are tried.
_ROUNDS = 2
#: Bands of a kernel that more of it holds: one is loaded, one is computed, one is stored.
_BANDS = 3


@dataclass(frozen=True, eq=False)
class Plan:
    """All that a program is made of.

    Attributes
    ----------
    machine : Machine
    layers : tuple of Layer
        In order, those that are done together as one.
    tiles : tuple of list of list of (Layer, Split)
        What each layer is cut to, by core; none for one that only moves bytes, or that a kernel computes.
    schedules : tuple of Schedule
        For each core the instructions of its program, and what is expected to happen when.
    tensors : dict of str to int
        Addresses of tensors in global memory, by name.
    images : dict of int to Image, KernelImage or Identity
        Weights and tables, and kernels, by address.
    maps : dict of Map to int
        Addresses of the descriptors of boxes.
    start : int
        Address of the programs.
    inside : set of str
        Tensors that lie nowhere but in shared memory.
    apart : int
        Distance in bytes between the tensors of two cores that compute inputs of their own; otherwise 0.
    """

    machine: object
    layers: tuple
    tiles: tuple
    schedules: tuple
    tensors: dict
    images: dict
    maps: dict
    start: int
    inside: set
    apart: int = 0

    @property
    def macs(self):
        """Multiplications, of all inputs."""
        return (self.machine.cores if self.machine.separate else 1) * sum(layer.macs for layer in self.layers)

    @property
    def cycles(self):
        """Expected cycles until the last core has ended."""
        return max(schedule.cycles for schedule in self.schedules)

    @property
    def spans(self):
        """What all cores are expected to do when."""
        return [span for schedule in self.schedules for span in schedule.spans]


def make_plan(lowered, machine, kept):
    """The :class:`Plan` of a lowered network.

    Parameters
    ----------
    lowered : Lowered
    machine : Machine
    kept : set of str
        Tensors that lie in global memory at the end.
    """
    layers = _with_indices(beside_kernels(lowered.layers), machine.pe)
    lowered, rooms = replace(lowered, layers=layers), _kernel_rooms(layers, machine)
    if len(rooms) > 1:
        plans = {room: plan for room in rooms if (plan := _make_plan(lowered, machine, kept, room, quick=True))}
        rooms = [min(plans, key=lambda room: plans[room].cycles)]
    return _make_plan(lowered, machine, kept, rooms[0])


def _with_indices(layers, pe):
    """The layers, whose kernels lie in instruction memory one after the other, and from its beginning again at its end.

    Equal instructions have one place.
    """
    indices, free = {}, 0
    for code in dict.fromkeys(layer.kernel.code for layer in layers if layer.kernel):
        indices[code] = free if free + len(code) <= pe.kernel_words else 0
        free = indices[code] + len(code)
    return tuple(
        replace(layer, kernel=replace(layer.kernel, index=indices[layer.kernel.code])) if layer.kernel else layer
        for layer in layers
    )


def _kernel_rooms(layers, machine):
    """Bytes at the end of shared memory that only kernels use, to try: 0, and as many as let jobs run beside them."""
    most, needed = machine.smem_bytes // _KERNEL_SHARE // LINE * LINE, {*map(kernel_bytes, layers)} - {0}
    sizes = sorted(size for size in needed if size <= most)
    rooms = (*sizes, min(_BANDS * sizes[-1], most)) if sizes else ()
    free = machine.smem_bytes - machine.reserved - max(needed, default=0)
    return 0, *dict.fromkeys(room for room in rooms if room <= free or room >= max(needed))


def _make_plan(lowered, machine, kept, kernel_room, *, quick=False):
    """The :class:`Plan` with ``kernel_room`` bytes for kernels alone; None if layers do not fit the rest.

    A ``quick`` plan has buffers only at the ends of shared memory, and one order of steps.
    """
    tiler = Tiler(machine, machine.reserved + kernel_room)
    try:
        layers = combine(lowered.layers, tiler, kept)
    except ModelError:
        if not kernel_room:
            raise
        return None
    tiles = tuple(tiler.shares(layer) if layer.parts else [[]] * machine.cores for layer in layers)
    needed = kept | {place.name for layer in layers for place in layer.brought if not isinstance(place, Held)}
    inside = {layer.sources[0].name for layer in layers if layer.first}
    results = [layer.output for layer in layers] + [layer.sums.output for layer in layers if layer.sums]
    inside |= {place.name for place in results if isinstance(place, Held)} - needed
    images = {}
    for layer, split in (tile for shares in tiles for share in shares for tile in share):
        images.setdefault(_arrays(layer), split.image)
    for layer in layers:
        if layer.kernel:
            images.setdefault(_arrays(layer), KernelImage(layer.kernel))
    room = machine.smem_bytes - machine.reserved - kernel_room
    if any(has_transposes(layer, machine.conv, room) for layer in layers):
        images[None] = Identity(machine.conv)
    end, weights = 0, {}
    for key, image in images.items():
        weights[key] = end
        end += padded(image.size, LINE)
    begin = end
    # Kernels that do not fit the room use all other memory, in turn with jobs.
    kernels = {number for number, layer in enumerate(layers) if 0 < kernel_bytes(layer) <= kernel_room}
    tensors, end = _addresses(layers, _stored(lowered, inside), kept, begin, _ends(layers, kernels))
    apart = padded(end - begin, LINE) if machine.separate else 0
    end = max(end, begin + apart * machine.cores)
    of_cores = [{name: address + apart * core for name, address in tensors.items()} for core in range(machine.cores)]
    choices = []
    for anywhere in (False,) if quick else (False, True):
        placer = Placer(machine, of_cores, end, lambda layer: weights.get(layer and _arrays(layer)), anywhere=anywhere,
                        kernels=kernels, kernel_room=kernel_room)  # fmt: skip
        steps, points = placer.steps(layers, tiles, needed), ()
        if machine.cores > 1:
            share_loads(steps, kernels, groups_of(machine.cores))
            points = find_meetings(steps, end)
        choices.append(_Order(steps, machine, end, kernels, points))
    best = order = min(choices, key=lambda order: order.cycles)
    left = 0 if quick or not kernels else _ROUNDS
    while left:
        order = order.better()
        left = _ROUNDS if order.cycles < best.cycles else left - 1
        best = min(best, order, key=lambda order: order.cycles)
    boxes = [each.map.shared for own in best.steps for step in own if isinstance(step, Load | Store)
             for each in step.transfers if each.map]  # fmt: skip
    maps = {box: end + DESCRIPTOR.bytes * number for number, box in enumerate(dict.fromkeys(boxes))}
    start = padded(end + DESCRIPTOR.bytes * len(maps), LINE)
    images = {weights[key]: image for key, image in images.items() if image.size}
    return Plan(machine, layers, tiles, best.schedules, tensors, images, maps, start, inside, apart)


class _Order:
    """Steps of all cores in an order, and their schedules; without ``times`` the order is a first guess."""

    def __init__(self, steps, machine, end, kernels, points, times=None):
        self._work = steps, machine, end, kernels, points
        ordered = interleaved(steps, kernels, end, points, times) if kernels else steps
        self.steps = [with_meetings(own, points) for own in ordered]
        streams = [streams_of(own, machine.smem_bytes, end, core) for core, own in enumerate(self.steps)]
        self.schedules = make_schedules(streams, machine, end)
        self.cycles = max(schedule.cycles for schedule in self.schedules)

    def better(self):
        """The order in which steps of kernels and of jobs could have begun in this one."""
        return _Order(*self._work, [schedule.times for schedule in self.schedules])


def _arrays(layer):
    """Which image a layer has, by where its arrays lie: ranges of columns of one layer share an image.

    Kernels with the same contents share one too.
    """
    if layer.kernel:
        return layer.kernel.code, layer.kernel.lookup, tuple(array.tobytes() for array in layer.kernel.constants)
    arrays = (array for _, part in layer.stages for array in (part.weights, part.table, part.function)
              if array is not None)  # fmt: skip
    return tuple((array.ctypes.data, array.shape) for array in arrays)


def _stored(lowered, inside):
    """Tensors that lie in global memory; of several views of one memory the largest."""
    stored = {}
    for place in lowered.all_places:
        if place.name not in inside and (place.name not in stored or place.size > stored[place.name].size):
            stored[place.name] = place
    return list(stored.values())


def _ends(layers, kernels):
    """For each layer the last one before which it may end: ``kernels``, with their own room, run beside those after."""
    numbers = range(len(layers))
    return [next((after - 1 for after in numbers[number + 1 :]
                  if any(place.name == layer.output.name for place in layers[after].brought)), number)
            if number in kernels else number for number, layer in enumerate(layers)]  # fmt: skip


def _addresses(layers, places, kept, base, ends):
    """Addresses of tensors in global memory from ``base`` on, by name, and the end of all.

    A tensor that is not read any more when its last reader ends leaves its room to others. Those in ``kept`` stay.
    """
    lives = {place.name: [len(layers), -1] for place in places}
    for number, layer in enumerate(layers):
        if layer.output.name in lives:
            lives[layer.output.name][0] = min(lives[layer.output.name][0], number)
        for name in {place.name for place in (layer.output, *layer.brought)} & lives.keys():
            lives[name][1] = max(lives[name][1], ends[number])
    for name in kept:
        lives[name] = [-1, len(layers)]
    tensors, end = {}, base
    for place in sorted(places, key=lambda place: -place.size):
        first, last = lives[place.name]
        others = sorted((tensors[other.name], tensors[other.name] + padded(other.size, LINE))
                        for other in places if other.name in tensors
                        and lives[other.name][0] <= last and first <= lives[other.name][1])  # fmt: skip
        address = base
        for low, high in others:
            if low - address >= place.size:
                break
            address = max(address, high)
        tensors[place.name] = address
        end = max(end, address + padded(place.size, LINE))
    return tensors, end
