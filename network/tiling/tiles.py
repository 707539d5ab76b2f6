"""How a layer is cut so that it fits shared memory: bands of rows, and units of weights (docs/network.md, "Tiles")."""

from collections import Counter
from dataclasses import replace
from math import ceil, gcd, inf

from ..graph import node_error
from ..lower.places import BLOCK, Cut, Held, as_cut
from .band_cycles import CoreCosts, expected_cycles
from .costs import job_cost
from .cuts import cut_layer, legal, strided, with_gaps
from .shares import chunk, row_spans
from .splits import candidates, held_bytes
from .weights import Image, equal_tables

__all__ = ["Tiler"]

#: A layer that takes at most this many times the engine's cycles is not cut any further.
_GOOD = 1.03
#: Numbers of ranges of channels, and of columns, that are tried; the further ones if nothing fits.
_CHANNEL_CUTS = (1, 2, 3, 4, 6, 8, 12)
_COLUMN_CUTS = (1, 2, 3, 4, 6, 8, 12, 16, 28, 56)
_MORE_CHANNEL_CUTS = (16, 32)
#: Fields of a part that decide how it is cut.
_SHAPES = ("operation", "source", "channels", "out_channels", "rows", "columns", "kernel", "stride", "dilation",
           "origin", "blind", "weight_start")  # fmt: skip
#: The search over ranges of channels ends after this number of choices that are no improvement.
_WORSE = 3
#: The alignment of a range's first channel decides how its boxes are loaded, up to this many bytes.
_MOST_ALIGNED = 128
#: Numbers of bands that are tried.
_BANDS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 19, 22, 28, 32, 38, 45, 56, 75, 112, 150, 224)


class Tiler:
    """Cuts layers to fit shared memory less ``reserved`` bytes. Layers of equal shapes are cut once.

    Parameters
    ----------
    machine : Machine
    reserved : int
    """

    def __init__(self, machine, reserved):
        self.machine, self.room = machine, machine.smem_bytes - reserved
        self._cuts, self._splits = {}, {}
        cores = machine.cores if machine.shared else 1
        # How many shares of rows, and of channels, the cores make.
        self._ways = [(cores // each, each) for each in range(1, cores + 1) if cores % each == 0]

    def tiles(self, layer):
        """What the first core does of a layer, a list of (layer, :class:`Split`).

        There is one, or several with fewer channels or columns each. ModelError with its sizes if nothing fits.
        """
        return self.shares(layer)[0]

    def shares(self, layer):
        """For each core such a list; empty for a core without work."""
        if self.cycles(layer) is None:
            raise self._too_large(layer)
        (*cuts, way), _ = self._cuts[_signature(layer)]
        held, (rows, channels) = sum(held_bytes(layer)), way
        ranges = self._cut(layer, cuts[0] * channels, *cuts[1:])
        common = _common(ranges, channels)
        own = [(part, self._split(part, held, way, common)) for part in _of_core(ranges, (0, channels))]
        others = [[(part, self._like(part, *first) or self._split(part, held, way, common))
                   for first, part in zip(own, _of_core(ranges, (number, channels)), strict=False)]
                  for number in range(1, channels)]  # fmt: skip
        shares = [[(part, replace(split, span=span)) for part, split in share if span[0] < span[1]]
                  for span in row_spans(layer.output.height, rows) for share in (own, *others)]  # fmt: skip
        return shares if self.machine.shared else shares * self.machine.cores

    def cycles(self, layer):
        """Expected cycles of a layer; None if nothing fits."""
        key = _signature(layer)
        if key not in self._cuts:
            found = [best for way in self._ways if (best := self._best_cuts(layer, way))]
            self._cuts[key] = min(found, key=lambda best: best[1], default=None)
        return self._cuts[key] and self._cuts[key][1]

    def _cut(self, layer, channels, columns, gaps):
        """A layer in ranges of channels and of columns, with or without gaps between pixels."""
        stepped = strided(layer)
        layer = stepped if legal(stepped, self.machine) else layer
        unit = self.machine.conv.row_bytes
        unit = min(unit, BLOCK) if self.machine.shared else unit
        parts = cut_layer(layer, channels, columns, unit) if (channels, columns) != (1, 1) else [layer]
        return _same_gaps([with_gaps(part, self.machine.conv) for part in parts]) if gaps else parts

    def _best_cuts(self, layer, way):
        """The best numbers of ranges of channels and of columns, whether with gaps, ``way``, and the cycles.

        Channels are those of a core. None if nothing fits.
        """
        output, costs, before, least = layer.output, {}, None, inf
        whole = any(part.element * sum(part.out_channels) > output.channels for part in layer.parts)
        needed = min(self._needed(layer, gaps) for gaps in (False, True))
        needed /= self.machine.cores if self.machine.shared else 1
        for columns in _COLUMN_CUTS:
            worse = 0
            for channels in (*_CHANNEL_CUTS, *_MORE_CHANNEL_CUTS):
                all_channels = way[1] * channels
                if columns > output.width or all_channels > ceil(output.channels / self.machine.conv.row_bytes):
                    continue
                if whole and (all_channels, columns) != (1, 1):
                    continue
                if layer.sums and (columns > 1 or (channels > 1 and layer.sums.sources[0].row_pitch > output.channels)):
                    continue  # a line of the sums is whole pixels, or some channels of one
                if costs and channels in _MORE_CHANNEL_CUTS:
                    break
                for gaps in (False, True):
                    cycles = self._cost(layer, channels, columns, gaps, way)
                    if cycles is not None:
                        costs[channels, columns, gaps] = cycles
                cheapest = min(costs.values(), default=inf)
                worse = worse + 1 if cheapest == least < inf else 0
                least = cheapest
                if worse == _WORSE or cheapest <= _GOOD * needed:
                    break
            best = min(costs, key=costs.get, default=None)
            # More columns are tried as long as they help.
            if best and (best == before or costs[best] <= _GOOD * needed):
                break
            before = best
        return ((*best, way), costs[best]) if best else None

    def _needed(self, layer, gaps):
        """Cycles of the engine if each part is one job."""
        conv, (layer,) = self.machine.conv, self._cut(layer, 1, 1, gaps)
        jobs = Counter((kind, part.out_channels[1]) for kind, (_, part) in zip(layer.kinds, layer.stages, strict=True))
        costs = ((layer.stages[kind], channels, count) for (kind, channels), count in jobs.items())
        return layer.output.batch * sum(count * job_cost(stage, part, channels, part.rows, conv).cycles
                                        for (stage, part), channels, count in costs)  # fmt: skip

    def _cost(self, layer, channels, columns, gaps, way):
        """Expected cycles of the first core's share of a layer with these cuts; None if it does not fit."""
        parts = self._cut(layer, channels * way[1], columns, gaps)
        if parts != [layer] and not all(legal(part, self.machine) for part in parts):
            return None
        held, common = sum(held_bytes(layer)), _common(parts, way[1])
        splits = [self._split(part, held, way, common) for part in _of_core(parts, (0, way[1]))]
        if None in splits:
            return None
        return sum(split.cycles for split in splits) - sum(split.ends for split in splits[1:])

    def _split(self, layer, held, way, common):
        """The :class:`Split` of the fewest expected cycles; None if not even one row fits.

        ``held`` bytes of shared memory hold tensors that stay, also those that a range does not read. ``way`` says how
        many cores share the rows and the channels, ``common`` which sources are the same for those that share channels,
        if the range has as many.
        """
        common = common if len(common) == len(layer.sources) else (False,) * len(layer.sources)
        key = _signature(layer), held, way, common
        if key not in self._splits:
            image, room = _image(layer), self.room - held
            spans = row_spans(layer.output.height, way[0])
            costs, height = CoreCosts(layer, self.machine, spans, way, common), spans[0][1]
            unit = layer.rows_of_sum if layer.sums else 1
            choices = sorted({ceil(height / bands / unit) * unit for bands in _BANDS if bands <= height} | {unit})
            splits = [split for rows in choices for split in _of_rows(layer, self.machine, image, costs, rows, room)]
            self._splits[key] = min(splits, key=lambda split: split.cycles, default=None)
        best = self._splits[key]
        return best and replace(best, image=_image(layer))

    def _like(self, layer, first, split):
        """The :class:`Split` of a range in the buffers of ``split``, that of another one; None if it is larger."""
        if len(layer.sources) != len(first.sources):
            return None

        def like(size, place, other):
            return size // other.row_pitch * place.row_pitch

        image, step = _image(layer), self.machine.conv.slaves
        inputs = tuple(map(like, split.input_bytes, layer.sources, first.sources))
        between = like(split.between_bytes, layer.sources[0], first.sources[0]) if layer.first else 0
        output = like(split.output_bytes, layer.output, first.output)
        if _signature(layer) == _signature(first):
            units = split.units
        elif split.resident:
            units = image.units(image.size, step)
        else:
            units = min((image.units(split.units.largest, cut) for cut in (step, 1)), key=lambda units: units.largest)
        mine = image.size, image.table_bytes, units.largest, *inputs, between, output
        theirs = (split.image.size, split.image.table_bytes, split.units.largest, *split.input_bytes,
                  split.between_bytes, split.output_bytes)  # fmt: skip
        if any(size > most for size, most in zip(mine, theirs, strict=True)):
            return None
        return replace(split, image=image, units=units, input_bytes=inputs, between_bytes=between, output_bytes=output,
                       layout=split)  # fmt: skip

    def _too_large(self, layer):
        spans = row_spans(layer.output.height, 1)
        split = next(candidates(layer, self.machine, _image(layer), spans, 1, 0))
        return node_error(
            layer.name,
            layer.operator,
            f"a row takes {sum(split.input_bytes)} bytes of input, {split.output_bytes} of output and "
            f"{split.units.largest + split.image.table_bytes} of weights, more than the {self.room} bytes of shared "
            f"memory, and it cannot be cut further",
        )


def _same_gaps(ranges):
    """Ranges with the gaps of the first one in what all of them read."""
    first, *others = ranges
    given = {replace(as_cut(place), gap=0): place for place in first.sources if not isinstance(place, Held)}
    if first.first or not given:
        return ranges

    def same(place):
        return place if isinstance(place, Held) else given.get(replace(as_cut(place), gap=0), place)

    return [first, *(replace(part, sources=tuple(map(same, part.sources))) for part in others)]


def _common(ranges, shares):
    """Which sources of ranges are the same for the first and the last share of channels, a tuple."""
    first, last = (_of_core(ranges, (number, shares))[:1] for number in (0, shares - 1))
    if shares == 1 or not last or len(first[0].sources) != len(last[0].sources):
        return (False,) * len(first[0].sources)
    return tuple(one == other for one, other in zip(first[0].sources, last[0].sources, strict=True))


def _of_core(ranges, share):
    """The ranges of one share of channels, with all their columns."""
    channels = list(dict.fromkeys(as_cut(part.output).first_channel for part in ranges))
    own = chunk(channels, share)
    return [part for part in ranges if as_cut(part.output).first_channel in own]


def _image(layer):
    """Weights and tables of all stages."""
    return Image([part for _, part in layer.stages])


def _signature(layer):
    """Everything that decides how a layer is cut, hashable."""
    parts = tuple(
        (*(getattr(part, name) for name in _SHAPES), part.operands,
         *(None if array is None else array.shape for array in (part.weights, part.table, part.function)))
        for part in layer.parts
    )  # fmt: skip
    places = tuple((type(place), place.batch, place.height, place.width, place.channels, isinstance(place, Cut) and
                    (gcd(place.first_channel, _MOST_ALIGNED), place.base.channels, place.gap, place.step))
                   for place in (layer.output, *layer.sources))  # fmt: skip
    tables = equal_tables([part for _, part in layer.stages])
    return parts, tables, places, layer.first and _signature(layer.first), layer.sums and _signature(layer.sums)


def _of_rows(layer, machine, image, costs, rows, room):
    """Splits with bands of ``rows`` that fit, with their expected cycles."""
    for split in candidates(layer, machine, image, costs.spans, rows, room):
        if split.room <= room:
            cycles, ends = expected_cycles(layer, split, costs, room)
            yield replace(split, cycles=cycles, ends=ends)
