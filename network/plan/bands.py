"""Bands of rows of a layer: what they need of its sources, and what they cost (docs/network.md, "Tiles")."""

from collections import Counter

from .costs import FOLLOWS, job_cost

__all__ = ["BandCosts", "band_rows", "stage_rows", "turn_cycles"]


def band_rows(layer, source, rows):
    """Rows of a source that output ``rows`` need, from the first to behind the last."""
    if layer.first and 0 < source <= len(layer.first.sources):
        return band_rows(layer.first, source - 1, band_rows(layer, 0, rows))
    needs = []
    for part in layer.parts:
        inside = part.rows[0] < rows[1] and rows[0] < part.rows[1]
        if part.source == source and inside and not part.blind:
            needs.append(part.input_rows(rows, layer.sources[source].height))
        if part.addition and part.addition.source == source and inside:
            needs.append((max(rows[0], part.rows[0]), min(rows[1], part.rows[1])))
    return (min(low for low, _ in needs), max(high for _, high in needs)) if needs else (0, 0)


def stage_rows(layer, stage, rows):
    """Rows of the output of a stage of a layer that output ``rows`` of the layer need."""
    return rows if stage is layer else band_rows(layer, 0, rows)


def turn_cycles(layer, rows, conv):
    """Cycles that two layers lose as they take turns: the first lines that a lane-private job reads hide nowhere."""
    if not layer.first:
        return 0
    lines = 0
    for stage, part in layer.stages:
        if part.operation.lanes:
            made = stage_rows(layer, stage, rows)
            low, high = part.input_rows(made, stage.sources[part.source].height)
            reads = job_cost(stage, part, part.out_channels[1], made, conv).reads
            lines = max(lines, reads * min(part.kernel[0], high - low) // (high - low))
    return FOLLOWS + lines


class BandCosts:
    """What bands of so many rows cost, whatever else a layer is cut to; each worked out once.

    Parameters
    ----------
    layer : Layer
    rows : int
    conv : ConvParams
    """

    def __init__(self, layer, rows, conv):
        self._layer, self._rows, self._conv = layer, rows, conv
        self._jobs, self._stages, self._bands = {}, layer.stages, {}

    def job(self, number, channels, rows):
        """The stage of a part, and the :class:`Cost` of a job of so many of its channels for output ``rows``."""
        key = number, channels, rows
        if key not in self._jobs:
            stage, part = self._stages[number]
            self._jobs[key] = stage, job_cost(stage, part, channels, stage_rows(self._layer, stage, rows), self._conv)
        return self._jobs[key]

    def bands(self, resident):
        """Rows of bands, whether their weights are brought for them, and how many are like them."""
        if resident not in self._bands:
            height, found, examples = self._layer.output.height, Counter(), {}
            for first in range(0, height, self._rows):
                rows = first, min(first + self._rows, height)
                counts = tuple(_points(part, stage_rows(self._layer, stage, rows)) for stage, part in self._stages)
                key = counts, not (resident and first)
                found[key] += 1
                examples[key] = rows
            self._bands[resident] = [(examples[key], key[1], count) for key, count in found.items()]
        return self._bands[resident]


def _points(part, rows):
    """How many of the rows a part makes."""
    return min(rows[1], part.rows[1]) - max(rows[0], part.rows[0])
