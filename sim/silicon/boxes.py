"""The tiles of the benchmark as a GPU's tensor mover can load them: which, and repeated over a large tensor."""

import math
from dataclasses import dataclass, replace

import numpy as np

from tilewright.golden import TensorMap, limits, tx_bytes
from tilewright.golden.spec import Mode, Opcode
from tilewright.golden.tmau.tile import counts, extent, footprint, unit_bytes

from ..bench.tmau_cases import steady_cases
from .packing import fill_map
from .records import RECORDS

__all__ = ["SHAPE", "Boxes", "shapes"]

#: What the program reads of each, as ``timing.h`` has it.
SHAPE = np.dtype([
    ("map", RECORDS["MapRecord"]), ("first", "<i4", 5), ("count", "<u4", 5), ("step", "<u4", 5), ("extent", "<u4", 5),
    ("unit_bytes", "<u4"), ("stage_bytes", "<u4"),
])  # fmt: skip

_SECTOR = 32  # bytes: the least that the GPU's memory is asked for
_LINE = 128
_SAMPLE = 64  # boxes of which sectors are counted


@dataclass(frozen=True)
class Boxes:
    """The boxes of a tensor, side by side.

    Attributes
    ----------
    name : str
    tmap : TensorMap
    first, count, step : tuple of int
        Start of the first one, how many there are, and how far apart, in each dimension.
    """

    name: str
    tmap: TensorMap
    first: tuple
    count: tuple
    step: tuple

    @property
    def bytes(self):
        """Bytes that land."""
        return math.prod(self.count) * tx_bytes(self.tmap)

    @property
    def sector_bytes(self):
        """Bytes of the sectors that hold them, box by box."""
        every = math.prod(self.count) // _SAMPLE or 1
        sampled = range(0, math.prod(self.count), every)
        sectors = [limits(self.tmap, self.coords(number), _SECTOR).words for number in sampled]
        return round(math.prod(self.count) * _SECTOR * sum(sectors) / len(sectors))

    def coords(self, number):
        """Start of a box by its number."""
        digits = np.unravel_index(number, self.count, order="F")
        return [int(first + step * digit) for first, step, digit in zip(self.first, self.step, digits, strict=True)]

    def record(self):
        """What the program reads."""
        record = np.zeros((), SHAPE)
        fill_map(record["map"], self.tmap)
        taken = counts(self.tmap)
        for name, values, rest in (("first", self.first, 0), ("count", self.count, 1), ("step", self.step, 0),
                                   ("extent", taken, 1)):  # fmt: skip
            record[name] = [*values, *[rest] * (5 - len(values))]
        record["unit_bytes"] = unit_bytes(self.tmap)
        record["stage_bytes"] = -(-footprint(self.tmap) // _LINE) * _LINE
        return record.tobytes()


def shapes(size):
    """:class:`Boxes` of every steady-state load of the benchmark that silicon can do too, in ``size`` bytes."""
    return [_spread(case, size) for case in steady_cases() if _suits(case)]


def _suits(case):
    """Whether a load has no item beyond silicon, takes tiles, and reaches nowhere over the edge.

    Whether silicon takes starts inside 16 bytes is an open question, on which no figure shall depend.
    """
    tmap = case.tmap
    if (
        case.fields.get("opcode", Opcode.LOAD) != Opcode.LOAD
        or tmap.mode != Mode.TILE
        or tmap.unaligned
        or tmap.gather0
    ):
        return False
    return all(coords[0] * unit_bytes(tmap) % 16 == 0 for coords in case.coords) and all(
        0 <= coord <= size - taken
        for coords in case.coords
        for coord, size, taken in zip(coords, tmap.size, counts(tmap), strict=True)
    )


def _spread(case, size):
    """The boxes of a case side by side in a tensor whose last dimension goes on as far as there is room."""
    tmap = case.tmap
    inner = extent(tmap) - (tmap.size[-1] - 1) * tmap.stride[-1]
    tmap = replace(tmap, size=(*tmap.size[:-1], (size - tmap.address - inner) // tmap.stride[-1] + 1))
    starts = list(zip(*case.coords, strict=True))
    first, taken = tuple(map(min, starts)), counts(tmap)
    # A dimension in which all boxes of the case start alike has one box, but for the last.
    varied = [*(len(set(start)) > 1 for start in starts[:-1]), True]
    count = tuple(
        (most - start) // step if several else 1
        for most, start, step, several in zip(tmap.size, first, taken, varied, strict=True)
    )
    return Boxes(case.name, tmap, first, count, taken)
