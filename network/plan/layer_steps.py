"""A layer that has been cut, as loads, jobs and stores in their order (docs/network.md, "The program")."""

from dataclasses import dataclass, replace

from tilewright.spec.conv import ConvOperation

from ..lower.layers import reach
from ..lower.places import LINE, LONG, Cut, Held, as_cut, padded
from .costs import BandCosts, band_rows, plan_part, stage_rows
from .steps import Jobs, Load, Map, Store, Transfer, block
from .weights import Piece

__all__ = ["held_store", "image_at", "layer_steps"]


@dataclass
class _Buffers:
    """Where buffers of a layer begin in shared memory; of units of weights those that there are."""

    tables: int
    between: int
    units: list
    sources: list
    outputs: list


def _buffers(one, base, down):
    """The :class:`_Buffers` of a split from ``base`` on; what is needed first is first or, ``down``, last."""
    offset, spots = 0, []
    for size in (one.weight_room, one.between_bytes, *(*one.input_bytes, one.output_bytes) * one.depth):
        room = padded(size, LINE)
        spots.append(base + (one.room - offset - room if down else offset))
        offset += room
    tables, between, several = spots.pop(0), spots.pop(0), len(one.input_bytes) + 1
    if one.resident:
        units = [tables + unit.start for unit in one.units]
    elif down:
        units = [tables + one.units.largest * slot for slot in reversed(range(one.slots))]
        tables += one.units.largest * one.slots
    else:
        units = [tables + one.image.table_bytes + one.units.largest * slot for slot in range(one.slots)]
    turns = [spots[first : first + several] for first in range(0, len(spots), several)]
    return _Buffers(tables, between, units, [turn[:-1] for turn in turns], [turn[-1] for turn in turns])


def image_at(one, base, down, weights):
    """Where the image of a split whose weights all stay comes from, and where to; None if they do not stay.

    None too if there are none: an empty image has the address of the one behind it.
    """
    return (weights, _buffers(one, base, down).tables) if one.resident and one.image.size else None


def layer_steps(layer, one, base, down, addresses, weights, conv, held=None, loaded=False):
    """Steps of a layer with buffers from ``base`` on in shared memory.

    Parameters
    ----------
    layer : Layer
    one : Split
    base : int
    down : bool
        What is needed first lies at the end of them.
    addresses : dict of str to int
        Of tensors in global memory, by name.
    weights : int
        Address of the layer's image in global memory.
    conv : ConvParams
    held : dict of str to int
        Addresses in shared memory of tensors that stay there.
    loaded : bool
        All weights are where :func:`image_at` says, of the range before.
    """
    held = held or {}
    buffers, image, brought = _buffers(one, base, down), one.image, 0
    costs = BandCosts(layer, conv)
    for number, band in enumerate(one.bands(layer)):
        turn = number % one.depth
        spots = buffers.sources[turn]
        if layer.first:
            spots = [buffers.between, *spots[1:]]
        inputs = []
        for source, (place, spot) in enumerate(zip(layer.sources, spots, strict=True)):
            low, high = band_rows(layer, source, band[1:])
            there = isinstance(place, Held)
            inputs.append(((low, high), _spot(place, held, band[0], low) if there else spot))
        stays = isinstance(layer.output, Held)
        made = _spot(layer.output, held, *band[:2]) if stays else buffers.outputs[turn]
        places = zip(layer.sources, inputs, one.input_bytes, strict=True)
        transfers = [_band(place, addresses, band[0], low, high, size, spot)
                     for place, ((low, high), spot), size in places if high > low and size]  # fmt: skip
        taken = [Load(transfers)] if transfers else []
        stay = one.resident and (number or loaded)
        for group in [list(one.units)] if stay else [[unit] for unit in one.units]:
            fetched = []
            for unit in () if stay else group:
                spot = buffers.units[brought % len(buffers.units)]
                blocks = [(unit.start, spot, unit.end - unit.start)]
                if not brought and one.resident:
                    blocks = [(0, buffers.tables, unit.end)]
                elif not brought:  # tables by themselves: they may have room later than weights
                    blocks.append((0, buffers.tables, image.table_bytes))
                fetched += [Load([block(weights + start, near, size)]) for start, near, size in blocks if size]
                brought += 1
            # Rows of a later band may come before its weights, which wait for a buffer; those of the first one wait for
            # the layer before.
            if number:
                yield from taken
            yield from fetched
            if not number:
                yield from taken
            taken = []
            # Where all weights stay, a job that finds them there takes all channels of its part.
            at = buffers.tables if one.resident else buffers.units[(brought - 1) % len(buffers.units)] - group[0].start
            found = {}
            for piece in _whole_parts(layer, image) if stay else group[0].pieces:
                stage, part = layer.stages[piece.part]
                rows = stage_rows(layer, stage, band[1:])
                ends = (inputs, made) if stage is layer else (inputs[1:], buffers.between)
                fields = _job(stage, part, piece, rows, *ends, at, buffers.tables, image, conv)
                if fields:
                    reads = _reads(buffers, image, ends[0], stage)
                    kernels = [(at + group[0].start, at + group[-1].end)] if group[-1].end > group[0].start else []
                    results = [_span(stage.output, *rows, ends[1])]
                    jobs = found.setdefault(stage, Jobs([], reads, results, weights=kernels))
                    cost = costs.job(layer.kinds[piece.part], piece.last - piece.first, band[1:])
                    jobs.jobs.append(fields)
                    jobs.held, jobs.cycles = jobs.cycles + cost.held, jobs.cycles + cost.cycles
            for stage, jobs in found.items():
                if stage is layer:
                    jobs.cycles += costs.turn(tuple(band[1:]))
                yield jobs
        if not stays:
            yield Store([_band(layer.output, addresses, band[0], band[1], band[2], one.output_bytes, made)])


def _spot(place, held, image, row):
    """Where a row of a tensor that stays in shared memory begins."""
    return held[place.name] + image * place.image_pitch + row * place.row_pitch + place.offset


def held_store(place, address, addresses):
    """The :class:`Store` of a tensor that stays in shared memory, at ``address``, if it is needed later on too."""
    whole = replace(as_cut(place.base), gap=place.gap) if place.gap else place.base
    spots = ((image, address + image * place.image_pitch) for image in range(place.batch))
    return Store([_band(whole, addresses, image, 0, place.height, place.image_pitch, spot) for image, spot in spots])


def _band(place, addresses, image, low, high, room, near):
    """A :class:`Transfer` of rows of a tensor: a block, or a box of as many rows as there is room for."""
    whole = place.base if isinstance(place, Cut) else place
    far = addresses[place.name] + image * whole.image_pitch
    if whole is place:
        return block(far + low * whole.row_pitch, near, (high - low) * whole.row_pitch)
    channel = (0, place.first_channel // LONG) if place.long else (place.first_channel // place.unit,)
    coords = *channel, place.first_column, low * place.step[0], image
    return Transfer(near, room, far, Map(place, room // place.row_pitch), coords)


def _whole_parts(layer, image):
    """Every part as one piece."""
    return [Piece(number, 0, part.out_channels[1], image.weights[number])
            for number, (_, part) in enumerate(layer.stages)]  # fmt: skip


def _reads(buffers, image, inputs, layer):
    """Bytes of shared memory that jobs of a band read, besides weights."""
    reads = [(buffers.tables, buffers.tables + image.table_bytes)]
    before = len(layer.first.sources) if layer.first else 0  # those of the layer before are read by it alone
    for number, (place, ((low, high), spot)) in enumerate(zip(layer.sources, inputs, strict=False)):
        if not 0 < number <= before:
            reads.append(_span(place, low, high, spot))
    return [span for span in reads if span[1] > span[0]]


def _span(place, low, high, spot):
    """Bytes from the first to the last of some rows of a tensor, which begin at ``spot``."""
    size = (high - low) * place.row_pitch
    if isinstance(place, Held) and size:
        size += (place.width - 1) * place.pixel_pitch + place.channels - place.row_pitch
    return spot, spot + size


def _job(layer, part, piece, band, inputs, made, at, tables, image, conv):
    """Fields of the job of a piece of a part in a band; None if it has no point there."""
    number, first, last = piece.part, piece.first, piece.last
    rows = max(band[0], part.rows[0]), min(band[1], part.rows[1])
    if rows[0] >= rows[1]:
        return None
    place, output = layer.sources[part.source], layer.output
    count, columns = last - first, part.columns[1] - part.columns[0]
    plan, _ = plan_part(part, count, rows[1] - rows[0], columns, 0 if part.blind else place.pixel_pitch, conv)
    lanes = part.operation.lanes
    table = tables + image.tables[number]
    y = made + (rows[0] - band[0]) * output.row_pitch + part.columns[0] * output.pixel_pitch
    y += part.element * (part.out_channels[0] + first)
    y_pitch = _pitches(output, rows)
    fields = {
        "operation": part.operation, "type": part.type, "output": part.output, "y": y, "y_pitch": y_pitch,
        "raster": plan.raster, "granularity": plan.block_bytes.bit_length() - 1, "merge": plan.merge,
        "channels": count if lanes else part.channels[1], "out_channels": count,
        "out_width": columns, "out_height": rows[1] - rows[0],
        "kernel": part.kernel[::-1], "stride": part.stride[::-1], "dilation": part.dilation[::-1],
        "x_zero": part.x_zero, "k_zero": part.k_zero, "y_zero": part.y_zero,
        "minimum": part.minimum, "maximum": part.maximum,
    }  # fmt: skip
    if part.table is not None:
        fields |= {"table": table + 8 * first, "bias": int(part.table[:, 0].any())}
    if part.weights is not None:
        row = part.weights.shape[1]
        fields |= {"k": at + image.weights[number] + (0 if part.operation == ConvOperation.DEPTHWISE else first * row),
                   "k_pitch": row}  # fmt: skip
    if part.addition:
        added = part.addition
        addend, addend_pitch = y, y_pitch
        if added.source is not None:
            (low, _), spot = inputs[added.source]
            second = layer.sources[added.source]
            addend = spot + (rows[0] - low) * second.row_pitch + part.columns[0] * second.pixel_pitch
            addend, addend_pitch = addend + part.out_channels[0] + first, _pitches(second, rows)
        fields |= {
            "add": 1, "addend": addend, "addend_pitch": addend_pitch,
            "ratio": added.ratio, "offset": added.offset, "add_minimum": added.minimum, "add_maximum": added.maximum,
        }  # fmt: skip
    if part.blind:
        return fields | {"x": table, "x_pitch": (0, 0, 0), "width": 1, "height": 1}
    (low, _), spot = inputs[part.source]
    height, top, row = _window(rows, 0, part, place.height)
    width, left, column = _window(part.columns, 1, part, place.width)
    x = spot + (row - low) * place.row_pitch + column * place.pixel_pitch + part.channels[0]
    return fields | {
        "x": x + (first if lanes else 0), "x_pitch": (place.pixel_pitch, place.row_pitch, place.row_pitch * height),
        "width": width, "height": height, "padding": (left, top),
    }  # fmt: skip


def _pitches(place, rows):
    """Bytes from a pixel, a row and an image to the next, of so many rows."""
    return place.pixel_pitch, place.row_pitch, place.row_pitch * (rows[1] - rows[0])


def _window(points, axis, part, size):
    """Input rows (axis 0) or columns of a job, its padding before them, and the first one."""
    first, last = points
    taps, step, apart, before = (getattr(part, name)[axis] for name in ("kernel", "stride", "dilation", "origin"))
    low, high = reach(first, last, taps, step, apart, before, size)
    start = first * step - before
    if start >= size:  # windows wholly behind the last one: as good as windows wholly before the first one
        return high - low, (last - first - 1) * step + (taps - 1) * apart + 1, low
    return high - low, low - start, low
