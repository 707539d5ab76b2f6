"""Steps of a layer that a kernel computes state by state (docs/network.md, "Kernels").

Weights are loaded once if all of them fit shared memory; otherwise those of a pair of blocks at a time, in each step.
"""

from itertools import accumulate
from typing import NamedTuple

from ..lower.places import LINE, padded
from ..lower.recurrent_kernel import ALIGNMENT, WORDS, Stage
from .kernel_steps import KernelImage, boxes_of, log2_of
from .steps import Call, Load, Segment, Store, block

__all__ = ["recurrent_steps"]

#: Buffers of weights, if not all of them stay.
_DEPTH = 3
#: Expected cycles of a call without its pairs.
_CALL_CYCLES = 150


def recurrent_steps(layer, low, high, down, addresses, image, share=(0, 1)):
    """Steps of a layer, with buffers from ``low`` to ``high``; at the end if ``down``. As of ``kernel_steps``.

    A step needs the states of the one before, so the first core does all of them.
    """
    return () if share[0] else _Steps(layer, low, high, down, addresses, image).steps()


class _Part(NamedTuple):
    """Weights that are loaded at once: of pairs of a stage from ``unit`` on, with their bytes in global memory."""

    stage: Stage
    pairs: int
    unit: int
    address: int
    size: int


class _Steps:
    """A layer with its buffers: weights, states, results, x."""

    def __init__(self, layer, low, high, down, addresses, image):
        self._layer, self._kernel, self._addresses = layer, layer.kernel, addresses
        own, rooms, stages = KernelImage(layer.kernel), layer.kernel.rooms, layer.kernel.stages
        self._code, (*weights, self._first) = own.code(image), (image + offset for offset in own.offsets)
        self._parts = [_Part(stage, stage.pairs, 0, start, stage.pairs * stage.bytes)
                       for stage, start in zip(stages, weights, strict=True)]  # fmt: skip
        sizes, room = [part.size for part in self._parts], high - low - ALIGNMENT - sum(rooms)
        if sum(sizes) > room:
            self._parts = [_Part(stage, 1, pair * layer.kernel.units, start + pair * stage.bytes, stage.bytes)
                           for stage, start in zip(stages, weights, strict=True)
                           for pair in range(stage.pairs)]  # fmt: skip
            largest = max(stage.bytes for stage in stages)
            sizes = [largest] * min(room // largest, _DEPTH)
        start = padded(high - ALIGNMENT - sum(sizes) - sum(rooms) if down else low, ALIGNMENT)
        *self._buffers, self._states = accumulate(sizes, initial=start)
        self._results, self._given, self._end = accumulate(rooms[1:], initial=self._states + rooms[0])
        self._uses, self._loaded = 0, {}  # how often a buffer has been used, and what each of them has

    def steps(self):
        """Loads, calls and stores."""
        kernel, layer = self._kernel, self._layer
        yield Load([block(self._first, self._states, sum(kernel.state_bytes))])
        *states, _ = accumulate(kernel.state_bytes, initial=self._states)
        count, way = kernel.band, -1 if kernel.reverse else 1
        for first in range(0, kernel.rows, count)[::way]:
            rows = range(0, min(count, kernel.rows - first), kernel.batch)
            given, results = (
                boxes_of(place, self._addresses, (first, 0), columns, rows.stop, spot, 1 << log2_of(count))
                for place, columns, spot in ((layer.sources[0], kernel.columns, self._given),
                                             (layer.output, kernel.hidden, self._results))
            )  # fmt: skip
            # What a call writes is loaded too: then nothing else uses these bytes any more.
            yield Load([*given, *results])
            segments = [Segment(kernel.dtype, (columns, 1 << log2_of(count)), tuple(box.near for box in boxes),
                                (log2_of(LINE), log2_of(count)), True)
                        for columns, boxes in ((kernel.columns, given), (kernel.hidden, results))]  # fmt: skip
            for row in rows[::way]:
                yield from self._step(row, segments, states)
                states[:2] = states[1::-1]
            yield Store(results)

    def _step(self, row, segments, states):
        """Loads and calls of the step whose first row of a band is ``row``."""
        kernel, sizes = self._kernel, (self._kernel.hidden, self._kernel.hidden, self._kernel.cells)
        for part in self._parts:
            spot = self._buffers[self._uses % len(self._buffers)]
            self._uses += 1
            if self._loaded.get(spot) != part:
                self._loaded[spot] = part
                yield Load([block(part.address, spot, part.size)])
            lines = part.size // (4 * WORDS)
            weights = Segment("uint32", (WORDS, lines), (spot,), (log2_of(WORDS), log2_of(lines)), True)
            for number in range(kernel.batch):
                own = [Segment("uint32", (count,), (state + number * size // kernel.batch,), (max(log2_of(count), 2),))
                       for state, count, size in zip(states, sizes, kernel.state_bytes, strict=True)]  # fmt: skip
                yield Call(
                    self._code, (*segments, weights, *own, part.pairs, part.unit << 16 | row + number),
                    [(spot, spot + part.size), (self._states, self._end)], [(self._states, self._given)],
                    _CALL_CYCLES + part.pairs * part.stage.cycles, entry=kernel.index + part.stage.entry,
                )  # fmt: skip
