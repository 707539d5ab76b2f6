"""What neighbouring layers hand on within shared memory (docs/network.md, "Layers done together")."""

from collections import Counter
from dataclasses import replace
from math import inf

from ..lower.places import BLOCK, LINE, as_cut, as_held, padded
from .costs import band_rows, cheapest_gap
from .cuts import MOST, join, part_from
from .tiles import held_bytes

__all__ = ["combine"]


def combine(layers, tiler, kept):
    """Layers in their order, of which neighbours are joined, or leave results to the next one in shared memory.

    Of all ways that of the fewest expected cycles.

    Parameters
    ----------
    layers : sequence of Layer
    tiler : Tiler
    kept : collection of str
        Tensors that have to lie in global memory.
    """
    readers = Counter(name for layer in layers for name in {place.name for place in layer.sources})
    # By how many layers are done, and what the last one leaves in shared memory: cycles, the way before, its layer.
    best = {(0, None): (0, None, None)}
    for number in range(1, len(layers) + 1):
        ways = [(number - 1, layers[number - 1])]
        large = number > 1 and layers[number - 2].output.size > tiler.room
        if large and (both := _pair(*layers[number - 2 : number], readers, kept)):
            ways.append((number - 2, both))
        following = layers[number] if number < len(layers) else None
        for before, layer in ways:
            for left in dict.fromkeys((None, _held(layer, following, tiler))):
                for found in [key for key in best if key[0] == before]:
                    made = _with(layer, found[1], left)
                    cycles = best[found][0] + _cycles(tiler, made)
                    if cycles < inf:
                        cycles -= _hidden(tiler, best[found][2], made)
                    if cycles < best.get((number, left), (inf,))[0]:
                        best[number, left] = cycles, found, made
    if (len(layers), None) not in best:
        for layer in layers:
            if not layer.moves:
                tiler.tiles(layer)  # refuses what does not fit by its name
    chosen, at = [], (len(layers), None)
    while at[0]:
        _, at, layer = best[at]
        chosen.append(layer)
    return tuple(reversed(chosen))


def _pair(first, then, readers, kept):
    """Neighbours joined; None if they cannot be.

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
    if first.moves or then.moves or len(numbers) != 1 or readers[between.name] != 1 or between.name in kept:
        return None
    (number,) = numbers
    if then.sources[number] != between or any(part.blind for part in (*first.parts, *then.parts)):
        return None
    if any(part.addition and part.addition.source == number for part in then.parts):
        return None
    order = [number, *(other for other in range(len(then.sources)) if other != number)]
    parts = tuple(part.renumbered(order.index) for part in then.parts)
    sources, name = tuple(then.sources[other] for other in order), f"{first.name} + {then.name}"
    return join(first, replace(then, name=name, sources=sources, parts=parts))


def _cycles(tiler, layer):
    """Expected cycles of a layer; without end where it does not fit."""
    cycles = 0 if layer.moves else tiler.cycles(layer)
    return inf if cycles is None else cycles


def _hidden(tiler, before, layer):
    """Cycles at the end of the layer before, if what this one begins with does not wait for the last of it."""
    if before is None or before.moves or layer.moves:
        return 0
    (last, end), (first, begin) = tiler.tiles(before)[-1], tiler.tiles(layer)[0]
    rows = end.bands(last)[-1]
    for number, place in enumerate(first.sources):
        if place.name == last.output.name and not (first.first and not number):
            image, *band = begin.bands(first)[0]
            _, high = band_rows(first, number, band)
            if image == rows[0] and high > rows[1] and _meet(place, last.output):
                return 0
    taken = end.room + begin.begins
    return end.ends if taken <= tiler.room - max(sum(held_bytes(before)), sum(held_bytes(layer))) else 0


def _meet(one, other):
    """Whether some channels and columns of a tensor have any in common with others."""
    one, other = as_cut(one), as_cut(other)
    return all(
        getattr(a, first) < getattr(b, first) + getattr(b, count)
        for a, b in ((one, other), (other, one))
        for first, count in (("first_channel", "channels"), ("first_column", "width"))
    )


def _held(layer, following, tiler):
    """The output of a layer as it may stay in shared memory for the next one; None if it cannot."""
    place = layer.output
    if following is None or layer.moves or following.moves or padded(place.size) > tiler.room // 2:
        return None
    if not any(source == place for source in following.sources) or any(
        source.name == place.name and source != place for source in following.sources
    ):
        return None
    numbers = {number for number, source in enumerate(following.sources) if source == place}
    parts = [part for part in following.parts if part.source in numbers and not part.blind]
    added = any(part.addition and part.addition.source in numbers for part in following.parts)
    gap = 0 if added or not parts or place.channels % 8 else cheapest_gap(parts, place.channels, tiler.machine.conv)
    # Boxes take it away, if it is needed later on too: one for each image, which begin at whole lines.
    held, box = as_held(place, gap), replace(as_cut(place), gap=gap)
    fits = box.unit and max(box.columns, place.height) <= MOST and (place.batch == 1 or held.image_pitch % LINE == 0)
    return held if fits and (place.channels % BLOCK == 0 or tiler.machine.unaligned) else as_held(place, 0)


def _with(layer, found, left):
    """A layer that finds a source in shared memory, and leaves its output there; None: it does not."""
    if layer.first:
        first, then = _with(layer.first, found, None), _with(part_from(layer), found, left)
        return join(first, then)
    sources = tuple(found if found and place == found.base else place for place in layer.sources)
    return replace(layer, sources=sources, output=left or layer.output)
