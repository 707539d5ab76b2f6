"""Layers cut to ranges, joined in pairs, or with gaps between pixels in shared memory (docs/network.md, "Tiles")."""

from dataclasses import replace
from itertools import product
from math import ceil, gcd

from ..lower.layers import reach
from ..lower.places import BLOCK, Cut, Held, as_cut, cut_place
from .costs import cheapest_gap

__all__ = ["MOST", "cut_layer", "join", "legal", "part_from", "strided", "with_gaps"]

#: Elements of a box along one of its dimensions, at most.
MOST = 256
#: The largest step between rows, or columns, of a box.
_FURTHEST = 8


def join(first, then):
    """The layer that does ``first`` and then ``then``, whose source 0 is the output of ``first``."""
    shift = len(first.sources)
    sources = then.sources[0], *first.sources, *then.sources[1:]
    return replace(then, sources=sources, parts=_shifted(then.parts, shift), first=first)


def part_from(layer):
    """``then`` of a layer that :func:`join` made."""
    shift = len(layer.first.sources)
    sources = layer.sources[0], *layer.sources[1 + shift :]
    return replace(layer, sources=sources, parts=_shifted(layer.parts, -shift), first=None)


def _shifted(parts, shift):
    """Parts with ``shift`` added to the numbers of their sources, except source 0."""

    def number(source):
        return source + shift if source else 0

    return tuple(part.renumbered(number) for part in parts)


def cut_layer(layer, channel_cuts, column_cuts, unit):
    """A layer in about as many ranges of output channels, multiples of ``unit`` bytes, and columns as given; a list."""
    output, element = layer.output, layer.output.element
    ranges = _ranges(output.channels // element, channel_cuts, unit // element), _ranges(output.width, column_cuts, 1)
    return [_cut(layer, *pair) for pair in product(*ranges)]


def _ranges(size, count, unit):
    """``size`` in about ``count`` ranges (first, end) of multiples of ``unit``."""
    step = ceil(size / count / unit) * unit
    return [(first, min(first + step, size)) for first in range(0, size, step)]


def legal(layer, machine):
    """Whether boxes can transfer the tensors of a layer that was cut."""
    places = [place for place in (*layer.brought, layer.output) if isinstance(place, Cut)]
    places = [place for place in places if not isinstance(place, Held)]
    aligned = all(value % BLOCK == 0 for place in places for value in (place.base.channels, place.channels))
    return (all(place.unit and place.columns <= MOST for place in places) and (aligned or machine.unaligned)
            and any(not part.blind for part in layer.parts))  # fmt: skip


def strided(layer):
    """A layer with kernels of 1 × 1 that does not load the pixels between its windows; otherwise the layer itself."""
    if layer.first:
        return layer
    sources, parts = list(layer.sources), list(layer.parts)
    for number, place in enumerate(layer.sources):
        steps = {part.stride for part in parts if part.source == number}
        stays = isinstance(place, Held) or any(number in part.operands for part in parts)
        if len(steps) != 1 or stays or max(*(step := steps.pop())) == 1 or max(step) > _FURTHEST:
            continue
        if any(part.source == number and (part.blind or part.kernel != (1, 1) or part.origin != (0, 0))
               for part in parts):  # fmt: skip
            continue
        size = ceil(place.height / step[0]), ceil(place.width / step[1])
        sources[number] = replace(as_cut(place), height=size[0], width=size[1], step=step)
        parts = [replace(part, stride=(1, 1)) if part.source == number else part for part in parts]
    return replace(layer, sources=tuple(sources), parts=tuple(parts)) if tuple(parts) != layer.parts else layer


def with_gaps(layer, conv):
    """A layer with gaps between pixels in shared memory where it reads them faster; otherwise the layer itself."""
    if layer.first:
        then = with_gaps(part_from(layer), conv)
        return join(replace(with_gaps(layer.first, conv), output=then.sources[0]), then)
    sources = list(layer.sources)
    for number, place in enumerate(layer.sources):
        parts = [part for part in layer.parts if part.source == number and not part.blind]
        stays = isinstance(place, Held) or any(number in part.operands for part in layer.parts)
        if parts and not stays and place.channels % (BLOCK // 2) == 0:
            gap = cheapest_gap(parts, place.channels, conv)
            sources[number] = replace(as_cut(place), gap=gap) if gap else place
    return replace(layer, sources=tuple(sources)) if tuple(sources) != layer.sources else layer


def _cut(layer, channels, columns):
    """The layer that makes some channels and columns of the output."""
    if layer.first:
        then = _cut(part_from(layer), channels, columns)
        needed = as_cut(then.sources[0])
        firsts, counts = (needed.first_channel, needed.first_column), (needed.channels, needed.width)
        ranges = ((first, first + count) for first, count in zip(firsts, counts, strict=True))
        return join(replace(_cut(layer.first, *ranges), output=then.sources[0]), then)
    pieces = [(part, changes) for part in layer.parts if (changes := _part(part, channels, columns))]
    sources, x, operands, windows, channels_of = [], {}, {}, {}, {}
    for number, place in enumerate(layer.sources):
        readers = [piece for piece in pieces if piece[0].source == number and not piece[0].blind]
        if readers:
            windows[number] = _window(place, readers)
            x[number] = len(sources)
            sources.append(cut_place(place, *windows[number]))
        rows = [part for part, _ in pieces if part.weight_source == number and part.weight_rows]
        if rows:
            channels_of[number] = _covered((part.weight_start[1], part.channels[1]) for part in rows)
            operands[number] = len(sources)
            sources.append(cut_place(place, channels_of[number], (0, place.width)))
        elif any(number == part.table_source for part, _ in pieces):
            operands[number] = len(sources)
            sources.append(_range(place, (0, place.channels), channels))
        elif any(number in part.operands for part, _ in pieces):
            operands[number] = len(sources)
            sources.append(_range(place, channels, columns if place.width > 1 else (0, 1)))
    parts = []
    for part, changes in pieces:
        source = part.weight_source
        if part.blind:
            changes["source"] = 0
        else:
            (first, _), (column, _) = windows[part.source]
            left = part.origin[1] - columns[0] * part.stride[1] + column
            start, count = changes.get("channels", part.channels)
            changes |= {"origin": (part.origin[0], left), "channels": (start - first, count)}
            part = part.renumbered(x.__getitem__, operands.__getitem__)
        if part.weight_rows:
            row, channel = changes.get("weight_start", part.weight_start)
            changes["weight_start"] = row, channel - channels_of[source][0]
        (start, count), (begin, end) = changes["out_channels"], changes["columns"]
        changes |= {"out_channels": (start - channels[0], count), "columns": (begin - columns[0], end - columns[0])}
        parts.append(replace(part, **changes))
    element = layer.output.element
    output, sums = _range(layer.output, [element * channel for channel in channels], columns), layer.sums
    if sums and output != layer.output:
        sums = _sums_of_channels(sums, *channels)
    return replace(layer, output=output, sources=tuple(sources), parts=tuple(parts), sums=sums)


def _sums_of_channels(sums, first, end):
    """A layer that adds up pixels, for some channels of them: lines of fewer channels have other runs."""
    (part,), (lines,), output = sums.parts, sums.sources, sums.output
    run = gcd(end - first, lines.channels)
    runs, base = (end - first) // run, output.base
    whole = replace(base, width=base.width * lines.channels // run, channels=base.channels * run // lines.channels)
    output = replace(output, base=whole, channels=whole.channels, width=runs, first_column=first // run)
    table = None if part.table is None else part.table[:run]
    part = replace(part, channels=(0, run), out_channels=(0, run), columns=(0, runs), table=table)
    return replace(sums, output=output, sources=(replace(lines, width=runs, channels=run),), parts=(part,))


def _range(place, channels, columns):
    return cut_place(place, (channels[0], channels[1] - channels[0]), (columns[0], columns[1] - columns[0]))


def _part(part, channels, columns):
    """What changes of a part that makes some channels and columns, a dict of its fields; None if it makes none."""
    start, count = part.out_channels
    first, last = max(start, channels[0]), min(start + count, channels[1])
    begin, end = max(part.columns[0], columns[0]), min(part.columns[1], columns[1])
    if first >= last or begin >= end:
        return None
    changes = {"out_channels": (first, last - first), "columns": (begin, end)}
    if part.operation.lanes:
        changes["channels"] = (part.channels[0] + first - start, last - first)
    if last - first < count:
        some = slice(first - start, last - start)
        if part.weight_rows:
            row, channel = part.weight_start
            changes["weight_start"] = row + first - start, channel
        if part.table is not None:
            changes["table"] = part.table[some]
        if part.weights is not None:
            changes["weights"] = part.weights[:, some] if part.operation.lanes else part.weights[some]
    return changes


def _window(place, pieces):
    """Channels and columns, each (first, count), that parts with their changes need of a source."""
    channels = _covered(changes.get("channels", part.channels) for part, changes in pieces)
    reached = [reach(*changes["columns"], part.kernel[1], part.stride[1], part.dilation[1], part.origin[1], place.width)
               for part, changes in pieces]  # fmt: skip
    left, right = min(low for low, _ in reached), max(high for _, high in reached)
    return channels, (left, right - left)


def _covered(ranges):
    """The (first, count) that covers all of ``ranges``."""
    ranges = list(ranges)
    first, last = min(first for first, _ in ranges), max(map(sum, ranges))
    return first, last - first
