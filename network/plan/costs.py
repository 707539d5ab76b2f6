"""What jobs are expected to take: cycles of the engine and of shared memory's ports (docs/network.md, "Tiles")."""

from collections import Counter
from functools import lru_cache
from math import ceil, gcd
from typing import NamedTuple

from tilewright.golden import ConvShape, convolution_plans, read_share, request_cycles
from tilewright.spec.conv import CHANNELS_AT_ONCE

from ..lower.layers import reach
from ..lower.places import Cut

__all__ = ["FOLLOWS", "HANDED", "BandCosts", "Cost", "band_rows", "cheapest_gap", "job_cost", "moved", "plan_part",
           "rows_needed", "stage_rows", "transfer_cycles"]  # fmt: skip

#: Cycles from the last sums of a job to those of the next one, and from its last result to the next one's, which
#: begins when it has ended.
_SUMS_CYCLES, _END_CYCLES = 12, 66
#: Cycles from request to request for weights, beside those of rows.
_HELD = 1.5
#: A job takes so long at least: the next one is checked and set up meanwhile.
_LEAST_CYCLES = 300
#: Cycles from when what a job waited for is there until it reads: it is handed over, checked and set up.
HANDED = 300
#: Cycles that are lost where one job reads what the one before writes, and the other way round behind it.
FOLLOWS = 150
#: Bytes that shared memory reads in a cycle, and those of a bank.
_LINE, _CHUNK = 128, 16
#: Cycles from a burst to the next one in its place, beside the latency of memory.
_ANSWER = 5
#: Cycles from a request for rows until their place in the first buffer is free again.
_TURN = 23
#: Bytes of results that are read in a cycle, to be taken away.
_STORED = 128
#: Bytes between pixels that are thought of: none, and those that make them a number of chunks.
_GAPS = range(0, _LINE, _CHUNK // 2)


class Cost(NamedTuple):
    """Cycles of a job, or of several.

    Attributes
    ----------
    cycles : int
        Of the engine, if shared memory is its own.
    reads, writes : int
        In which shared memory is read, and written.
    held : int
        From the beginning until all weights have been read.
    """

    cycles: int = 0
    reads: int = 0
    writes: int = 0
    held: int = 0

    def __add__(self, other):
        return Cost(*map(sum, zip(self, other, strict=True)))


def plan_part(part, channels, rows, columns, pixel, conv):
    """The plan of a job of a part with so many channels and points, and its :class:`Cost`.

    ``pixel`` is the number of bytes from one pixel to the next in shared memory.
    """
    deep = channels if part.operation.lanes else part.channels[1]
    adjoin, table, add = pixel == part.channels[1], part.table is not None, part.addition is not None
    windows = part.kernel[::-1], part.stride[::-1], part.dilation[::-1]
    return _planned(part.operation, (deep, channels, rows, columns), windows, (adjoin, table, add), pixel, conv)


@lru_cache(maxsize=1 << 16)
def _planned(operation, sizes, windows, flags, pixel, conv):
    names = "adjoin", "table", "add"
    flags = dict(zip(names, flags, strict=True))
    shape = ConvShape(1, 65536, 65536, *sizes, *windows, operation=operation, **flags)
    best = None
    # Those that multiply for fewer cycles first, so that most of the others need not be costed.
    for plan in sorted(convolution_plans(shape, conv), key=lambda plan: plan.mac_cycles):
        if best and plan.mac_cycles + _SUMS_CYCLES > best[0][0]:
            break
        if plan.raster and not plan.crosses_lines:
            continue  # no different from the one without
        cost = _cost(plan, pixel)
        # Of equal ones those of fewer steps, for each of which weights are fetched by themselves; larger blocks.
        order = _beside_stores(plan, cost), plan.steps, plan.merge, -plan.block_bytes, plan.raster
        if best is None or order < best[0]:
            best = order, plan, cost
    return best[1:]


def _beside_stores(plan, cost):
    """Cycles of a job of many, if results are read to be taken away meanwhile."""
    return max(cost.cycles, cost.reads + ceil(plan.shape.results / _STORED))


def job_cost(layer, part, channels, rows, conv):
    """The :class:`Cost` of a job of so many channels of a part, with those of its output rows that are in ``rows``."""
    count = min(rows[1], part.rows[1]) - max(rows[0], part.rows[0])
    if count <= 0:
        return Cost()
    pixel = 0 if part.blind else layer.sources[part.source].pixel_pitch
    return plan_part(part, channels, count, part.columns[1] - part.columns[0], pixel, conv)[1]


def cheapest_gap(parts, channels, conv):
    """Bytes behind each pixel of ``channels`` bytes with which jobs of ``parts`` take the fewest cycles, then reads."""

    unique = {(*part.shape, part.out_channels[1]): part for part in parts}
    counts = Counter((*part.shape, part.out_channels[1]) for part in parts)

    def cycles(gap):
        total = reads = 0
        for key, part in unique.items():
            rows, columns = (last - first for first, last in (part.rows, part.columns))
            plan, cost = plan_part(part, part.out_channels[1], rows, columns, channels + gap, conv)
            total, reads = total + counts[key] * _beside_stores(plan, cost), reads + counts[key] * cost.reads
        return total, reads

    gaps = (gap for gap in _GAPS if not gap or (channels + gap) % _CHUNK == 0)
    return min(gaps, key=lambda gap: (cycles(gap), gap))


def moved(place, size, bus_bytes):
    """Words of the bus for so many bytes of shared memory with rows of a tensor."""
    if not isinstance(place, Cut):
        return ceil(size / bus_bytes)
    words = place.channels / bus_bytes
    if not _adjoins(place):
        # Some pixels begin and end inside of a word.
        words += 1 - gcd(place.base.channels, place.first_channel, bus_bytes) / bus_bytes
    return ceil(size // place.pixel_pitch * (words + bool(place.gap)))


def transfer_cycles(place, size, machine):
    """Cycles for so many bytes of shared memory with rows of a tensor: of the bus, or of bursts in flight at once."""
    burst_bytes = machine.burst * machine.bus_bytes
    if not isinstance(place, Cut):
        bursts = ceil(size / burst_bytes)
    else:
        run = 1 if not _adjoins(place) else place.width  # pixels that lie one behind the other
        bursts = size // place.pixel_pitch / run * ceil(run * place.channels / burst_bytes)
    answers = bursts * (machine.latency + _ANSWER) / machine.outstanding
    return ceil(max(moved(place, size, machine.bus_bytes), answers))


def _adjoins(place):
    """Whether pixels of a cut adjoin in global memory."""
    return place.channels == place.base.channels and place.step[1] == 1


def _weight_requests(plan):
    """Requests for all weights: each channel's rows of the kernel, one step after the other, by themselves.

    They are put behind each other; where one crosses a line of the memory that they come into it takes one more.
    """
    run = plan.blocks * plan.block_bytes
    return plan.shape.out_channels * plan.shape.kernel[1] * plan.steps * (1 + (run - gcd(run, _LINE)) / _LINE)


def _loaded_passes(plan):
    """How many passes are computed before the last weights have room in the memories of the slaves."""
    if not plan.weights_stay:
        return plan.channel_tiles
    rows = plan.shape.kernel[1] * plan.steps * plan.blocks
    return max(plan.channel_tiles - plan.params.weight_bytes // CHANNELS_AT_ONCE // (rows * plan.block_bytes), 0)


def _buffered(plan):
    """Cycles in which the rows of a convolution pass through the first buffer, which holds so many of all units."""
    conv = plan.params
    if plan.shape.operation.lanes:
        return 0
    rows = plan.fetch_cycles * conv.lanes * min(plan.block_bytes, _CHUNK) / conv.row_bytes
    return ceil(rows * _TURN / conv.feature_rows)


def _cost(plan, pixel):
    shape, conv = plan.shape, plan.params
    fetched = ceil(plan.fetch_cycles * request_cycles(plan, pixel))
    read = ceil(fetched * read_share(plan, pixel))
    if shape.operation.lanes:
        weights, passes, loaded = 0, plan.blocks, 1
    else:
        again = 1 if plan.weights_stay else plan.point_tiles
        weights = ceil(again * _weight_requests(plan))
        passes = plan.channel_tiles
        loaded = _loaded_passes(plan) / passes
    others = weights + ceil(8 * shape.table * shape.out_channels / _LINE) + shape.add * shape.points * passes
    made = max(ceil(shape.results / conv.results), plan.write_cycles)
    cycles = max(plan.mac_cycles + _SUMS_CYCLES, fetched + others, _buffered(plan), made + _END_CYCLES)
    cycles = max(cycles, _LEAST_CYCLES)
    held = cycles if shape.operation.lanes else min(ceil(loaded * cycles + _HELD * weights), cycles)
    return Cost(cycles, read + others, plan.write_cycles, held)


def band_rows(layer, source, rows):
    """Rows of a source that output ``rows`` need, from the first to behind the last."""
    return _source_rows(layer.windows, source, rows)


def stage_rows(layer, stage, rows):
    """Rows of the output of a stage of a layer that output ``rows`` of the layer need."""
    return rows if stage is layer else band_rows(layer, 0, rows)


def rows_needed(layer, rows):
    """The most rows of each source that a band of so many output rows needs, a tuple."""
    return _bands(layer.windows, layer.made, layer.output.height, len(layer.sources), rows)[0]


def _source_rows(windows, source, rows):
    own, first = windows
    if first and 0 < source <= first[0]:
        return _source_rows(first[1], source - 1, _source_rows(windows, 0, rows))
    low, high = None, 0
    for number, inside, *window in own:
        if number == source and inside[0] < rows[1] and rows[0] < inside[1]:
            begin, end = max(rows[0], inside[0]), min(rows[1], inside[1])
            if window:
                begin, end = reach(begin, end, *window)
            low, high = begin if low is None else min(low, begin), max(high, end)
    return (0, 0) if low is None else (low, high)


@lru_cache(maxsize=1 << 16)
def _bands(windows, made, height, sources, rows):
    """What :func:`rows_needed` returns, and the bands that differ.

    That is a dict from the rows that each part makes, and whether the band is the first one, to the rows of one such
    band and how many there are.
    """
    needed, counts, examples = [0] * sources, Counter(), {}
    for first in range(0, height, rows):
        band = first, min(first + rows, height)
        for source in range(sources):
            low, high = _source_rows(windows, source, band)
            needed[source] = max(needed[source], high - low)
        before = _source_rows(windows, 0, band) if windows[1] else None
        key = tuple(_points(inside, band if own else before) for own, inside in made), first == 0
        counts[key] += 1
        examples[key] = band
    return tuple(needed), {key: (examples[key], count) for key, count in counts.items()}


def _points(inside, rows):
    """How many of the rows a part makes."""
    return min(rows[1], inside[1]) - max(rows[0], inside[0])


class BandCosts:
    """What bands of a layer cost, whatever it is cut to; each worked out once.

    Parameters
    ----------
    layer : Layer
    conv : ConvParams
    """

    def __init__(self, layer, conv):
        self._layer, self._conv = layer, conv
        self._jobs, self._turns, self._kinds, self._units = {}, {}, {}, {}

    def job(self, number, channels, rows):
        """The :class:`Cost` of a job of so many channels of a part for output ``rows`` of the layer."""
        stage, part = self._layer.stages[number]
        rows = stage_rows(self._layer, stage, rows) if self._layer.first else rows
        key = number, channels, _points(part.rows, rows)
        if key not in self._jobs:
            self._jobs[key] = job_cost(stage, part, channels, rows, self._conv)
        return self._jobs[key]

    def turn(self, rows):
        """Cycles that two layers lose as they take turns at output ``rows``.

        The first lines that a lane-private job reads hide nowhere.
        """
        layer = self._layer
        if not layer.first:
            return 0
        if rows not in self._turns:
            lines = 0
            for number in dict.fromkeys(layer.kinds):
                stage, part = layer.stages[number]
                if part.operation.lanes:
                    made = stage_rows(layer, stage, rows)
                    low, high = part.input_rows(made, stage.sources[part.source].height)
                    reads = self.job(number, part.out_channels[1], rows).reads
                    lines = max(lines, reads * min(part.kernel[0], high - low) // (high - low))
            self._turns[rows] = FOLLOWS + lines
        return self._turns[rows]

    def bands(self, rows, resident):
        """Of bands of ``rows``: rows of one, whether weights are brought for it, and how many are like it."""
        if (rows, resident) not in self._kinds:
            layer, kinds = self._layer, {}
            _, bands = _bands(layer.windows, layer.made, layer.output.height, len(layer.sources), rows)
            for (points, begins), (example, count) in bands.items():
                again = not resident or begins
                _, others = kinds.get((points, again), (None, 0))
                kinds[points, again] = example, others + count
            self._kinds[rows, resident] = [(example, again, count) for (_, again), (example, count) in kinds.items()]
        return self._kinds[rows, resident]

    def units(self, units):
        """Units of each kind, a list: jobs, the last of them, whether of this layer, bytes, and how many there are.

        Jobs are a dict from part and channels to a number; parts whose jobs cost the same are one.
        """
        if units not in self._units:
            found = []
            for (pieces, size), count in units.kinds.items():
                jobs = [(self._layer.kinds[part], channels) for part, channels in pieces]
                found.append((Counter(jobs), jobs[-1], size, count))
            self._units[units] = found
        return self._units[units]
