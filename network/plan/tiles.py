"""How a layer is cut so that it fits shared memory: bands of rows, and units of weights (docs/network.md, "Tiles")."""

from collections import Counter
from dataclasses import dataclass, replace
from math import ceil, gcd, inf

from tilewright.spec.conv import CHANNELS_AT_ONCE

from ..errors import node_error
from ..lower.places import LINE, Cut, Held, padded
from .costs import FOLLOWS, HANDED, BandCosts, job_cost, moved, rows_needed, transfer_cycles
from .cuts import MOST, cut_layer, legal, strided, with_gaps
from .weights import Image, equal_tables

__all__ = ["Split", "Tiler", "held_bytes"]

#: Cycles from the end of a job until the access unit has the load that waited for it.
_ISSUE = 40
#: Writes of shared memory in a cycle, of bus words and of results: two, unless they meet in a bank.
_WRITES = 1.9
#: By how much more than the engine needs a layer may take before it is cut to fewer channels.
_GOOD = 1.03
#: Ranges of channels, and of columns, that are looked at.
_CHANNEL_CUTS = (1, 2, 3, 4, 6, 8, 12)
_COLUMN_CUTS = (1, 2, 3, 4, 6, 8, 12, 16, 28, 56)
_MORE_CHANNEL_CUTS = (16, 32)
#: Shares of the room that weights may take, as parts: units of all of it, of a half, and so on.
_SHARES = (1, 2, 3, 4, 8, 16)
#: Fields of a part that decide how it is cut.
_SHAPES = ("operation", "source", "channels", "out_channels", "rows", "columns", "kernel", "stride", "dilation",
           "origin", "blind")  # fmt: skip
#: So many more ranges of channels in a row that cost more end the search.
_WORSE = 3
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
    between_bytes : int
        Bytes of what lies between two layers that are done together.
    cycles, ends : int
        Expected; of them those at both ends, which another range of the layer hides, or the next layer if it waits for
        none of the last results.
    """

    rows: int
    image: Image
    units: tuple
    resident: bool
    slots: int
    depth: int
    input_bytes: tuple
    output_bytes: int
    between_bytes: int = 0
    cycles: int = 0
    ends: int = 0

    @property
    def weight_room(self):
        """Bytes of shared memory for tables and weights."""
        image = self.image
        return image.size if self.resident else image.table_bytes + self.slots * self.units.largest

    @property
    def begins(self):
        """Bytes of shared memory for what the first job needs to begin."""
        weights = self.image.size if self.resident else self.image.table_bytes + self.units.largest
        return weights + sum(self.input_bytes) + self.between_bytes

    @property
    def room(self):
        """Bytes of shared memory in all."""
        return (
            padded(self.weight_room, LINE)
            + padded(self.between_bytes, LINE)
            + self.depth * (sum(padded(size, LINE) for size in self.input_bytes) + padded(self.output_bytes, LINE))
        )

    def bands(self, layer):
        """Image, first row and the one behind the last of every band, in order."""
        height = layer.output.height
        return [(image, first, min(first + self.rows, height))
                for image in range(layer.output.batch) for first in range(0, height, self.rows)]  # fmt: skip


def held_bytes(layer):
    """Bytes of shared memory that are taken by what a layer finds there, and by what it leaves there."""
    found = {place.name: place.size for place in layer.brought if isinstance(place, Held)}
    left = layer.output.size if isinstance(layer.output, Held) else 0
    return padded(sum(found.values()), LINE), padded(left, LINE)


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
        if self.cycles(layer) is None:
            raise self._too_large(layer)
        cuts, _ = self._cuts[_signature(layer)]
        held = sum(held_bytes(layer))
        return [(part, self._split(part, held)) for part in self._cut(layer, *cuts)]

    def cycles(self, layer):
        """Expected cycles of a layer; None if nothing fits."""
        key = _signature(layer)
        if key not in self._cuts:
            self._cuts[key] = self._best_cuts(layer)
        return self._cuts[key] and self._cuts[key][1]

    def _cut(self, layer, channels, columns, gaps):
        """A layer in ranges of channels and of columns, with or without gaps between pixels."""
        stepped = strided(layer)
        layer = stepped if legal(stepped, self.machine) else layer
        cut = (channels, columns) != (1, 1)
        parts = cut_layer(layer, channels, columns, self.machine.conv.row_bytes) if cut else [layer]
        return [with_gaps(part, self.machine.conv) for part in parts] if gaps else parts

    def _best_cuts(self, layer):
        """Into how many ranges of channels and of columns a layer is cut best, whether with gaps, and cycles.

        None if nothing fits.
        """
        output, costs, before, least = layer.output, {}, None, inf
        needed = min(self._needed(layer, gaps) for gaps in (False, True))
        for columns in _COLUMN_CUTS:
            worse = 0
            for channels in (*_CHANNEL_CUTS, *_MORE_CHANNEL_CUTS):
                if columns > output.width or channels > ceil(output.channels / self.machine.conv.row_bytes):
                    continue
                if channels > 1 and output.element > 1:
                    continue  # sums of 32 bits are cut to units of weights alone
                if costs and channels in _MORE_CHANNEL_CUTS:
                    break
                for gaps in (False, True):
                    found = self._cost(layer, channels, columns, gaps)
                    if found is not None:
                        costs[channels, columns, gaps] = found
                cheapest = min(costs.values(), default=inf)
                worse = worse + 1 if cheapest == least < inf else 0
                least = cheapest
                if worse == _WORSE or cheapest <= _GOOD * needed:
                    break
            best = min(costs, key=costs.get, default=None)
            # More columns are tried as long as they help.
            if best and (best == before or costs[best] <= _GOOD * needed):
                break
            before = best
        return (best, costs[best]) if best else None

    def _needed(self, layer, gaps):
        """Cycles of a layer as one job of each part."""
        conv, (layer,) = self.machine.conv, self._cut(layer, 1, 1, gaps)
        jobs = Counter((kind, part.out_channels[1]) for kind, (_, part) in zip(layer.kinds, layer.stages, strict=True))
        costs = ((layer.stages[kind], channels, count) for (kind, channels), count in jobs.items())
        return layer.output.batch * sum(count * job_cost(stage, part, channels, part.rows, conv).cycles
                                        for (stage, part), channels, count in costs)  # fmt: skip

    def _cost(self, layer, *cuts):
        """Expected cycles of a layer that is cut so; None if it does not fit."""
        parts = self._cut(layer, *cuts)
        if parts != [layer] and not all(legal(part, self.machine) for part in parts):
            return None
        held = sum(held_bytes(layer))
        splits = [self._split(part, held) for part in parts]
        return None if None in splits else sum(one.cycles for one in splits) - sum(one.ends for one in splits[1:])

    def _split(self, layer, held):
        """The :class:`Split` of the fewest expected cycles; None if not even a row fits.

        ``held`` bytes are taken by what stays in shared memory, also by sources that a range does not read.
        """
        key = _signature(layer), held
        if key not in self._splits:
            image, height, room = _image(layer), layer.output.height, self.room - held
            costs = BandCosts(layer, self.machine.conv)
            choices = sorted({ceil(height / bands) for bands in _BANDS if bands <= height} | {1})
            found = [one for rows in choices for one in _of_rows(layer, self.machine, image, costs, rows, room)]
            self._splits[key] = min(found, key=lambda one: one.cycles, default=None)
        found = self._splits[key]
        return found and replace(found, image=_image(layer))

    def _too_large(self, layer):
        one = next(_candidates(layer, self.machine, _image(layer), 1, 0))
        return node_error(
            layer.name,
            layer.operator,
            f"a row takes {sum(one.input_bytes)} bytes of input, {one.output_bytes} of output and "
            f"{one.units.largest + one.image.table_bytes} of weights, more than the {self.room} bytes of shared "
            f"memory, and it cannot be cut further",
        )


def _image(layer):
    """Weights and tables of all stages."""
    return Image([part for _, part in layer.stages])


def _signature(layer):
    """All that decides how a layer is cut."""
    parts = tuple(
        (*(getattr(part, name) for name in _SHAPES), part.addition and (part.addition.source,),
         *(None if array is None else array.shape for array in (part.weights, part.table)))
        for part in layer.parts
    )  # fmt: skip
    places = tuple((type(place), place.batch, place.height, place.width, place.channels, isinstance(place, Cut) and
                    (gcd(place.first_channel, _MOST_ALIGNED), place.base.channels, place.gap, place.step))
                   for place in (layer.output, *layer.sources))  # fmt: skip
    tables = equal_tables([part for _, part in layer.stages])
    return parts, tables, places, layer.first and _signature(layer.first)


def _of_rows(layer, machine, image, costs, rows, room):
    """Splits with so many rows in a band that fit."""
    for one in _candidates(layer, machine, image, rows, room):
        if one.room <= room:
            cycles, ends = _expected(layer, one, costs, machine, room)
            yield replace(one, cycles=cycles, ends=ends)


def _candidates(layer, machine, image, rows, room):
    """Splits with so many rows in a band, whether they fit or not."""
    height = layer.output.height
    bands = ceil(height / rows)
    needed = zip(layer.sources, rows_needed(layer, rows), strict=True)
    inputs = [0 if isinstance(place, Held) else count * place.row_pitch for place, count in needed]
    made = 0 if isinstance(layer.output, Held) else rows * layer.output.row_pitch
    between, inputs = (inputs[0], [0, *inputs[1:]]) if layer.first else (0, inputs)
    cuts = zip((layer.output, *layer.brought), (made, *inputs[bool(layer.first) :]), strict=True)
    if any(isinstance(place, Cut) and (size // place.row_pitch - 1) * place.step[0] >= MOST for place, size in cuts):
        return
    step = machine.conv.slaves * CHANNELS_AT_ONCE
    several = bands * layer.output.batch > 1
    for depth in (3, 2, 1) if several else (1,):
        common = {"rows": rows, "image": image, "depth": depth, "input_bytes": tuple(inputs), "output_bytes": made,
                  "between_bytes": between}  # fmt: skip
        left = room - Split(**common, units=image.units(1 << 40, step), resident=False, slots=0).room
        weights = image.size - image.table_bytes
        if weights <= left:
            for share in (1, 2, 4, 8) if not (several or layer.first) and weights > 4096 else (1,):
                units = image.units(max(weights // share, 1024), step)
                yield Split(**common, units=units, resident=True, slots=0)
            continue
        if layer.first:
            continue  # both have all of their weights at once
        seen = []
        for share in _SHARES:
            for cut in (step, machine.conv.slaves, 1):
                units = image.units(max(left // share, 1), cut)
                if not any(units is other for other in seen):
                    seen.append(units)
                    slots = max(1, min(left // max(units.largest, 1), 4))
                    yield Split(**common, units=units, resident=False, slots=slots)
                if units.largest <= left // share:
                    break


def _in_turn(work, load, stored, soon, buffers):
    """Cycles of each of many jobs, in buffers that are emptied, and filled again, when their job has ended.

    Loads take turns with results of the jobs of other buffers; how long stores take beside what these read is given.
    """
    return max(load, ceil((work + max(load * 5 / 4, stored) + soon) / buffers))


def _bus(size, machine):
    """Cycles of the bus for so many bytes."""
    return transfer_cycles(None, size, machine)


def _expected(layer, one, costs, machine, room):
    """Expected cycles of a layer, and how many of them are at its ends.

    Of each band, or unit where there are several, the longest of loads, jobs, stores.
    """
    height, soon = layer.output.height, machine.latency + _ISSUE + HANDED
    units = [(jobs, last, _bus(size, machine), number) for jobs, last, size, number in costs.units(one.units)]
    weights = sum(load * number for *_, load, number in units)
    taken = zip(layer.sources, one.input_bytes, strict=True)
    brought = sum(transfer_cycles(place, size, machine) for place, size in taken)
    stored = transfer_cycles(layer.output, one.output_bytes, machine)
    words = moved(layer.output, one.output_bytes, machine.bus_bytes)
    total, count = 0, ceil(height / one.rows) * layer.output.batch
    for rows, again, repeated in costs.bands(one.rows, one.resident):
        work, behind, reads, writes, before = 0, 0, 0, 0, 0
        for jobs, last, load, number in units:
            job = costs.turn(rows)
            for (part, channels), times in jobs.items():
                cost = costs.job(part, channels, rows)
                job += times * cost.cycles
                reads, writes = reads + number * times * cost.reads, writes + number * times * cost.writes
                if layer.stages[part][0] is layer:
                    behind += number * times * cost.cycles
                else:
                    before += times * (cost.reads - cost.cycles)
            if again and not one.resident:
                cost = costs.job(*last, rows)
                load = _in_turn(job - costs.turn(rows) - cost.cycles + cost.held, load, 0, soon, one.slots)
            work += number * (max(job, load) if again else job)
        # Shared memory reads for jobs and stores by turns, and writes what comes and what they make. Each word of a
        # store counts, though a line has several: a layer that reads nearly always is slower than its reads.
        landed = brought + (weights if again else 0)
        beside = stored * (1 + min(reads / max(work, 1), 1))
        ports = max(reads + stored, writes, landed, ceil((writes + landed) / _WRITES))
        # Of ranges with one band every second one has the same buffers, also for weights.
        turns, load = (one.depth, brought) if count > 1 else (2, brought + weights)
        turn = _in_turn(max(work, ports), load, beside, soon, turns) if turns > 1 else 0
        if turns == 1 and layer.first:
            # What one of both layers needs is brought, or taken away, while the other one works.
            turn = work + max(load * 5 // 4 + soon - behind, 0) + max(beside + soon - work + behind, 0)
            # The first one reads beside what is taken away, a line of several words at a time.
            turn += max(before + words * machine.bus_bytes // LINE, 0)
        total += repeated * max(work, ports, turn)
    # What stays in shared memory is neither taken away nor brought, and the next job is handed over before it is there.
    first = FOLLOWS if all(isinstance(place, Held) for place in layer.brought) else brought + machine.latency + HANDED
    ends = first + (0 if isinstance(layer.output, Held) else stored + machine.latency)
    total *= layer.output.batch
    if one.depth == 1 and not layer.first:
        total += ends * (count - 1)
    # What leaves room has its first weights loaded during the layer before it, and the next one likewise.
    if one.room <= room // 2:
        return total + ends, ends
    waited = _bus(one.image.table_bytes + one.units[0].end - one.units[0].start, machine) + machine.latency
    return total + ends + 2 * waited + (HANDED if first == FOLLOWS else 0), 0
