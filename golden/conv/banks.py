"""Cycles of the convolution engine's requests at the banks of shared memory (docs/inside_conv.md, "Operands")."""

from functools import lru_cache
from math import ceil

from tilewright.spec.memory import BANKS, CHUNK_BYTES

from ..arguments import instance, integer
from .plan import ConvPlan

__all__ = ["read_share", "request_cycles"]


def request_cycles(plan, pixel):
    """Average number of cycles in which a request for feature rows reads shared memory.

    Parameters
    ----------
    plan : ConvPlan
    pixel : int
        Bytes from one pixel of X to the next.

    Returns
    -------
    int or float
        For one request; ``plan.fetch_cycles`` counts requests.
    """
    instance("plan", plan, ConvPlan)
    pixel = integer("pixel", pixel, 0)
    return _lane_reads(plan, pixel) if plan.shape.operation.lanes else _row_reads(plan, pixel)


def read_share(plan, pixel):
    """The fraction of requests for feature rows that read shared memory, for integers.

    The others are for further blocks of the same points, if eight adjoining chunks hold all their bytes. Blocks of
    floats are not requested in sequence, and each of their requests reads.
    """
    instance("plan", plan, ConvPlan)
    pixel = integer("pixel", pixel, 0)
    if plan.shape.operation.lanes or plan.params.lanes < BANKS or plan.block_bytes == plan.params.row_bytes:
        return 1
    places, size, _ = _row_places(plan, pixel)
    within = max(places) + plan.blocks * plan.block_bytes + CHUNK_BYTES - size <= BANKS * CHUNK_BYTES
    return 1 / plan.blocks if within else 1


def _row_places(plan, pixel):
    """Addresses of the pieces of a request, their size, and the pieces of a point."""
    size = min(plan.block_bytes, CHUNK_BYTES)
    # If a row is one point, a request has two blocks of it, if there are two.
    whole = plan.block_bytes == plan.params.row_bytes and plan.blocks > 1
    pieces = plan.block_bytes // size * (2 if whole else 1)
    return _places(plan, pixel, pieces, size), size, pieces


def _places(plan, pixel, pieces, size):
    """Addresses of the pieces of a request, with ``pieces`` of ``size`` bytes for each point."""
    pitch = plan.shape.stride[0] * pixel
    return tuple(lane // pieces * pitch + lane % pieces * size for lane in range(plan.params.lanes))


def _row_reads(plan, pixel):
    places, size, pieces = _row_places(plan, pixel)
    reads, shape = _reads(places, size), plan.shape
    if not plan.crosses_lines or _in_chunks(places, size) or (*shape.kernel, *shape.stride) == (1, 1, 1, 1):
        return reads
    # Pieces on both sides of the end of a line take two reads, unless lines adjoin as points do.
    points = plan.params.lanes // pieces
    ends = sum(line * shape.out_width % points > 0 for line in range(1, shape.lines))
    return reads + max(2 - reads, 0) * ends / ceil(shape.points / points)


def _lane_reads(plan, pixel):
    """The same in lane-private mode, where a request may have two columns of the kernel."""
    shape, size, lanes = plan.shape, min(plan.block_bytes, CHUNK_BYTES), plan.params.lanes
    places = _places(plan, pixel, plan.block_bytes // size, size)
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
    """Cycles that read pieces of ``size`` bytes at ``places``."""
    if len(places) < BANKS:  # one read has both chunks of each
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
    """Chunks of the bank with the most different chunks."""
    chunks = {chunk for place in places for chunk in (place // CHUNK_BYTES, (place + size - 1) // CHUNK_BYTES)}
    banks = [chunk % BANKS for chunk in chunks]
    return max(map(banks.count, banks))
