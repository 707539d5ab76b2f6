"""Two layers that are done together, band by band, so that what lies between them never leaves shared memory.

Specification: docs/network.md, "Layers done together".
"""

from dataclasses import replace

__all__ = ["join", "pair", "part_from"]


def join(first, then):
    """The layer that does ``first`` and ``then``, whose source 0 is the output of ``first``."""
    shift = len(first.sources)
    sources = then.sources[0], *first.sources, *then.sources[1:]
    return replace(then, sources=sources, parts=_shifted(then.parts, shift), first=first)


def part_from(layer):
    """``then`` of a layer that :func:`join` made."""
    shift = len(layer.first.sources)
    sources = layer.sources[0], *layer.sources[1 + shift :]
    return replace(layer, sources=sources, parts=_shifted(layer.parts, -shift), first=None)


def _shifted(parts, shift):
    """Parts whose sources, but source 0, have numbers that are ``shift`` higher."""

    def number(source):
        return source + shift if source else 0

    return tuple(part.renumbered(number) for part in parts)


def pair(first, then, readers, kept):
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
