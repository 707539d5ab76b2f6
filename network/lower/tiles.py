"""How a layer is cut so that it fits shared memory: bands of rows, and units of weights (docs/network.md, "Tiles")."""

from collections import Counter
from dataclasses import dataclass, replace
from math import ceil, gcd

from tilewright.golden.spec.conv.params import CHANNELS_AT_ONCE

from ..errors import ModelError
from .costs import HANDED, Cost, job_cost, moved
from .cuts import MOST, cut_layer, legal, strided, with_gaps
from .places import Cut, padded
from .weights import Image

__all__ = ["Split", "Tiler", "band_rows"]

#: Cycles from the end of a job until the access unit has the load that waited for it.
_ISSUE = 40
#: Writes of shared memory in a cycle, of bus words and of results: two, unless they meet in a bank.
_WRITES = 1.6
#: By how much more than the engine needs a layer may take before it is cut to fewer channels.
_GOOD = 1.03
#: Ranges of channels, and of columns, that are looked at.
_CHANNEL_CUTS = (1, 2, 3, 4, 6)
_COLUMN_CUTS = (1, 2, 3, 4, 6, 8, 12, 16, 28, 56)
_MORE_CHANNEL_CUTS = (8, 16, 32)
#: Shares of the room that weights may take, as parts: units of all of it, of a half, and so on.
_SHARES = (2, 3, 4, 8, 16)
#: Fields of a part that decide how it is cut.
_SHAPES = ("operation", "source", "channels", "out_channels", "rows", "columns", "kernel", "stride", "dilation",
           "origin", "blind")  # fmt: skip
#: What the first channel of a range is a multiple of decides how its boxes are brought, up to here.
_MOST_ALIGNED = 128
#: Bands whose cutting is looked at.
_BANDS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 19, 22, 28, 32, 38, 45, 56, 75, 112, 150, 224)


@dataclass(frozen=True, eq=False)
class Split:
    """A layer cut to bands.

    Attributes
    ----------
    rows : int
        Output rows of a band.
    image : Image
    units : Units
        The weights, in what is loaded at once.
    resident : bool
        All units stay in shared memory.
    slots : int
        Otherwise: buffers for units.
    depth : int
        Buffers of each source and of the output.
    input_bytes : tuple of int
        Bytes of a buffer of each source.
    output_bytes : int
    cycles, ends : int
        Expected; of them those that another range of the layer before this one hides.
    """

    rows: int
    image: Image
    units: tuple
    resident: bool
    slots: int
    depth: int
    input_bytes: tuple
    output_bytes: int
    cycles: int = 0
    ends: int = 0

    @property
    def weight_room(self):
        """Bytes of shared memory for tables and weights."""
        image = self.image
        return image.size if self.resident else image.table_bytes + self.slots * self.units.largest

    @property
    def room(self):
        """Bytes of shared memory in all."""
        return padded(self.weight_room, 128) + self.depth * (
            sum(padded(size, 128) for size in self.input_bytes) + padded(self.output_bytes, 128)
        )

    def bands(self, layer):
        """Image, first row and the one behind the last of every band, in order."""
        height = layer.output.height
        return [(image, first, min(first + self.rows, height))
                for image in range(layer.output.batch) for first in range(0, height, self.rows)]  # fmt: skip


def band_rows(layer, source, rows):
    """Rows of a source that output ``rows`` need, from the first to behind the last."""
    needs = []
    for part in layer.parts:
        inside = part.rows[0] < rows[1] and rows[0] < part.rows[1]
        if part.source == source and inside and not part.blind:
            needs.append(part.input_rows(rows, layer.sources[source].height))
        if part.addition and part.addition.source == source and inside:
            needs.append((max(rows[0], part.rows[0]), min(rows[1], part.rows[1])))
    return (min(low for low, _ in needs), max(high for _, high in needs)) if needs else (0, 0)


class Tiler:
    """Cuts layers for shared memory less ``reserved`` bytes; layers of equal shapes are cut alike.

    Parameters
    ----------
    machine : Machine
    reserved : int
    """

    def __init__(self, machine, reserved):
        self.machine, self.room = machine, machine.smem_bytes - reserved
        self._cuts, self._splits = {}, {}

    def tiles(self, layer):
        """A layer as layers with their :class:`Split`, a list: one, or of fewer channels or columns each.

        Refused with its sizes where nothing fits.
        """
        key = _signature(layer)
        if key not in self._cuts:
            self._cuts[key] = self._best_cuts(layer)
        return [(part, self._split(part)) for part in self._cut(layer, *self._cuts[key])]

    def _cut(self, layer, channels, columns, gaps):
        """A layer in ranges of channels and of columns, with or without gaps between pixels."""
        stepped = strided(layer)
        layer = stepped if legal(stepped, self.machine) else layer
        cut = (channels, columns) != (1, 1)
        parts = cut_layer(layer, channels, columns, self.machine.conv.row_bytes) if cut else [layer]
        return [with_gaps(part, self.machine.conv) for part in parts] if gaps else parts

    def _best_cuts(self, layer):
        """Into how many ranges of channels and of columns a layer is cut best, and whether with gaps."""
        output, costs, before = layer.output, {}, None
        needed = min(self._needed(layer, gaps) for gaps in (False, True))
        for columns in _COLUMN_CUTS:
            for channels in (*_CHANNEL_CUTS, *_MORE_CHANNEL_CUTS):
                if columns > output.width or channels > ceil(output.channels / self.machine.conv.row_bytes):
                    continue
                if costs and channels in _MORE_CHANNEL_CUTS:
                    break
                for gaps in (False, True):
                    found = self._cost(layer, channels, columns, gaps)
                    if found is not None:
                        costs[channels, columns, gaps] = found
                if costs and min(costs.values()) <= _GOOD * needed:
                    break
            best = min(costs, key=costs.get, default=None)
            # More columns are tried as long as they help.
            if best and (best == before or costs[best] <= _GOOD * needed):
                return best
            before = best
        if before:
            return before
        raise ModelError(self._too_large(layer))

    def _needed(self, layer, gaps):
        """Cycles of a layer as one job of each part."""
        conv, (layer,) = self.machine.conv, self._cut(layer, 1, 1, gaps)
        jobs = (job_cost(layer, part, part.out_channels[1], part.rows, conv).cycles for part in layer.parts)
        return layer.output.batch * sum(jobs)

    def _cost(self, layer, *cuts):
        """Expected cycles of a layer that is cut so; None if it does not fit."""
        parts = self._cut(layer, *cuts)
        if parts != [layer] and not all(legal(part, self.machine) for part in parts):
            return None
        splits = [self._split(part) for part in parts]
        return None if None in splits else sum(one.cycles for one in splits) - sum(one.ends for one in splits[1:])

    def _split(self, layer):
        """The :class:`Split` of the fewest expected cycles; None if not even a row fits."""
        key = _signature(layer)
        if key not in self._splits:
            image, height = Image(layer.parts), layer.output.height
            choices = sorted({ceil(height / bands) for bands in _BANDS if bands <= height} | {1})
            found = [one for rows in choices for one in _of_rows(layer, self.machine, image, rows, self.room)]
            self._splits[key] = min(found, key=lambda one: one.cycles, default=None)
        found = self._splits[key]
        return found and replace(found, image=Image(layer.parts))

    def _too_large(self, layer):
        one = next(_candidates(layer, self.machine, Image(layer.parts), 1, 0))
        return (
            f"node {layer.name} ({layer.operator}): a row takes {sum(one.input_bytes)} bytes of input, "
            f"{one.output_bytes} of output and {one.units.largest + one.image.table_bytes} of weights, "
            f"more than the {self.room} bytes of shared memory, and it cannot be cut further"
        )


def _signature(layer):
    """All that decides how a layer is cut."""
    parts = tuple(
        (*(getattr(part, name) for name in _SHAPES), part.addition and part.addition.source,
         *(None if array is None else array.shape for array in (part.weights, part.table)))
        for part in layer.parts
    )  # fmt: skip
    places = tuple((place.batch, place.height, place.width, place.channels, isinstance(place, Cut) and
                    (gcd(place.first_channel, _MOST_ALIGNED), place.base.channels, place.gap, place.step))
                   for place in (layer.output, *layer.sources))  # fmt: skip
    return parts, places


def _of_rows(layer, machine, image, rows, room):
    """Splits with so many rows in a band that fit."""
    for one in _candidates(layer, machine, image, rows, room):
        if one.room <= room:
            cycles, ends = _expected(layer, one, machine, room)
            yield replace(one, cycles=cycles, ends=ends)


def _candidates(layer, machine, image, rows, room):
    """Splits with so many rows in a band, whether they fit or not."""
    height = layer.output.height
    bands = ceil(height / rows)
    inputs = []
    for number, place in enumerate(layer.sources):
        ends = (band_rows(layer, number, (first, min(first + rows, height))) for first in range(0, height, rows))
        inputs.append(max(high - low for low, high in ends) * place.row_pitch)
    made = rows * layer.output.row_pitch
    cuts = zip((layer.output, *layer.sources), (made, *inputs), strict=True)
    if any(isinstance(place, Cut) and (size // place.row_pitch - 1) * place.step[0] >= MOST for place, size in cuts):
        return
    step = machine.conv.slaves * CHANNELS_AT_ONCE
    several = bands * layer.output.batch > 1
    for depth in (3, 2, 1) if several else (1,):
        common = {"rows": rows, "image": image, "depth": depth, "input_bytes": tuple(inputs), "output_bytes": made}
        left = room - Split(**common, units=image.units(1 << 40, step), resident=False, slots=0).room
        weights = image.size - image.table_bytes
        if weights <= left:
            for share in (1, 2, 4, 8) if not several and weights > 4096 else (1,):
                units = image.units(max(weights // share, 1024), step)
                yield Split(**common, units=units, resident=True, slots=0)
            continue
        seen = []
        for share in _SHARES:
            for cut in (step, machine.conv.slaves, 1):
                units = image.units(max(left // share, 1), cut)
                if not any(units is other for other in seen):
                    seen.append(units)
                    slots = max(2, min(left // max(units.largest, 1), 4))
                    yield Split(**common, units=units, resident=False, slots=slots)
                if units.largest <= left // share:
                    break


def _in_turn(work, load, stored, soon, buffers):
    """Cycles of each of many jobs, in buffers that are emptied, and filled again, when their job has ended.

    Loads take turns with results of the jobs of other buffers; how long stores take beside what these read is given.
    """
    return max(load, ceil((work + max(load * 5 / 4, stored) + soon) / buffers))


def _equal_bands(layer, one):
    """Rows of bands, whether their weights are brought for them, and how many are like them."""
    height, found = layer.output.height, Counter()
    examples = {}
    for first in range(0, height, one.rows):
        rows = first, min(first + one.rows, height)
        counts = tuple(min(rows[1], part.rows[1]) - max(rows[0], part.rows[0]) for part in layer.parts)
        key = counts, not (one.resident and first)
        found[key] += 1
        examples[key] = rows
    return [(examples[key], key[1], count) for key, count in found.items()]


def _bus(size, machine):
    """Cycles of the bus for so many bytes."""
    return ceil(size / machine.bus_bytes)


def _expected(layer, one, machine, room):
    """Expected cycles of a layer, and how many of them are at its ends, which the next range of the layer hides.

    Of each band, or unit where there are several, the longest of loads, jobs, stores.
    """
    conv, height, soon = machine.conv, layer.output.height, machine.latency + _ISSUE + HANDED
    kinds = {(pieces, _bus(size, machine)): count for (pieces, size), count in one.units.kinds.items()}
    weights = sum(load * count for (_, load), count in kinds.items())
    taken = zip(layer.sources, one.input_bytes, strict=True)
    brought = sum(moved(place, size, machine.bus_bytes) for place, size in taken)
    stored = moved(layer.output, one.output_bytes, machine.bus_bytes)
    total, count = 0, ceil(height / one.rows) * layer.output.batch
    for rows, again, repeated in _equal_bands(layer, one):
        work, ports = 0, Cost()
        for (pieces, load), number in kinds.items():
            jobs = [job_cost(layer, layer.parts[part], channels, rows, conv) for part, channels in pieces]
            job = sum(one.cycles for one in jobs)
            if again:
                job = max(job, load if one.resident else _in_turn(job, load, 0, soon, one.slots))
            work += number * job
            ports = sum(jobs * number, ports)
        # Shared memory reads for jobs and stores by turns, and writes what comes and what they make.
        landed = brought + (weights if again else 0)
        beside = stored * (1 + min(ports.reads / max(work, 1), 1))
        ports = max(ports.reads + stored, ports.writes, landed, ceil((ports.writes + landed) / _WRITES))
        # Of ranges with one band every second one has the same buffers, also for weights.
        turns, load = (one.depth, brought) if count > 1 else (2, brought + weights)
        turn = _in_turn(max(work, ports), load, beside, soon, turns) if turns > 1 else 0
        total += repeated * max(work, ports, turn)
    ends = brought + stored + 2 * machine.latency + HANDED
    total *= layer.output.batch
    if one.depth == 1:
        total += ends * (count - 1)
    # What leaves room has its first weights loaded during the layer before it, and the next one likewise.
    if one.room <= room // 2:
        return total + ends, ends
    return total + ends + 2 * (_bus(one.units[0].end - one.units[0].start, machine) + machine.latency), 0
