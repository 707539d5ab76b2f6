"""Layers that are done together or pass tensors in shared memory (docs/network.md, "Layers done together").

All combinations of neighbours are compared by their expected cycles.
"""

from collections import Counter
from dataclasses import replace
from itertools import takewhile
from math import inf

from tilewright.spec.conv import ConvOperation

from ..lower.places import BLOCK, LINE, as_cut, as_held, padded
from .costs import band_rows, cheapest_gap
from .cuts import MOST, join, part_from
from .splits import held_bytes

__all__ = ["beside_kernels", "combine"]


def beside_kernels(layers):
    """The layers in an order in which jobs that a kernel does not wait for come after it, and run beside it.

    Jobs between two kernels come after others than those whose results they read, where that can be. Without kernels
    nothing changes.
    """
    if not any(layer.kernel for layer in layers):
        return layers
    ordered = []
    for layer in layers:
        if layer.kernel:
            needed, before = {place.name for place in layer.sources}, []
            while ordered and not ordered[-1].kernel:
                before.append(ordered.pop())
            ancestors = []
            for other in before:
                if other.output.name in needed:
                    needed.update(place.name for place in other.sources)
                    ancestors.append(other)
            others = [other for other in reversed(before) if other not in ancestors]
            ordered += [*reversed(ancestors), layer, *others]
        else:
            ordered.append(layer)
    return tuple(_apart(ordered))


def _apart(layers):
    """Yields the layers in an order in which few read the result of the layer just before. Kernels do not move."""
    left, last, to_come = list(layers), "", Counter(layer.output.name for layer in layers)
    while left:
        for layer in takewhile(lambda layer: not layer.kernel, left):
            sources = [place.name for place in layer.sources]
            if last not in sources and not any(to_come[name] for name in sources):
                break
        else:
            layer = left[0]
        left.remove(layer)
        last = layer.output.name
        to_come[last] -= 1
        yield layer


def combine(layers, tiler, kept):
    """The layers in order, with neighbours joined or results left in shared memory, for the fewest expected cycles.

    Parameters
    ----------
    layers : sequence of Layer
    tiler : Tiler
    kept : collection of str
        Tensors that have to lie in global memory.
    """
    readers = Counter(name for layer in layers for name in {place.name for place in layer.sources})
    # By the number of layers done and the tensor that the last one leaves in shared memory: cycles, the key before, and
    # the layer.
    best = {(0, None): (0, None, None)}
    for number in range(1, len(layers) + 1):
        choices = [(number - 1, layers[number - 1])]
        large = number > 1 and layers[number - 2].output.size > tiler.room
        if large and (both := _pair(*layers[number - 2 : number], readers, kept)):
            choices.append((number - 2, both))
        following = layers[number] if number < len(layers) else None
        sums_stay = _held(layers[number - 1], following, tiler)
        sums = layers[number - 1].output.name
        if sums_stay and number > 1 and readers[sums] == 1 and sums not in kept:
            makers = [(number - 2, layers[number - 2])]
            if number > 2 and layers[number - 3].output.size > tiler.room:
                makers.append((number - 3, _pair(*layers[number - 3 : number - 1], readers, kept)))
            choices += [(before, both) for before, maker in makers if (both := _with_sums(maker, layers[number - 1]))]
        for before, layer in choices:
            for held in [sums_stay] if layer.sums else dict.fromkeys((None, _held(layer, following, tiler))):
                for key in [key for key in best if key[0] == before]:
                    choice = _with(layer, key[1], held)
                    cycles = best[key][0] + _cycles(tiler, choice)
                    if cycles < inf:
                        cycles -= _hidden(tiler, best[key][2], choice)
                    if cycles < best.get((number, held), (inf,))[0]:
                        best[number, held] = cycles, key, choice
    if (len(layers), None) not in best:
        for layer in layers:
            if layer.parts:
                tiler.tiles(layer)  # raises the error of the layer that does not fit
    combined, key = [], (len(layers), None)
    while key[0]:
        _, key, layer = best[key]
        combined.append(layer)
    return tuple(reversed(combined))


def _pair(first, then, readers, kept):
    """Two neighbours joined; None if they cannot be.

    Parameters
    ----------
    first, then : Layer
    readers : dict of str to int
        How many layers read each tensor.
    kept : collection of str
        Tensors that have to lie in global memory.
    """
    between = first.output
    numbers = [number for number, place in enumerate(then.sources) if place.name == between.name]
    if not first.parts or not then.parts or len(numbers) != 1 or readers[between.name] != 1 or between.name in kept:
        return None
    (number,) = numbers
    if then.sources[number] != between or any(part.blind for part in (*first.parts, *then.parts)):
        return None
    if any(number in part.operands for part in then.parts):
        return None
    order = [number, *(other for other in range(len(then.sources)) if other != number)]
    parts = tuple(part.renumbered(order.index) for part in then.parts)
    sources, name = tuple(then.sources[other] for other in order), f"{first.name} + {then.name}"
    return join(first, replace(then, name=name, sources=sources, parts=parts))


def _with_sums(layer, sums):
    """A layer together with ``sums``, which add up its output; None if they read anything else, or not in lines."""
    if layer is None or not layer.parts or len(sums.parts) != 1 or len(sums.sources) != 1:
        return None
    (part,), (lines,), output = sums.parts, sums.sources, layer.output
    if lines.name != output.name or not _same_bytes(lines, output) or output.batch > 1 or output.element > 1:
        return None
    window = part.kernel[0] * lines.row_pitch
    apart = part.stride[0] == part.kernel[0] or window == output.size
    if part.operation != ConvOperation.SUM_POOL or part.operands or part.kernel[0] == 1 or not apart:
        return None
    if part.origin != (0, 0) or part.dilation != (1, 1):
        return None
    if (part.kernel[1], part.stride[1]) != (1, 1) or window % output.row_pitch or output.size % window:
        return None
    return replace(layer, name=f"{layer.name} + {sums.name}", sums=sums)


def _cycles(tiler, layer):
    """Expected cycles of a layer; infinity if it does not fit."""
    cycles = tiler.cycles(layer) if layer.parts else 0
    return inf if cycles is None else cycles


def _hidden(tiler, before, layer):
    """Cycles at the end of the layer before that this one hides, because its first jobs do not need the last rows."""
    if before is None or not before.parts or not layer.parts:
        return 0
    if before.sums and any(place.name == before.sums.output.name for place in layer.brought):
        return 0
    (last, end), (first, begin) = tiler.tiles(before)[-1], tiler.tiles(layer)[0]
    rows = end.bands(last)[-1]
    for number, place in enumerate(first.sources):
        if place.name == last.output.name and not (first.first and not number):
            image, *band = begin.bands(first)[0]
            _, high = band_rows(first, number, band)
            if image == rows[0] and high > rows[1] and _meet(place, last.output):
                return 0
    room = end.room + begin.begins
    return end.ends if room <= tiler.room - max(sum(held_bytes(before)), sum(held_bytes(layer))) else 0


def _meet(first, second):
    """Whether two cuts of a tensor have channels and columns in common."""
    first, second = as_cut(first), as_cut(second)
    return all(
        getattr(a, start) < getattr(b, start) + getattr(b, count)
        for a, b in ((first, second), (second, first))
        for start, count in (("first_channel", "channels"), ("first_column", "width"))
    )


def _held(layer, following, tiler):
    """The output of a layer as a tensor that stays in shared memory for the next layer; None if it cannot."""
    place = layer.output
    if tiler.machine.shared:  # another core needs some of it
        return None
    if following is None or not layer.parts or not following.parts or padded(place.size) > tiler.room // 2:
        return None
    numbers = {number for number, source in enumerate(following.sources) if source.name == place.name}
    views = {following.sources[number] for number in numbers}
    if not numbers or any(not _same_bytes(view, place) for view in views):
        return None
    if views != {place}:
        return as_held(place, 0)
    parts = [part for part in following.parts if part.source in numbers and not part.blind]
    beside = any(not numbers.isdisjoint(part.operands) for part in following.parts)
    gap = 0 if beside or not parts or place.channels % 8 else cheapest_gap(parts, place.channels, tiler.machine.conv)
    # If it is needed later too, boxes store it, one for each image, each from the beginning of a line.
    held, box = as_held(place, gap), replace(as_cut(place), gap=gap)
    fits = box.unit and max(box.columns, place.height) <= MOST and (place.batch == 1 or held.image_pitch % LINE == 0)
    return held if fits and (place.channels % BLOCK == 0 or tiler.machine.unaligned) else as_held(place, 0)


def _view(held, place):
    """A tensor that stays in shared memory in the layout in which a layer reads it."""
    return held if place == held.base else as_held(place, 0)


def _same_bytes(view, place):
    """Whether two layouts of a tensor have the same bytes in the same order, without bytes between rows."""
    solid = all(each.batch == 1 and (each.height == 1 or each.row_pitch == each.width * each.channels)
                for each in (view, place))  # fmt: skip
    sizes = {each.height * each.width * each.channels for each in (view, place)}
    return view == place or (solid and len(sizes) == 1)


def _with(layer, source, output):
    """A layer that reads ``source`` in shared memory, and leaves ``output`` there; either may be None."""
    if layer.first:
        return join(_with(layer.first, source, None), _with(part_from(layer), source, output))
    sources = tuple(_view(source, place) if source and place.name == source.name else place for place in layer.sources)
    if layer.sums:
        return replace(layer, sources=sources, sums=replace(layer.sums, output=output))
    return replace(layer, sources=sources, output=output or layer.output)
