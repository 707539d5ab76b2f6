"""One photograph on four cores: a bank of nine filters lands in all of them by one multicast, each filters its part."""

import numpy as np

from tilewright.golden.tmau.tile import tx_bytes

from .findings import Findings
from .photographs import PIXEL_BYTES, padded_pixels

__all__ = ["BANK", "SUMMARY", "direct", "play"]

SUMMARY = "a photograph on four cores, its filters brought to all of them by one multicast"

_PART = (64, 240)  # height and width of the part that is filtered
_MOST_PIXELS = 128  # of one load

_LINES = np.array([[1, 2, 1], [-1, 0, 1], [-1, 2, -1]])  # level, edge, spot
#: Filters, each of 3 × 3: what lies across in one direction, and what in the other.
BANK = np.array([np.outer(down, across) for down in _LINES for across in _LINES])
#: What a sum of three colours is divided by, so that most results fit in a byte.
_SCALES = np.array([48] + [12] * (len(BANK) - 1))


def play(crew, photographs):
    """Filters the photograph from what lands in shared memories; what is stored must be the direct result."""
    photo = photographs[0][: _PART[0], : _PART[1]]
    height, width, _ = photo.shape
    weights = _weights()
    bank = crew.tiled(weights, box=weights.shape[::-1])
    pixels = crew.fit(tx_bytes(bank), PIXEL_BYTES, _MOST_PIXELS)
    source = crew.tiled(
        padded_pixels([photo]), box=(), mode="im2col", lower=(-1, -1), upper=(-1, -1), channels=PIXEL_BYTES,
        pixels=pixels
    )  # fmt: skip
    crew.bring(bank)
    stretches = np.arange(0, height * width, pixels)
    parts = np.array_split(stretches, crew.cores)
    taps = [(x, y) for y in range(3) for x in range(3)]
    sums = np.zeros((len(stretches) * pixels, len(BANK)), np.int64)
    boxes = [
        [((0, first % width - 1, first // width - 1, 0), tap) for first in part.tolist() for tap in taps]
        for part in parts
    ]
    for core, (coords, tap), rows in crew.load(source, boxes):
        first = (coords[2] + 1) * width + coords[1] + 1
        # The filters are those that landed in this very core.
        filters = crew.brought(core).view(np.int8).reshape(weights.shape)[taps.index(tap)]
        sums[first : first + pixels] += rows.astype(np.int64) @ filters.T.astype(np.int64)
    stored = _store(crew, sums, parts, pixels)[: height * width, : len(BANK)]
    crew.totals.require(stored, _bytes(direct(photo)), "the filtered photograph in global memory")
    return Findings(
        facts=(
            f"{width} x {height} pixels, {len(BANK)} filters, {sum(map(len, boxes))} im2col loads of {pixels} pixels "
            f"on {crew.cores} cores; sums are numpy's, of bytes in the shared memory of each core",
            *crew.facts(),
        ),
        pictures={"Nine filters, as four cores stored their results": _sheet(stored.reshape(height, width, -1))},
        charts={"When each core moved bytes. Sums, between loads and stores, take no cycles": crew.activity().svg()},
    )


def direct(photo):
    """Sums of the filters with zeros around the picture, by shifted pictures; height × width × filters."""
    height, width, _ = photo.shape
    around = np.pad(photo.sum(axis=2, dtype=np.int64), 1)
    return sum(around[y : y + height, x : x + width, None] * BANK[:, y, x] for y in range(3) for x in range(3))


def _weights():
    """The bank as it lies in memory: taps × filters × channels, int8; the colours are weighed alike."""
    weights = np.zeros((9, len(BANK), PIXEL_BYTES), np.int8)
    weights[:, :, :3] = BANK.reshape(len(BANK), 9).T[:, :, None]
    return weights


def _bytes(sums):
    """Results as they are stored: one byte each; pixels × filters."""
    return np.clip(np.abs(sums.reshape(-1, len(BANK))) // _SCALES, 0, 255).astype(np.uint8)


def _store(crew, sums, parts, pixels):
    """Every core stores the results of its part; what global memory holds then, a row of bytes a pixel."""
    results = np.zeros((len(sums), PIXEL_BYTES), np.uint8)
    results[:, : len(BANK)] = _bytes(sums)
    target = crew.tiled(np.zeros_like(results), box=(PIXEL_BYTES, pixels))
    crew.store(target, [[((0, first), results[first : first + pixels]) for first in part.tolist()] for part in parts])
    return crew.stored(target).reshape(-1, PIXEL_BYTES)


def _sheet(maps):
    """Pictures of all filters, three a line."""
    height, width, _ = maps.shape
    sheet = maps.reshape(height, width, 3, 3).transpose(2, 0, 3, 1).reshape(3 * height, 3 * width)
    return np.repeat(sheet[..., None], 3, 2)
