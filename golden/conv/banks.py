"""What a request of the convolution engine takes at the banks of shared memory (docs/inside_conv.md, "Operands")."""

from functools import lru_cache
from math import ceil

from tilewright.spec.memory import BANKS, CHUNK_BYTES

from ..arguments import instance, integer
from .plan import ConvPlan

__all__ = ["read_share", "request_cycles"]


def request_cycles(plan, pixel):
    """Cycles in which shared memory is read for a request for feature rows, on average.

    Parameters
    ----------
    plan : ConvPlan
    pixel : int
        Bytes from one pixel of X to the next.

    Returns
    -------
    int or float
        ``plan.fetch_cycles`` counts requests.
    """
    instance("plan", plan, ConvPlan)
    pixel = integer("pixel", pixel, 0)
    return _lane_reads(plan, pixel) if plan.shape.operation.lanes else _row_reads(plan, pixel)


def read_share(plan, pixel):
    """How many of the requests for feature rows read shared memory, as a fraction.

    The others are for further blocks of the same points, if eight chunks that adjoin have all of their bytes. That
    is of integers: blocks of floats are not asked for one after the other, and each request reads.
    """
    instance("plan", plan, ConvPlan)
    pixel = integer("pixel", pixel, 0)
    if plan.shape.operation.lanes or plan.params.lanes < BANKS or plan.block_bytes == plan.params.row_bytes:
        return 1
    places, size, _ = _row_places(plan, pixel)
    within = max(places) + plan.blocks * plan.block_bytes + CHUNK_BYTES - size <= BANKS * CHUNK_BYTES
    return 1 / plan.blocks if within else 1


def _row_places(plan, pixel):
    """Where pieces of a request lie, their size, and how many of them are of one point."""
    size = min(plan.block_bytes, CHUNK_BYTES)
    # Two blocks of a pixel come together where a row is one point, and there are two.
    whole = plan.block_bytes == plan.params.row_bytes and plan.blocks > 1
    together = plan.block_bytes // size * (2 if whole else 1)
    apart = plan.shape.stride[0] * pixel
    lanes = range(plan.params.lanes)
    return tuple(lane // together * apart + lane % together * size for lane in lanes), size, together


def _row_reads(plan, pixel):
    places, size, together = _row_places(plan, pixel)
    reads, shape = _reads(places, size), plan.shape
    if not plan.crosses_lines or _in_chunks(places, size) or (*shape.kernel, *shape.stride) == (1, 1, 1, 1):
        return reads
    # Pieces on both sides of the end of a line are two reads, unless lines adjoin as points do.
    points = plan.params.lanes // together
    ends = sum(line * shape.out_width % points > 0 for line in range(1, shape.lines))
    return reads + max(2 - reads, 0) * ends / ceil(shape.points / points)


def _lane_reads(plan, pixel):
    """Two columns of the kernel may come together."""
    shape, size = plan.shape, min(plan.block_bytes, CHUNK_BYTES)
    slots = plan.block_bytes // size
    apart, lanes = shape.stride[0] * pixel, plan.params.lanes
    places = tuple(lane // slots * apart + lane % slots * size for lane in range(lanes))
    alone, columns = _reads(places, size), plan.planes if plan.rotates else shape.kernel[0]
    odd = shape.stride[0] % 2 == 0 and shape.dilation[0] % 2
    odd = odd and not (plan.block_bytes == 2 * CHUNK_BYTES and shape.dilation[0] * pixel // CHUNK_BYTES % 2)
    if lanes < BANKS or not odd or not plan.kernel_stays or plan.block_bytes < CHUNK_BYTES or columns == 1:
        return alone
    step = shape.dilation[0] * pixel
    turns = [[place + step * ((lane >= lanes // 2) ^ turn) for lane, place in enumerate(places)] for turn in (0, 1)]
    paired = sum(_reads(tuple(turn), size) for turn in turns) / 2
    return (paired * (columns - columns % 2) + alone * (columns % 2)) / columns


@lru_cache(maxsize=1 << 12)
def _reads(places, size):
    """Cycles in which pieces of ``size`` bytes at ``places`` are read."""
    if len(places) < BANKS:  # both chunks of each in one read
        return _conflicts(places, size)
    first, last = places[0] // CHUNK_BYTES, (max(places) + size - 1) // CHUNK_BYTES
    if _in_chunks(places, size):
        return _conflicts(places, size)
    if last - first < BANKS:
        return 1
    half = len(places) // 2
    return _conflicts(places[:half], size) + _conflicts(places[half:], size)


def _in_chunks(places, size):
    """Whether each piece lies in one chunk."""
    return all(place % CHUNK_BYTES + size <= CHUNK_BYTES for place in places)


def _conflicts(places, size):
    """Different chunks of the bank that has the most of them."""
    chunks = {chunk for place in places for chunk in (place // CHUNK_BYTES, (place + size - 1) // CHUNK_BYTES)}
    banks = [chunk % BANKS for chunk in chunks]
    return max(map(banks.count, banks))
