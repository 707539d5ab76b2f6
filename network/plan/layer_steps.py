"""Steps of a layer that has been cut, in order, with their addresses (docs/network.md, "The program")."""

from dataclasses import dataclass, replace

from tilewright.spec.conv import ConvOperation

from ..lower.layers import reach
from ..lower.places import LINE, LONG, Cut, Held, as_cut, padded
from ..tiling.costs import BandCosts, band_rows, plan_part, stage_rows
from ..tiling.cuts import MOST
from ..tiling.weights import Piece
from .steps import Jobs, Load, Map, Store, Transfer, block

__all__ = ["held_store", "image_at", "layer_steps", "transfers_of"]


@dataclass
class _Buffers:
    """Addresses of the buffers of a layer in shared memory; sources and outputs have several sets."""

    tables: int
    between: int
    units: list
    sources: list
    outputs: list


def _buffers(split, base, down):
    """The :class:`_Buffers` of a split from ``base`` on: those needed first come first, or last if ``down``."""
    split, offset, spots = split.layout or split, 0, []
    for size in (split.weight_room, split.between_bytes, *(*split.input_bytes, split.output_bytes) * split.depth):
        room = padded(size, LINE)
        spots.append(base + (split.room - offset - room if down else offset))
        offset += room
    tables, between, count = spots.pop(0), spots.pop(0), len(split.input_bytes) + 1
    largest = split.units.largest
    if split.resident:
        units = [tables + unit.start for unit in split.units]
    elif down:
        units = [tables + largest * slot for slot in reversed(range(split.slots))]
        tables += largest * split.slots
    else:
        units = [tables + split.image.table_bytes + largest * slot for slot in range(split.slots)]
    turns = [spots[first : first + count] for first in range(0, len(spots), count)]
    return _Buffers(tables, between, units, [turn[:-1] for turn in turns], [turn[-1] for turn in turns])


def image_at(split, base, down, weights):
    """Source and destination of the image of a split whose weights all stay; None if they do not, or if it is empty."""
    return (weights, _buffers(split, base, down).tables) if split.resident and split.image.size else None


def layer_steps(layer, split, base, down, addresses, weights, conv, held=None, loaded=False, apart=False):
    """Steps of a layer with buffers from ``base`` on in shared memory.

    Parameters
    ----------
    layer : Layer
    split : Split
    base : int
    down : bool
        The buffers that are needed first lie at the end.
    addresses : dict of str to int
        Addresses of tensors in global memory.
    weights : int
        Address of the layer's image in global memory.
    conv : ConvParams
    held : dict of str to int
        Addresses of tensors that stay in shared memory.
    loaded : bool
        The range before has left all weights where :func:`image_at` says.
    apart : bool
        Sources of a band are loads of their own.
    """
    return _Range(layer, split, _buffers(split, base, down), addresses, weights, conv, held or {}, apart).steps(loaded)


@dataclass
class _Range:
    """A layer, or a range of it, with its buffers."""

    layer: object
    split: object
    buffers: _Buffers
    addresses: dict
    weights: int
    conv: object
    held: dict
    apart: bool

    def __post_init__(self):
        self._costs, self._units = BandCosts(self.layer, self.conv), 0  # units that have been loaded

    def steps(self, loaded):
        """Loads, jobs and the store of each band."""
        layer, split, sums = self.layer, self.split, []
        for number, (image, *rows) in enumerate(split.bands(layer)):
            rows, turn = tuple(rows), number % split.depth
            inputs = self._inputs(image, rows, self.buffers.sources[turn])
            stays = isinstance(layer.output, Held)
            output = _spot(layer.output, self.held, image, rows[0]) if stays else self.buffers.outputs[turn]
            places = zip(layer.sources, inputs, split.input_bytes, strict=True)
            transfers = [each for place, ((low, high), spot), size in places if high > low and size
                         for each in transfers_of(place, self.addresses, image, low, high, size, spot)]  # fmt: skip
            # Of two layers the one can be computed while rows of the other are loaded.
            apart = layer.first or self.apart
            loads = [Load([each]) for each in transfers] if apart else [Load(transfers)] if transfers else []
            resident = split.resident and (number or loaded)
            for units in [list(split.units)] if resident else [[unit] for unit in split.units]:
                fetched = [] if resident else self._fetch(*units)
                # Rows of a later band come before its weights, which wait for a buffer. Rows of the first band, which
                # wait for the layer before, come after them.
                yield from (*loads, *fetched) if number else (*fetched, *loads)
                loads = []
                jobs = self._jobs(units, rows, inputs, output, resident)
                added = jobs.pop(layer.sums, None)
                # Sums of a band are added while the next one is computed, if that has another buffer.
                yield from (*jobs.values(), *sums)
                sums = [added] if added else []
                if split.depth == 1:
                    yield from sums
                    sums = []
            if not stays:
                # Rows after the last band are of another core, unless the tensor ends there.
                inside = rows[1] < layer.output.height
                room = (rows[1] - rows[0]) * layer.output.row_pitch if inside else split.output_bytes
                yield Store([_band(layer.output, self.addresses, image, *rows, room, output)])
        yield from sums

    def _inputs(self, image, rows, spots):
        """Rows of each source that a band reads, and the address of the first of them."""
        spots = [self.buffers.between, *spots[1:]] if self.layer.first else spots
        needed = [band_rows(self.layer, source, rows) for source in range(len(spots))]
        return [(span, _spot(place, self.held, image, span[0]) if isinstance(place, Held) else spot)
                for span, place, spot in zip(needed, self.layer.sources, spots, strict=True)]  # fmt: skip

    def _fetch(self, unit):
        """Loads of a unit of weights, the first one with the tables."""
        buffers, split, first = self.buffers, self.split, not self._units
        blocks = [(unit.start, buffers.units[self._units % len(buffers.units)], unit.end - unit.start)]
        if first and split.resident:
            blocks = [(0, buffers.tables, unit.end)]
        elif first:  # a load of their own: their buffer may be free later than the one of the weights
            blocks.append((0, buffers.tables, split.image.table_bytes))
        self._units += 1
        return [Load([block(self.weights + start, near, size)]) for start, near, size in blocks if size]

    def _jobs(self, units, rows, inputs, output, resident):
        """The :class:`Jobs` of units of weights in a band, by stage."""
        layer, buffers, split = self.layer, self.buffers, self.split
        # If all weights stay, a job takes all channels of its part.
        pieces = _whole_parts(layer, split.image) if resident else units[0].pieces
        base = buffers.tables
        if not split.resident:
            base = buffers.units[(self._units - 1) % len(buffers.units)] - units[0].start
        kernels = [(base + units[0].start, base + units[-1].end)] if units[-1].end > units[0].start else []
        steps = {}
        for piece in pieces:
            stage, part = layer.stages[piece.part]
            stage_band = stage_rows(layer, stage, rows)
            sources, target = (inputs, output) if stage is layer else (inputs[1:], buffers.between)
            if stage is layer.sums:
                sources, target = self._sums(rows, stage_band, output)
            fields = self._job(stage, part, piece, stage_band, sources, target, base)
            if fields:
                jobs = steps.get(stage)
                if jobs is None:
                    reads = _reads(buffers, split.image, sources, stage)
                    steps[stage] = jobs = Jobs([], reads, [_span(stage.output, *stage_band, target)], weights=kernels)
                cost = self._costs.job(layer.kinds[piece.part], piece.last - piece.first, rows)
                jobs.jobs.append(fields)
                jobs.held, jobs.cycles = jobs.cycles + cost.held, jobs.cycles + cost.cycles
        if layer in steps:
            steps[layer].cycles += self._costs.turn(rows)
        return steps

    def _sums(self, rows, band, output):
        """Lines of a band of the output that sums add up, as their sources, and where their ``band`` of rows begins."""
        layer, (lines,) = self.layer, self.layer.sums.sources
        span = tuple(row * layer.output.row_pitch // lines.row_pitch for row in rows)
        return [(span, output)], _spot(layer.sums.output, self.held, 0, band[0])

    def _job(self, layer, part, piece, band, inputs, target, base):
        """Fields of the job of a piece of a part in a band, with weights from ``base`` on; None if it has no point."""
        number, first, last = piece.part, piece.first, piece.last
        rows = max(band[0], part.rows[0]), min(band[1], part.rows[1])
        if rows[0] >= rows[1]:
            return None
        place, output = layer.sources[part.source], layer.output
        count, height, width = last - first, rows[1] - rows[0], part.columns[1] - part.columns[0]
        plan, _ = plan_part(part, count, height, width, 0 if part.blind else place.pixel_pitch, self.conv)
        lanes, table = part.operation.lanes, self.buffers.tables + self.split.image.tables[number]
        y = target + (rows[0] - band[0]) * output.row_pitch + part.columns[0] * output.pixel_pitch
        y += part.element * (part.out_channels[0] + first)
        y_pitch = _pitches(output, height)
        fields = {
            "operation": part.operation, "type": part.type, "output": part.output, "y": y, "y_pitch": y_pitch,
            "raster": plan.raster, "granularity": plan.block_bytes.bit_length() - 1, "merge": plan.merge,
            "channels": count if lanes else part.channels[1], "out_channels": count,
            "out_width": width, "out_height": height,
            "kernel": part.kernel[::-1], "stride": part.stride[::-1], "dilation": part.dilation[::-1],
            "x_zero": part.x_zero, "k_zero": part.k_zero, "y_zero": part.y_zero,
            "minimum": part.minimum, "maximum": part.maximum,
        }  # fmt: skip
        if part.table is not None:
            fields |= {"table": table + 8 * first, "bias": int(part.table[:, 0].any())}
        if part.table_source is not None:
            (_, spot), pixel = inputs[part.table_source], layer.sources[part.table_source].pixel_pitch
            fields |= {"table": spot + pixel * (part.out_channels[0] + first), "bias": 1}
        if part.function is not None:
            fields |= {"function": 1, "function_table": self.buffers.tables + self.split.image.functions[number]}
        if part.zero_first:
            fields["zero_first"] = 1
        if part.weight_source is not None:
            (low, _), spot = inputs[part.weight_source]
            if lanes:
                fields |= {"k": spot + part.out_channels[0] + first, "k_pitch": count}
            else:
                (row, channel), pitch = part.weight_start, layer.sources[part.weight_source].row_pitch
                fields |= {"k": spot + (row + first - low) * pitch + channel, "k_pitch": pitch}
        if part.weights is not None:
            pitch = part.weights.shape[1]
            k = base + self.split.image.weights[number]
            fields |= {"k": k + (0 if part.operation == ConvOperation.DEPTHWISE else first * pitch), "k_pitch": pitch}
        if part.addition:
            added = part.addition
            ((low, _), spot), second = inputs[added.source], layer.sources[added.source]
            pixel, row = (pitch * (size > 1) for pitch, size in ((second.pixel_pitch, second.width),
                                                                 (second.row_pitch, second.height)))  # fmt: skip
            addend = spot + (rows[0] - low) * row + part.columns[0] * pixel + part.out_channels[0] + first
            fields |= {
                "add": 1, "addend": addend, "addend_pitch": (pixel, row, row * height), "ratio": added.ratio,
                "offset": added.offset, "add_minimum": added.minimum, "add_maximum": added.maximum,
            }  # fmt: skip
        if part.blind:
            return fields | {"x": table, "x_pitch": (0, 0, 0), "width": 1, "height": 1}
        (low, _), spot = inputs[part.source]
        height, top, row = _window(rows, 0, part, place.height)
        width, left, column = _window(part.columns, 1, part, place.width)
        x = spot + (row - low) * place.row_pitch + column * place.pixel_pitch + part.channels[0]
        return fields | {
            "x": x + (first if lanes else 0), "x_pitch": _pitches(place, height),
            "width": width, "height": height, "padding": (left, top),
        }  # fmt: skip


def _spot(place, held, image, row):
    """Address of a row of a tensor that stays in shared memory."""
    return held[place.name] + min(image, place.batch - 1) * place.image_pitch + row * place.row_pitch + place.offset


def held_store(place, address, addresses):
    """The :class:`Store` of a tensor that stays in shared memory, at ``address``, and is needed later too."""
    whole = replace(as_cut(place.base), gap=place.gap) if place.gap else place.base
    spots = ((image, address + image * place.image_pitch) for image in range(place.batch))
    return Store([_band(whole, addresses, image, 0, place.height, place.image_pitch, spot) for image, spot in spots])


def transfers_of(place, addresses, image, low, high, room, near):
    """Transfers of rows of a tensor: one, or several boxes of as many rows as a box may have."""
    pitch = place.row_pitch
    if not isinstance(place, Cut) or room <= MOST * pitch:
        return [_band(place, addresses, image, low, high, room, near)]
    return [_band(place, addresses, image, first, min(first + MOST, high), min(MOST, high - first) * pitch,
                  near + (first - low) * pitch) for first in range(low, high, MOST)]  # fmt: skip


def _band(place, addresses, image, low, high, room, near):
    """A :class:`Transfer` of rows of a tensor: a block, or a box of as many rows as fit in ``room`` bytes."""
    whole = place.base if isinstance(place, Cut) else place
    image = min(image, place.batch - 1)  # an operand may be the same for all images
    far = addresses[place.name] + image * whole.image_pitch
    if whole is place:
        return block(far + low * whole.row_pitch, near, (high - low) * whole.row_pitch)
    channel = (0, place.first_channel // LONG) if place.long else (place.first_channel // place.unit,)
    coords = *channel, place.first_column, low * place.step[0], image
    return Transfer(near, room, far, Map(place, room // place.row_pitch, addresses[place.name]), coords)


def _whole_parts(layer, image):
    """Every part as one piece."""
    return [Piece(number, 0, part.out_channels[1], image.weights[number])
            for number, (_, part) in enumerate(layer.stages)]  # fmt: skip


def _reads(buffers, image, inputs, layer):
    """Bytes of shared memory that jobs of a band read, without weights."""
    reads = [(buffers.tables, buffers.tables + image.table_bytes)]
    before = len(layer.first.sources) if layer.first else 0  # sources that only the first one of two layers reads
    for number, (place, ((low, high), spot)) in enumerate(zip(layer.sources, inputs, strict=False)):
        if not 0 < number <= before:
            reads.append(_span(place, low, high, spot))
    return [span for span in reads if span[1] > span[0]]


def _span(place, low, high, spot):
    """Bytes of some rows of a tensor, which begin at ``spot``: the first one and the end."""
    size = (high - low) * place.row_pitch
    if isinstance(place, Held) and size:
        size += (place.width - 1) * place.pixel_pitch + place.channels - place.row_pitch
    return spot, spot + size


def _pitches(place, height):
    """Bytes from one pixel, row and image of ``height`` rows to the next."""
    return place.pixel_pitch, place.row_pitch, place.row_pitch * height


def _window(points, axis, part, size):
    """Input rows (axis 0) or columns of a job, the padding before them, and the first one."""
    first, last = points
    taps, step, apart, before = (getattr(part, name)[axis] for name in ("kernel", "stride", "dilation", "origin"))
    low, high = reach(first, last, taps, step, apart, before, size)
    start = first * step - before
    if start >= size:  # windows wholly after the last one give the same as windows wholly before the first one
        return high - low, (last - first - 1) * step + (taps - 1) * apart + 1, low
    return high - low, low - start, low
