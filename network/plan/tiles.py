"""How a layer is cut so that it fits shared memory: bands of rows, and units of weights (docs/network.md, "Tiles")."""

from collections import Counter
from dataclasses import dataclass, replace
from math import ceil, gcd, inf

from tilewright.spec.conv import CHANNELS_AT_ONCE

from ..graph import node_error
from ..lower.places import BLOCK, LINE, Cut, Held, as_cut, padded
from .costs import FOLLOWS, HANDED, BandCosts, job_cost, moved, rows_needed, transfer_cycles
from .cuts import MOST, cut_layer, legal, strided, with_gaps
from .shares import chunk, row_spans
from .weights import Image, equal_tables

__all__ = ["ROWS", "Split", "Tiler", "held_bytes"]

#: How cores share a layer: each makes some rows, or some channels, of the output.
ROWS, CHANNELS = "rows", "channels"

#: Cycles from the end of a job until the access unit has the load that waited for it.
_ISSUE = 40
#: Cycles until the first core knows that another one is ready for a multicast.
_TOLD = 150
#: Writes of shared memory per cycle, of bus words and of results: two, unless they need the same bank.
_WRITES = 1.9
#: A layer that takes at most this many times the engine's cycles is not cut any further.
_GOOD = 1.03
#: Numbers of ranges of channels, and of columns, that are tried; the further ones if nothing fits.
_CHANNEL_CUTS = (1, 2, 3, 4, 6, 8, 12)
_COLUMN_CUTS = (1, 2, 3, 4, 6, 8, 12, 16, 28, 56)
_MORE_CHANNEL_CUTS = (16, 32)
#: Units of weights take at most the free memory divided by one of these.
_SHARES = (1, 2, 3, 4, 8, 16)
#: Fields of a part that decide how it is cut.
_SHAPES = ("operation", "source", "channels", "out_channels", "rows", "columns", "kernel", "stride", "dilation",
           "origin", "blind", "weight_start")  # fmt: skip
#: The search over ranges of channels ends after this number of choices that are no improvement.
_WORSE = 3
#: The alignment of a range's first channel decides how its boxes are loaded, up to this many bytes.
_MOST_ALIGNED = 128
#: Numbers of bands that are tried.
_BANDS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 19, 22, 28, 32, 38, 45, 56, 75, 112, 150, 224)


@dataclass(frozen=True, eq=False)
class Split:
    """How a layer is cut to bands of rows and units of weights, with the expected cycles.

    Attributes
    ----------
    rows : int
        Output rows of a band.
    image : Image
        Weights and tables.
    units : Units
        The weights, as they are loaded.
    resident : bool
        All units stay in shared memory.
    slots : int
        Buffers for units that are not resident.
    depth : int
        Buffers of each source and of the output.
    input_bytes : tuple of int
        Bytes of a buffer of each source.
    output_bytes : int
    between_bytes : int
        Bytes of the tensor between two layers that are done together.
    span : (int, int)
        Output rows that the core makes: the first one and the end.
    layout : Split or None
        The one whose buffers these are, if another core's: its are as large or larger.
    cycles, ends : int
        Expected cycles, and those of them at both ends, which another range of the layer hides, or the next layer if it
        does not need the last results.
    """

    rows: int
    image: Image
    units: tuple
    resident: bool
    slots: int
    depth: int
    input_bytes: tuple
    output_bytes: int
    span: tuple[int, int]
    between_bytes: int = 0
    layout: "Split | None" = None
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
        """Every band in order: image, first row, end."""
        start, end = self.span
        return [(image, first, min(first + self.rows, end))
                for image in range(layer.output.batch) for first in range(start, end, self.rows)]  # fmt: skip


def held_bytes(layer):
    """Bytes of the tensors that a layer reads in shared memory where they were made, and of the output if it stays."""
    sources = {place.name: place.size for place in layer.brought if isinstance(place, Held)}
    output = layer.sums.output if layer.sums else layer.output
    output_bytes = output.size if isinstance(output, Held) else 0
    return padded(sum(sources.values()), LINE), padded(output_bytes, LINE)


class Tiler:
    """Cuts layers to fit shared memory less ``reserved`` bytes. Layers of equal shapes are cut once.

    Parameters
    ----------
    machine : Machine
    reserved : int
    """

    def __init__(self, machine, reserved):
        self.machine, self.room = machine, machine.smem_bytes - reserved
        self._cuts, self._splits = {}, {}

    def tiles(self, layer):
        """What the first core does of a layer, a list of (layer, :class:`Split`).

        There is one, or several with fewer channels or columns each. ModelError with its sizes if nothing fits.
        """
        return self.shares(layer)[0]

    def shares(self, layer):
        """For each core such a list; empty for a core without work."""
        if self.cycles(layer) is None:
            raise self._too_large(layer)
        (*cuts, way), _ = self._cuts[_signature(layer)]
        held, cores = sum(held_bytes(layer)), self.machine.cores
        if way == CHANNELS:
            ranges = self._cut(layer, cuts[0] * cores, *cuts[1:])
            common = _common(ranges, cores)
            own = [(part, self._split(part, held, common)) for part in _of_core(ranges, (0, cores))]
            others = [[(part, self._like(part, *first) or self._split(part, held, common))
                       for first, part in zip(own, _of_core(ranges, (core, cores)), strict=False)]
                      for core in range(1, cores)]  # fmt: skip
            return [own, *others]
        parts = [(part, self._split(part, held)) for part in self._cut(layer, *cuts)]
        return [[(part, replace(split, span=span)) for part, split in parts if span[0] < span[1]]
                for span in self._spans(layer)]  # fmt: skip

    def way(self, layer):
        """How cores share a layer: ROWS or CHANNELS."""
        return self._cuts[_signature(layer)][0][-1]

    def cycles(self, layer):
        """Expected cycles of a layer; None if nothing fits."""
        key = _signature(layer)
        if key not in self._cuts:
            ways = (ROWS, CHANNELS) if self.machine.cores > 1 and not self.machine.separate else (ROWS,)
            found = [best for way in ways if (best := self._best_cuts(layer, way))]
            self._cuts[key] = min(found, key=lambda best: best[1], default=None)
        return self._cuts[key] and self._cuts[key][1]

    def _cut(self, layer, channels, columns, gaps):
        """A layer in ranges of channels and of columns, with or without gaps between pixels."""
        stepped = strided(layer)
        layer = stepped if legal(stepped, self.machine) else layer
        unit = self.machine.conv.row_bytes
        unit = unit if self.machine.cores == 1 else min(unit, BLOCK)
        parts = cut_layer(layer, channels, columns, unit) if (channels, columns) != (1, 1) else [layer]
        return _same_gaps([with_gaps(part, self.machine.conv) for part in parts]) if gaps else parts

    def _best_cuts(self, layer, way):
        """The best numbers of ranges of channels and of columns, whether with gaps, ``way``, and the cycles.

        Channels are those of a core if cores share a layer by channels. None if nothing fits.
        """
        output, costs, before, least = layer.output, {}, None, inf
        whole = any(part.element * sum(part.out_channels) > output.channels for part in layer.parts)
        needed = min(self._needed(layer, gaps) for gaps in (False, True))
        needed /= 1 if self.machine.separate else self.machine.cores
        ranges = self.machine.cores if way == CHANNELS else 1
        for columns in _COLUMN_CUTS:
            worse = 0
            for channels in (*_CHANNEL_CUTS, *_MORE_CHANNEL_CUTS):
                all_channels = ranges * channels
                if columns > output.width or all_channels > ceil(output.channels / self.machine.conv.row_bytes):
                    continue
                if (all_channels > 1 and output.element > 1) or (whole and (all_channels, columns) != (1, 1)):
                    continue  # sums of 32 bits are cut to units of weights alone
                if layer.sums and (columns > 1 or (channels > 1 and layer.sums.sources[0].row_pitch > output.channels)):
                    continue  # a line of the sums is whole pixels, or some channels of one
                if costs and channels in _MORE_CHANNEL_CUTS:
                    break
                for gaps in (False, True):
                    cycles = self._cost(layer, channels, columns, gaps, way)
                    if cycles is not None:
                        costs[channels, columns, gaps] = cycles
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
        return ((*best, way), costs[best]) if best else None

    def _needed(self, layer, gaps):
        """Cycles of the engine if each part is one job."""
        conv, (layer,) = self.machine.conv, self._cut(layer, 1, 1, gaps)
        jobs = Counter((kind, part.out_channels[1]) for kind, (_, part) in zip(layer.kinds, layer.stages, strict=True))
        costs = ((layer.stages[kind], channels, count) for (kind, channels), count in jobs.items())
        return layer.output.batch * sum(count * job_cost(stage, part, channels, part.rows, conv).cycles
                                        for (stage, part), channels, count in costs)  # fmt: skip

    def _cost(self, layer, channels, columns, gaps, way):
        """Expected cycles of the first core's share of a layer with these cuts; None if it does not fit."""
        cores = self.machine.cores
        parts = self._cut(layer, channels * cores if way == CHANNELS else channels, columns, gaps)
        if parts != [layer] and not all(legal(part, self.machine) for part in parts):
            return None
        held = sum(held_bytes(layer))
        if way == CHANNELS:
            common = _common(parts, cores)
            splits = [self._split(part, held, common) for part in _of_core(parts, (0, cores))]
        else:
            splits = [self._split(part, held) for part in parts]
        if None in splits:
            return None
        return sum(split.cycles for split in splits) - sum(split.ends for split in splits[1:])

    def _split(self, layer, held, common=None):
        """The :class:`Split` of the fewest expected cycles; None if not even one row fits.

        ``held`` bytes of shared memory hold tensors that stay, also those that a range does not read. ``common`` says
        which sources are the same for all cores, if they share the layer by channels; None: they share it by rows.
        """
        key = _signature(layer), held, common
        if key not in self._splits:
            image, room = _image(layer), self.room - held
            spans = self._spans(layer) if common is None else row_spans(layer.output.height, 1)
            costs, height = _Costs(layer, self.machine, spans, common), spans[0][1]
            unit = layer.rows_of_sum if layer.sums else 1
            choices = sorted({ceil(height / bands / unit) * unit for bands in _BANDS if bands <= height} | {unit})
            splits = [split for rows in choices for split in _of_rows(layer, self.machine, image, costs, rows, room)]
            self._splits[key] = min(splits, key=lambda split: split.cycles, default=None)
        best = self._splits[key]
        return best and replace(best, image=_image(layer))

    def _like(self, layer, first, split):
        """The :class:`Split` of a range in the buffers of ``split``, that of another one; None if it is larger."""
        if len(layer.sources) != len(first.sources):
            return None

        def like(size, place, other):
            return size // other.row_pitch * place.row_pitch

        image, step = _image(layer), self.machine.conv.slaves
        inputs = tuple(map(like, split.input_bytes, layer.sources, first.sources))
        between = like(split.between_bytes, layer.sources[0], first.sources[0]) if layer.first else 0
        output = like(split.output_bytes, layer.output, first.output)
        units = split.units
        if not split.resident and _signature(layer) != _signature(first):
            units = min((image.units(split.units.largest, cut) for cut in (step, 1)), key=lambda units: units.largest)
        elif _signature(layer) != _signature(first):
            units = image.units(image.size, step)
        mine = image.size, image.table_bytes, units.largest, *inputs, between, output
        theirs = (split.image.size, split.image.table_bytes, split.units.largest, *split.input_bytes,
                  split.between_bytes, split.output_bytes)  # fmt: skip
        if any(size > most for size, most in zip(mine, theirs, strict=True)):
            return None
        return replace(split, image=image, units=units, input_bytes=inputs, between_bytes=between, output_bytes=output,
                       layout=split)  # fmt: skip

    def _spans(self, layer):
        """The rows of each core that shares a layer by rows."""
        height, cores = layer.output.height, self.machine.cores
        return row_spans(height, 1) * cores if self.machine.separate else row_spans(height, cores)

    def _too_large(self, layer):
        spans = row_spans(layer.output.height, 1)
        split = next(_candidates(layer, self.machine, _image(layer), spans, 1, 0))
        return node_error(
            layer.name,
            layer.operator,
            f"a row takes {sum(split.input_bytes)} bytes of input, {split.output_bytes} of output and "
            f"{split.units.largest + split.image.table_bytes} of weights, more than the {self.room} bytes of shared "
            f"memory, and it cannot be cut further",
        )


class _Costs(BandCosts):
    """Costs of bands of the first core, and machines with what it gets of the port.

    Cores that share a layer by rows get its weights by multicast if all have rows; those that share it by channels get
    what is common.
    """

    def __init__(self, layer, machine, spans, common):
        super().__init__(layer, machine.conv, spans)
        self.machine, self.spans, share = machine, spans, machine.share
        busy = spans[-1][0] < spans[-1][1]
        self.weights = machine if common is None and busy else share
        self.pixels = [machine if each else share for each in common or [False] * len(layer.sources)]
        self.results = share


def _same_gaps(ranges):
    """Ranges with the gaps of the first one in what all of them read."""
    first, *others = ranges
    given = {replace(as_cut(place), gap=0): place for place in first.sources if not isinstance(place, Held)}
    if first.first or not given:
        return ranges

    def same(place):
        return place if isinstance(place, Held) else given.get(replace(as_cut(place), gap=0), place)

    return [first, *(replace(part, sources=tuple(map(same, part.sources))) for part in others)]


def _common(ranges, cores):
    """Which sources of ranges are the same for the first and the last core, a tuple."""
    first, last = (_of_core(ranges, (core, cores))[:1] for core in (0, cores - 1))
    if not last or len(first[0].sources) != len(last[0].sources):
        return (False,) * len(first[0].sources)
    return tuple(one == other for one, other in zip(first[0].sources, last[0].sources, strict=True))


def _of_core(ranges, share):
    """The ranges of one core: those of some ranges of channels, with all their columns."""
    channels = list(dict.fromkeys(as_cut(part.output).first_channel for part in ranges))
    own = chunk(channels, share)
    return [part for part in ranges if as_cut(part.output).first_channel in own]


def _image(layer):
    """Weights and tables of all stages."""
    return Image([part for _, part in layer.stages])


def _signature(layer):
    """Everything that decides how a layer is cut, hashable."""
    parts = tuple(
        (*(getattr(part, name) for name in _SHAPES), part.operands,
         *(None if array is None else array.shape for array in (part.weights, part.table, part.function)))
        for part in layer.parts
    )  # fmt: skip
    places = tuple((type(place), place.batch, place.height, place.width, place.channels, isinstance(place, Cut) and
                    (gcd(place.first_channel, _MOST_ALIGNED), place.base.channels, place.gap, place.step))
                   for place in (layer.output, *layer.sources))  # fmt: skip
    tables = equal_tables([part for _, part in layer.stages])
    return parts, tables, places, layer.first and _signature(layer.first), layer.sums and _signature(layer.sums)


def _of_rows(layer, machine, image, costs, rows, room):
    """Splits with bands of ``rows`` that fit, with their expected cycles."""
    for split in _candidates(layer, machine, image, costs.spans, rows, room):
        if split.room <= room:
            cycles, ends = _expected(layer, split, costs, room)
            yield replace(split, cycles=cycles, ends=ends)


def _candidates(layer, machine, image, spans, rows, room):
    """Splits with bands of ``rows``, whether they fit or not."""
    bands = ceil(spans[0][1] / rows)
    needed = zip(layer.sources, rows_needed(layer, rows, spans), strict=True)
    inputs = [0 if isinstance(place, Held) else count * place.row_pitch for place, count in needed]
    output_bytes = 0 if isinstance(layer.output, Held) else rows * layer.output.row_pitch
    between, inputs = (inputs[0], [0, *inputs[1:]]) if layer.first else (0, inputs)
    cuts = zip((layer.output, *layer.brought), (output_bytes, *inputs[bool(layer.first) :]), strict=True)
    whole = layer.computed_weights  # loaded by several boxes if they have many rows
    if any(place not in whole and isinstance(place, Cut) and (size // place.row_pitch - 1) * place.step[0] >= MOST
           for place, size in cuts):  # fmt: skip
        return
    step = machine.conv.slaves * CHANNELS_AT_ONCE
    several = bands * layer.output.batch > 1
    for depth in (3, 2, 1) if several else (1,):
        common = {"rows": rows, "image": image, "depth": depth, "input_bytes": tuple(inputs),
                  "output_bytes": output_bytes, "between_bytes": between, "span": spans[0]}  # fmt: skip
        free = room - Split(**common, units=image.units(1 << 40, step), resident=False, slots=0).room
        weights = image.size - image.table_bytes
        if weights <= free:
            for share in (1, 2, 4, 8) if not (several or layer.first) and weights > 4096 else (1,):
                units = image.units(max(weights // share, 1024), step)
                yield Split(**common, units=units, resident=True, slots=0)
            continue
        if layer.first:
            continue  # both have all of their weights at once
        tried = []
        for share in _SHARES:
            for cut in (step, machine.conv.slaves, 1):
                units = image.units(max(free // share, 1), cut)
                if not any(units is other for other in tried):
                    tried.append(units)
                    slots = max(1, min(free // max(units.largest, 1), 4))
                    yield Split(**common, units=units, resident=False, slots=slots)
                if units.largest <= free // share:
                    break


def _in_turn(work, load, stored, soon, buffers):
    """Cycles of each of many jobs whose buffers are stored, and loaded again, when the job has ended.

    The bus alternates between loads and stores of different buffers; stores take ``stored`` cycles.
    """
    return max(load, ceil((work + max(load * 5 / 4, stored) + soon) / buffers))


def _bus(size, machine):
    """Cycles of the bus for ``size`` contiguous bytes."""
    return transfer_cycles(None, size, machine)


def _expected(layer, split, costs, room):
    """Expected cycles of a layer, and how many of them are at its ends.

    A band, or each unit if weights do not stay, takes as long as the longest of its loads, jobs and stores.
    """
    machine, height = costs.machine, costs.spans[0][1]
    soon = machine.latency + _ISSUE + HANDED + (_TOLD if machine.cores > 1 else 0)
    units = [(jobs, last, _bus(size, costs.weights), number) for jobs, last, size, number in costs.units(split.units)]
    weights = sum(load * number for *_, load, number in units)
    loads = list(zip(layer.sources, split.input_bytes, costs.pixels, strict=True))
    brought = sum(transfer_cycles(*load) for load in loads)
    stored = transfer_cycles(layer.output, split.output_bytes, costs.results)
    # What shared memory is busy for, whatever the share of the port.
    near_weights = sum(_bus(size, machine) * number for *_, size, number in costs.units(split.units))
    near_brought = sum(transfer_cycles(place, size, machine) for place, size, _ in loads)
    near_stored = transfer_cycles(layer.output, split.output_bytes, machine)
    words = moved(layer.output, split.output_bytes, machine.bus_bytes)
    total, count = 0, ceil(height / split.rows) * layer.output.batch
    for rows, again, repeated in costs.bands(split.rows, split.resident):
        work, own_cycles, reads, writes, before = 0, 0, 0, 0, 0
        for jobs, last, load, number in units:
            job = costs.turn(rows)
            for (part, channels), times in jobs.items():
                cost = costs.job(part, channels, rows)
                job += times * cost.cycles
                reads, writes = reads + number * times * cost.reads, writes + number * times * cost.writes
                if layer.stages[part][0] in (layer, layer.sums):
                    own_cycles += number * times * cost.cycles
                else:
                    before += times * (cost.reads - cost.cycles)
            if again and not split.resident:
                cost = costs.job(*last, rows)
                load = _in_turn(job - costs.turn(rows) - cost.cycles + cost.held, load, 0, soon, split.slots)
            work += number * (max(job, load) if again else job)
        # Shared memory reads for jobs and stores alternately, and writes loads and results. Each word of a store
        # counts, though a line has several: a layer that reads nearly always is slower than its reads.
        landed = near_brought + (near_weights if again else 0)
        beside = stored + near_stored * min(reads / max(work, 1), 1)
        port = max(brought + (weights if again else 0), stored)
        ports = max(reads + near_stored, writes, landed, ceil((writes + landed) / _WRITES), port)
        # Ranges of one band use two sets of buffers alternately, also for weights.
        turns, load = (split.depth, brought) if count > 1 else (2, brought + weights)
        turn = _in_turn(max(work, ports), load, beside, soon, turns) if turns > 1 else 0
        if turns == 1 and layer.first:
            # Loads and stores of one of both layers go on while the other one is computed.
            turn = work + max(load * 5 // 4 + soon - own_cycles, 0) + max(beside + soon - work + own_cycles, 0)
            # The first one reads while results are stored, a line of several words at a time.
            turn += max(before + words * machine.bus_bytes // LINE, 0)
        total += repeated * max(work, ports, turn)
    # A tensor that stays in shared memory is not loaded or stored, and the next job is queued before it is complete.
    first = FOLLOWS if all(isinstance(place, Held) for place in layer.brought) else brought + machine.latency + HANDED
    ends = first + (0 if isinstance(layer.output, Held) else stored + machine.latency)
    total *= layer.output.batch
    if layer.sums and split.depth == 1:
        total += FOLLOWS * count
    if split.depth == 1 and not layer.first:
        total += ends * (count - 1)
    # With half of the memory, the first weights are loaded during the layer before, and the next ones during this one.
    if split.room <= room // 2:
        return total + ends, ends
    first_bytes = split.image.table_bytes + split.units[0].end - split.units[0].start
    waited = _bus(first_bytes, costs.weights) + machine.latency
    return total + ends + 2 * waited + (HANDED if first == FOLLOWS else 0), 0
