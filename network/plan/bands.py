"""Bands of rows of a layer: what they need of its sources, and what they cost (docs/network.md, "Tiles")."""

from collections import Counter
from functools import lru_cache

from ..lower.layers import reach
from .costs import FOLLOWS, job_cost

__all__ = ["BandCosts", "band_rows", "rows_needed", "stage_rows"]


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
