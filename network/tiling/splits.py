"""Bands of rows and units of weights of a layer, and the buffers that they need (docs/network.md, "Tiles")."""

from dataclasses import dataclass
from math import ceil

from tilewright.spec.conv import CHANNELS_AT_ONCE

from ..lower.places import LINE, Cut, Held, padded
from .costs import rows_needed
from .cuts import MOST
from .weights import Image

__all__ = ["Split", "candidates", "held_bytes"]

#: Units of weights take at most the free memory divided by one of these.
_SHARES = (1, 2, 3, 4, 8, 16)


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
        Expected cycles in all, and how many of them are at the two ends. A neighbouring range of the layer hides the
        ends. So does the next layer, if it does not need the last results.
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


def candidates(layer, machine, image, spans, rows, room):
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
