"""Expected cycles of jobs and transfers, and the rows that bands of a layer need (docs/network.md, "Tiles")."""

from collections import Counter
from functools import lru_cache
from math import ceil, gcd
from typing import NamedTuple

from tilewright.golden import ConvShape, convolution_plans, read_share, request_cycles
from tilewright.spec.conv import CHANNELS_AT_ONCE

from ..lower.layers import reach
from ..lower.places import Cut
from .shares import row_spans

__all__ = [
    "FOLLOWS", "HANDED", "BandCosts", "Cost", "band_rows", "cheapest_gap", "instruction_cycles", "job_cost", "moved",
    "plan_part", "rows_needed", "stage_rows", "transfer_cycles",
]  # fmt: skip

#: Cycles from the last sums of a job to the first sums of the next one, and from its last result to the first result
#: of a job that begins when it has ended.
_SUMS_CYCLES, _END_CYCLES = 12, 66
#: Cycles from one request for weights to the next one, between requests for rows.
_HELD = 1.5
#: Cycles between the results of one pass and the next one in lane-private mode, if a pass has fewer groups than this.
_PASS_CYCLES, _FEW_GROUPS = 6, 4
#: Least cycles of a job: the next one is checked and set up meanwhile.
_LEAST_CYCLES = 120
#: Cycles from the end of a job's wait to its first read: it is handed over, checked and set up.
HANDED = 300
#: Cycles that are lost if a job reads what the previous one writes, and the next one reads its results.
FOLLOWS = 150
#: Bytes that shared memory, and one of its banks, read in a cycle.
_LINE, _CHUNK = 128, 16
#: Cycles from one burst to the next one in its slot, in addition to the latency of memory.
_ANSWER = 5
#: Cycles from a request for rows until their slot in the first buffer is free again.
_TURN = 23
#: Bytes of results that stores read in a cycle.
_STORED = 128
#: Gaps between pixels that are tried: none, and those that round pixels up to whole chunks.
_GAPS = range(0, _LINE, _CHUNK // 2)


#: Lines of four instructions that the command processor reads ahead, the fewest cycles from one to the next, and how
#: many pass in addition to the latency of memory.
_INSTRUCTION_LINES, _LINE_CYCLES, _LINE_ANSWER = 16, 4, 10


class Cost(NamedTuple):
    """Cycles of a job, or of several.

    Attributes
    ----------
    cycles : int
        Of the engine if nothing else uses shared memory.
    reads, writes : int
        Cycles in which shared memory is read, and written.
    held : int
        Cycles until all weights have been read.
    """

    cycles: int = 0
    reads: int = 0
    writes: int = 0
    held: int = 0

    def __add__(self, other):
        return Cost(*map(sum, zip(self, other, strict=True)))


def plan_part(part, channels, rows, columns, pixel, conv):
    """The plan of a job of a part for these channels, rows and columns, and its :class:`Cost`.

    ``pixel`` is the number of bytes from one pixel to the next in shared memory.
    """
    deep = channels if part.operation.lanes else part.channels[1]
    flags = pixel == part.channels[1] * part.x_element, part.has_table, part.addition is not None, part.x_element
    windows = part.kernel[::-1], part.stride[::-1], part.dilation[::-1]
    return _planned(part.operation, (deep, channels, rows, columns), windows, flags, pixel, conv)


@lru_cache(maxsize=1 << 16)
def _planned(operation, sizes, windows, flags, pixel, conv):
    names = "adjoin", "table", "add", "element_bytes"
    flags = dict(zip(names, flags, strict=True))
    shape = ConvShape(1, 65536, 65536, *sizes, *windows, operation=operation, **flags)
    best = None
    # Plans with fewer cycles of the array first: most of the others cannot be better and are not costed.
    for plan in sorted(convolution_plans(shape, conv), key=lambda plan: plan.mac_cycles):
        if best and plan.mac_cycles + _SUMS_CYCLES > best[0][0]:
            break
        if plan.raster and not plan.crosses_lines:
            continue  # no different from the one without
        cost = _cost(plan, pixel)
        # Of equal plans the one with fewer steps, each of which fetches its own weights; then larger blocks.
        order = _beside_stores(plan, cost), plan.steps, plan.merge, -plan.block_bytes, plan.raster
        if best is None or order < best[0]:
            best = order, plan, cost
    return best[1:]


def _beside_stores(plan, cost):
    """Cycles of one of many jobs, if results of others are stored meanwhile."""
    return max(cost.cycles, cost.reads + ceil(plan.shape.results / _STORED))


def job_cost(layer, part, channels, rows, conv):
    """The :class:`Cost` of a job of ``channels`` of a part, for the part's rows that are in ``rows``."""
    count = min(rows[1], part.rows[1]) - max(rows[0], part.rows[0])
    if count <= 0:
        return Cost()
    pixel = 0 if part.blind else layer.sources[part.source].pixel_pitch
    return plan_part(part, channels, count, part.columns[1] - part.columns[0], pixel, conv)[1]


def cheapest_gap(parts, channels, conv):
    """Bytes between pixels of ``channels`` bytes with which jobs of ``parts`` take the fewest cycles, then reads."""

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


def instruction_cycles(count, each, machine):
    """Cycles of a PE word of ``count`` instructions, of which the engine takes one in ``each`` cycles."""
    answer = machine.latency + _LINE_ANSWER
    return answer + ceil(count / 4 * max(_LINE_CYCLES * each, answer / _INSTRUCTION_LINES))


def moved(place, size, bus_bytes):
    """Words of the bus for ``size`` bytes of shared memory with rows of a tensor."""
    if not isinstance(place, Cut):
        return ceil(size / bus_bytes)
    words = place.channels / bus_bytes
    if not _adjoins(place):
        # Some pixels begin and end inside of a word.
        words += 1 - gcd(place.base.channels, place.first_channel, bus_bytes) / bus_bytes
    return ceil(size // place.pixel_pitch * (words + bool(place.gap)))


def transfer_cycles(place, size, machine, users=1):
    """Cycles of a transfer of ``size`` bytes of shared memory with rows of a tensor.

    The bus limits them, for as many ``users`` as have such transfers at once, or the number of bursts in flight.
    """
    burst_bytes = machine.burst * machine.bus_bytes
    if not isinstance(place, Cut):
        bursts = ceil(size / burst_bytes)
    else:
        run = 1 if not _adjoins(place) else place.width  # contiguous pixels
        bursts = size // place.pixel_pitch / run * ceil(run * place.channels / burst_bytes)
    answers = bursts * (machine.latency + _ANSWER) / machine.outstanding
    return ceil(max(max(users / machine.ports, 1) * moved(place, size, machine.bus_bytes), answers))


def _adjoins(place):
    """Whether pixels of a cut are contiguous in global memory."""
    return place.channels == place.base.channels and place.step[1] == 1


def _weight_requests(plan):
    """Requests for all weights: one for each channel, row of the kernel and step.

    Weights are packed; a request that crosses a line of the engine's weight memory takes one more.
    """
    run = plan.blocks * plan.block_bytes
    return plan.shape.out_channels * plan.shape.kernel[1] * plan.steps * (1 + (run - gcd(run, _LINE)) / _LINE)


def _loaded_passes(plan):
    """Passes that are computed before the last weights fit into the memories of the slaves."""
    if not plan.weights_stay:
        return plan.channel_tiles
    rows = plan.shape.kernel[1] * plan.steps * plan.blocks
    return max(plan.channel_tiles - plan.params.weight_bytes // CHANNELS_AT_ONCE // (rows * plan.block_bytes), 0)


def _buffered(plan):
    """Cycles in which the rows of a convolution pass through the first buffer, ``feature_rows`` at a time."""
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
    written = max(ceil(shape.results / conv.results), plan.write_cycles)
    if shape.operation.lanes and shape.points < _FEW_GROUPS * plan.group_points:
        written += _PASS_CYCLES * plan.blocks
    cycles = max(plan.mac_cycles + _SUMS_CYCLES, fetched + others, _buffered(plan), written + _END_CYCLES)
    cycles = max(cycles, _LEAST_CYCLES)
    held = cycles if shape.operation.lanes else min(ceil(loaded * cycles + _HELD * weights), cycles)
    return Cost(cycles, read + others, plan.write_cycles, held)


def band_rows(layer, source, rows):
    """Rows of a source that output ``rows`` need: the first one and the end."""
    return _source_rows(layer.windows, source, rows)


def stage_rows(layer, stage, rows):
    """Rows of the output of a stage of a layer that output ``rows`` of the layer need, or that need them."""
    if stage is layer.sums:
        return tuple(row // layer.rows_of_sum for row in rows)
    return rows if stage is layer else band_rows(layer, 0, rows)


def rows_needed(layer, rows, spans):
    """The most rows of each source that any band of ``rows`` output rows needs, a tuple.

    ``spans`` are the rows of each core, the first one and the end.
    """
    return _bands(layer.windows, layer.made_rows, spans, len(layer.sources), rows)[0]


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
def _bands(windows, made_rows, spans, sources, rows):
    """What :func:`rows_needed` returns, and the kinds of bands of the first core.

    A kind is how many rows each part makes, and whether the band is the first one; it has the rows of one such band,
    and how many there are.
    """
    needed, counts, examples = [0] * sources, Counter(), {}
    for core, (start, end) in enumerate(spans):
        for first in range(start, end, rows):
            band = first, min(first + rows, end)
            for source in range(sources):
                low, high = _source_rows(windows, source, band)
                needed[source] = max(needed[source], high - low)
            if core == 0:
                before = _source_rows(windows, 0, band) if windows[1] else None
                key = tuple(_points(inside, band if own else before) for own, inside in made_rows), first == 0
                counts[key] += 1
                examples[key] = band
    return tuple(needed), {key: (examples[key], count) for key, count in counts.items()}


def _points(inside, rows):
    """How many of the rows a part makes; 0 or less for none."""
    return min(rows[1], inside[1]) - max(rows[0], inside[0])


class BandCosts:
    """Costs of bands of a layer, for any split; each is computed once.

    Parameters
    ----------
    layer : Layer
    conv : ConvParams
    spans : tuple of (int, int)
        Rows of each core, of which the first one's bands are costed; None: of one core.
    """

    def __init__(self, layer, conv, spans=None):
        self._layer, self._conv, self._spans = layer, conv, spans or row_spans(layer.output.height, 1)
        self._jobs, self._turns, self._kinds, self._units = {}, {}, {}, {}

    def job(self, number, channels, rows):
        """The :class:`Cost` of a job of ``channels`` of a part for output ``rows`` of the layer."""
        stage, part = self._layer.stages[number]
        rows = stage_rows(self._layer, stage, rows)
        key = number, channels, _points(part.rows, rows)
        if key not in self._jobs:
            self._jobs[key] = job_cost(stage, part, channels, rows, self._conv)
        return self._jobs[key]

    def turn(self, rows):
        """Cycles that two layers lose in each band: nothing hides the first lines of a lane-private job."""
        layer = self._layer
        if not layer.first:
            return 0
        if rows not in self._turns:
            lines = 0
            for number in dict.fromkeys(layer.kinds):
                stage, part = layer.stages[number]
                if part.operation.lanes and stage is not layer.sums:
                    stage_band = stage_rows(layer, stage, rows)
                    low, high = part.input_rows(stage_band, stage.sources[part.source].height)
                    reads = self.job(number, part.out_channels[1], rows).reads
                    lines = max(lines, reads * min(part.kernel[0], high - low) // (high - low))
            self._turns[rows] = FOLLOWS + lines
        return self._turns[rows]

    def bands(self, rows, resident):
        """Kinds of bands of ``rows``: rows of one, whether weights are loaded for it, and how many there are."""
        if (rows, resident) not in self._kinds:
            layer, kinds = self._layer, {}
            _, bands = _bands(layer.windows, layer.made_rows, self._spans, len(layer.sources), rows)
            for (points, begins), (example, count) in bands.items():
                again = not resident or begins
                _, others = kinds.get((points, again), (None, 0))
                kinds[points, again] = example, others + count
            self._kinds[rows, resident] = [(example, again, count) for (_, again), (example, count) in kinds.items()]
        return self._kinds[rows, resident]

    def units(self, units):
        """Kinds of units, a list: numbers of jobs by part and channels, the last job, bytes, and how many there are.

        Parts whose jobs cost the same are one.
        """
        if units not in self._units:
            kinds = []
            for (pieces, size), count in units.kinds.items():
                jobs = [(self._layer.kinds[part], channels) for part, channels in pieces]
                kinds.append((Counter(jobs), jobs[-1], size, count))
            self._units[units] = kinds
        return self._units[units]
