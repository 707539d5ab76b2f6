"""The plan of a program: every choice with what it is expected to take, as data and as text.

See docs/network.md, "The plan".
"""

from dataclasses import dataclass, replace
from math import ceil

from tilewright.spec import DESCRIPTOR

from ..graph import ModelError
from ..lower.places import LINE, Cut, Held, padded
from .channel_steps import channel_bytes
from .interleave import interleaved
from .kernel_steps import KernelImage, least_bytes
from .move_steps import Identity, has_transposes
from .placing import Placer
from .schedule import RESERVED, Schedule
from .steps import Call, Jobs, streams_of
from .tiles import Tiler
from .together import beside_kernels, combine

__all__ = ["Plan", "explain", "make_plan"]

#: Kernels alone use at most shared memory divided by this.
_KERNEL_SHARE = 3
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
    tiles : tuple of list of (Layer, Split)
        What each layer is cut to; none for one that only moves bytes, or that a kernel computes.
    schedule : Schedule
        The instructions of the program, and what is expected to happen when.
    tensors : dict of str to int
        Addresses of tensors in global memory, by name.
    images : dict of int to Image, KernelImage or Identity
        Weights and tables, and kernels, by address.
    maps : dict of Map to int
        Addresses of the descriptors of boxes.
    start : int
        Address of the program.
    inside : set of str
        Tensors that lie nowhere but in shared memory.
    """

    machine: object
    layers: tuple
    tiles: tuple
    schedule: Schedule
    tensors: dict
    images: dict
    maps: dict
    start: int
    inside: set

    @property
    def macs(self):
        """Multiplications."""
        return sum(layer.macs for layer in self.layers)


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
    plans = [plan for room in rooms if (plan := _make_plan(lowered, machine, kept, room))]
    return min(plans, key=lambda plan: plan.schedule.cycles)


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
    needed = max(((channel_bytes if layer.kernel.entries else least_bytes)(layer) for layer in layers if layer.kernel),
                 default=0)  # fmt: skip
    most = machine.smem_bytes // _KERNEL_SHARE // LINE * LINE
    return (0, needed, min(_BANDS * needed, most)) if 0 < needed <= most else (0,)


def _make_plan(lowered, machine, kept, kernel_room):
    """The :class:`Plan` with ``kernel_room`` bytes for kernels alone; None if layers do not fit the rest."""
    tiler = Tiler(machine, RESERVED + kernel_room)
    try:
        layers = combine(lowered.layers, tiler, kept)
    except ModelError:
        if not kernel_room:
            raise
        return None
    tiles = tuple(tiler.tiles(layer) if layer.parts else [] for layer in layers)
    needed = kept | {place.name for layer in layers for place in layer.brought if not isinstance(place, Held)}
    inside = {layer.sources[0].name for layer in layers if layer.first}
    results = [layer.output for layer in layers] + [layer.sums.output for layer in layers if layer.sums]
    inside |= {place.name for place in results if isinstance(place, Held)} - needed
    images = {}
    for layer, split in (tile for group in tiles for tile in group):
        images.setdefault(_arrays(layer), split.image)
    for layer in layers:
        if layer.kernel:
            images.setdefault(_arrays(layer), KernelImage(layer.kernel))
    if any(has_transposes(layer, machine.conv, machine.smem_bytes - RESERVED - kernel_room) for layer in layers):
        images[None] = Identity(machine.conv)
    end, weights = 0, {}
    for key, image in images.items():
        weights[key] = end
        end += padded(image.size, LINE)
    tensors, end = _addresses(layers, _stored(lowered, inside), kept, end)
    schedules = []
    for anywhere in (False, True):
        placer = Placer(machine, tensors, end, lambda layer: weights.get(layer and _arrays(layer)), anywhere=anywhere,
                        kernel_room=kernel_room)  # fmt: skip
        steps = placer.steps(layers, tiles, needed)
        if kernel_room:
            steps = interleaved(steps, {number for number, layer in enumerate(layers) if layer.kernel}, end)
        schedules.append((Schedule(streams_of(steps, machine.smem_bytes, end), machine, end), steps))
    schedule, steps = min(schedules, key=lambda pair: pair[0].cycles)
    boxes = [each.map for step in steps if not isinstance(step, Jobs | Call) for each in step.transfers if each.map]
    maps = {box: end + DESCRIPTOR.bytes * number for number, box in enumerate(dict.fromkeys(boxes))}
    start = padded(end + DESCRIPTOR.bytes * len(maps), LINE)
    images = {weights[key]: image for key, image in images.items() if image.size}
    return Plan(machine, layers, tiles, schedule, tensors, images, maps, start, inside)


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


def _addresses(layers, places, kept, base):
    """Addresses of tensors in global memory from ``base`` on, by name, and the end of all.

    A tensor that is not read any more leaves its room to others. Those in ``kept`` stay.
    """
    lives = {place.name: [len(layers), -1] for place in places}
    for number, layer in enumerate(layers):
        if layer.output.name in lives:
            lives[layer.output.name][0] = min(lives[layer.output.name][0], number)
        for name in {place.name for place in (layer.output, *layer.brought)} & lives.keys():
            lives[name][1] = max(lives[name][1], number)
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


_HEADINGS = ("layer", "operator", "output", "cut", "weights", "bands", "jobs", "cycles", "bytes in", "bytes out",
             "limit", "MACs busy")  # fmt: skip
_LEFT = {"layer", "operator", "output", "cut", "weights", "limit"}


def explain(plan, words, memory_bytes):
    """A :class:`Plan` as a table: a line for each layer, one for the sum, and the sizes of program and memory."""
    schedule, machine = plan.schedule, plan.machine
    lines, before = [], 0
    for number, (layer, tiles) in enumerate(zip(plan.layers, plan.tiles, strict=True)):
        spans = [span for span in schedule.spans if span.layer == number]
        busy = {engine: sum(span.end - span.start for span in spans if span.engine == engine)
                for engine in ("conv", "pe", "load", "store")}  # fmt: skip
        moved = [machine.bus_bytes * sum(span.words for span in spans if span.engine == way)
                 for way in ("load", "store")]  # fmt: skip
        end = max(span.end for span in spans)
        cycles = max(end - before, 1)
        # Layers that are joined take turns: each works from its first job to its last one.
        jobs = [span for span in spans if span.engine == "conv"]
        working = jobs[-1].end - jobs[0].start if jobs else 0
        bands = sum(len(split.bands(part)) for part, split in tiles) or sum(span.engine == "store" for span in spans)
        lines.append((
            layer.name, layer.operator, "x".join(map(str, layer.output.shape)), _cut(layer, tiles), _weights(tiles),
            bands, schedule.jobs[number], cycles, *moved, max(busy, key=busy.get), _share(layer.macs, working, machine),
        ))  # fmt: skip
        before = max(before, end)
    bands, jobs, _, bytes_in, bytes_out = (sum(line[column] for line in lines) for column in range(5, 10))
    limit = max(ceil(plan.macs / machine.conv.peak), bytes_in // machine.bus_bytes)
    lines.append(("all", *[""] * 4, bands, jobs, schedule.cycles, bytes_in, bytes_out, "",
                  _share(plan.macs, schedule.cycles, machine)))  # fmt: skip
    text = [_HEADINGS, *(tuple(f"{cell:,}" if isinstance(cell, int) else cell for cell in line) for line in lines)]
    widths = [max(map(len, column)) for column in zip(*text, strict=True)]
    table = "\n".join(
        "  ".join(cell.ljust(width) if heading in _LEFT else cell.rjust(width)
                  for heading, cell, width in zip(_HEADINGS, line, widths, strict=True)).rstrip()
        for line in text
    )  # fmt: skip
    return (
        f"{table}\n\n{plan.macs:,} multiplications; at least {limit:,} cycles; program of {words:,} words; "
        f"{memory_bytes:,} bytes of global memory\n"
    )


def _cut(layer, tiles):
    """Ranges of channels and columns, rows of a band, and how the layer is joined with others."""
    if not tiles:
        return f"kernel {layer.kernel.name}" if layer.kernel else "moves"
    part, split = tiles[0]
    text = [f"{len(tiles)} ranges"] if len(tiles) > 1 else []
    text.append(f"{split.rows} rows")
    if split.depth > 1:
        text.append(f"{split.depth} buffers")
    if any(isinstance(place, Cut) and place.gap for place in part.sources):
        text.append("gaps")
    if isinstance(layer.output, Held):
        text.append("stays")
    return ", ".join(text)


def _weights(tiles):
    """How weights are loaded: all at once, or in units through a number of buffers."""
    if not tiles or not tiles[0][1].image.size:
        return ""
    split = tiles[0][1]
    units = f"{len(split.units)} units" if len(split.units) > 1 else "all"
    return units if split.resident else f"{units}, {split.slots} buffers"


def _share(macs, cycles, machine):
    """Multiplications as a share of what the engine can do in ``cycles``, as text."""
    return f"{100 * macs / cycles / machine.conv.peak:.1f} %" if macs else ""
