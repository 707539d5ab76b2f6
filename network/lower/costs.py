"""What jobs are expected to take: cycles of the engine and of shared memory's ports (docs/network.md, "Tiles")."""

from functools import lru_cache
from math import ceil, gcd
from typing import NamedTuple

from tilewright.golden import ConvShape, convolution_plans
from tilewright.golden.spec.conv.params import CHANNELS_AT_ONCE

from .places import Cut

__all__ = ["HANDED", "Cost", "cheapest_gap", "job_cost", "moved", "plan_part"]

#: Cycles from the last sums of a job to those of the next one, and from its last result to the next one's, which
#: begins when it has ended.
_SUMS_CYCLES, _END_CYCLES = 12, 44
#: A job takes so long at least: the next one is checked and set up meanwhile.
_LEAST_CYCLES = 500
#: Cycles from when what a job waited for is there until it reads: it is handed over, checked and set up.
HANDED = 350
#: Bytes that shared memory reads in a cycle, from as many banks as these are chunks.
_LINE, _CHUNK = 128, 16
_BANKS = _LINE // _CHUNK
#: Bytes of results that are read in a cycle, to be taken away.
_STORED = 64
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
    """

    cycles: int = 0
    reads: int = 0
    writes: int = 0

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
    plans = (plan for plan in convolution_plans(shape, conv) if not (operation.lanes and plan.raster))
    costs = [(plan, _cost(plan, pixel)) for plan in plans]

    def order(one):
        """Of equal ones those of fewer steps, for each of which weights are fetched by themselves; larger blocks."""
        plan, cost = one
        return _beside_stores(plan, cost), plan.steps, plan.merge, -plan.block_bytes, plan.raster

    return min(costs, key=order)


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

    def cycles(gap):
        sizes = ((part, part.out_channels[1], *(last - first for first, last in (part.rows, part.columns)))
                 for part in parts)  # fmt: skip
        planned = [plan_part(*size, channels + gap, conv) for size in sizes]
        return sum(_beside_stores(*one) for one in planned), sum(cost.reads for _, cost in planned)

    gaps = (gap for gap in _GAPS if not gap or (channels + gap) % _CHUNK == 0)
    return min(gaps, key=lambda gap: (cycles(gap), gap))


def moved(place, size, bus_bytes):
    """Cycles of the bus for so many bytes of shared memory with rows of a tensor."""
    if not isinstance(place, Cut):
        return ceil(size / bus_bytes)
    words = place.channels / bus_bytes
    if place.channels != place.base.channels or place.step[1] > 1:
        # Pixels do not adjoin: some begin and end inside of a word.
        words += 1 - gcd(place.base.channels, place.first_channel, bus_bytes) / bus_bytes
    return ceil(size // place.pixel_pitch * (words + bool(place.gap)))


def _cost(plan, pixel):
    shape, conv = plan.shape, plan.params
    if shape.operation.lanes:
        fetched = ceil(plan.fetch_cycles * _lane_reads(plan, pixel))
        pieces = shape.points * plan.blocks
    else:
        weights = shape.out_channels * shape.taps * shape.channels
        again = 1 if plan.weights_stay else plan.point_tiles
        fetched = ceil(plan.fetch_cycles * _row_reads(plan, pixel)) + ceil(again * weights / _LINE)
        pieces = shape.points * ceil(shape.out_channels / (CHANNELS_AT_ONCE * conv.slaves))
    others = ceil(8 * shape.table * shape.out_channels / _LINE) + shape.add * pieces
    made = max(ceil(shape.results / conv.results), pieces)
    cycles = max(plan.mac_cycles + _SUMS_CYCLES, fetched + others, made + _END_CYCLES)
    return Cost(max(cycles, _LEAST_CYCLES), fetched + others, pieces)


def _row_reads(plan, pixel):
    """Cycles in which shared memory is read for a request for rows."""
    size = min(plan.block_bytes, _CHUNK)
    # Two blocks of a pixel come together where a row is one point, and there are two.
    whole = plan.block_bytes == plan.params.row_bytes and plan.blocks > 1
    together = plan.block_bytes // size * (2 if whole else 1)
    apart = plan.shape.stride[0] * pixel
    lanes = range(plan.params.lanes)
    return _reads(tuple(lane // together * apart + lane % together * size for lane in lanes), size)


def _lane_reads(plan, pixel):
    """The same in lane-private mode, in which two columns of the kernel may come together."""
    shape, size = plan.shape, min(plan.block_bytes, _CHUNK)
    slots = plan.block_bytes // size
    apart, lanes = shape.stride[0] * pixel, plan.params.lanes
    places = tuple(lane // slots * apart + lane % slots * size for lane in range(lanes))
    alone, columns = _reads(places, size), shape.kernel[0]
    odd = shape.stride[0] % 2 == 0 and shape.dilation[0] % 2
    odd = odd and not (plan.block_bytes == 2 * _CHUNK and shape.dilation[0] * pixel // _CHUNK % 2)
    if lanes < _BANKS or not odd or not plan.kernel_stays or plan.block_bytes < _CHUNK or columns == 1:
        return alone
    step = shape.dilation[0] * pixel
    turns = [[place + step * ((lane >= lanes // 2) ^ turn) for lane, place in enumerate(places)] for turn in (0, 1)]
    paired = sum(_reads(tuple(turn), size) for turn in turns) / 2
    return (paired * (columns - columns % 2) + alone * (columns % 2)) / columns


@lru_cache(maxsize=1 << 12)
def _reads(places, size):
    """Cycles in which pieces of ``size`` bytes at ``places`` are read (docs/architecture.md, "Operands")."""
    if len(places) < _BANKS:  # both chunks of each in one read
        return _conflicts(places, size)
    first, last = places[0] // _CHUNK, (max(places) + size - 1) // _CHUNK
    if all(place % _CHUNK + size <= _CHUNK for place in places):
        return _conflicts(places, size)
    if last - first < _BANKS:
        return 1
    half = len(places) // 2
    return _conflicts(places[:half], size) + _conflicts(places[half:], size)


def _conflicts(places, size):
    """Different chunks of the bank that has the most of them."""
    chunks = {chunk for place in places for chunk in (place // _CHUNK, (place + size - 1) // _CHUNK)}
    banks = [chunk % _BANKS for chunk in chunks]
    return max(map(banks.count, banks))
