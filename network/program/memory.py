"""Where everything lies in global memory (docs/network.md, "The plan")."""

from dataclasses import dataclass

from ..lower.places import padded

__all__ = ["MemoryPlan", "plan_memory"]

#: What tensors, weights and programs begin at multiples of.
_LINE = 128


@dataclass(frozen=True)
class MemoryPlan:
    """Addresses in global memory.

    Attributes
    ----------
    tensors : dict of str to int
        By names of tensors.
    weights : tuple of int
        Of images, in their order.
    end : int
        Behind all others.
    """

    tensors: dict
    weights: tuple
    end: int


def plan_memory(layers, images, places, kept, base=0):
    """The :class:`MemoryPlan` of a network: a tensor that is not read any more leaves its room to others.

    Parameters
    ----------
    layers : sequence of Layer
    images : sequence of int
        Bytes of weights and tables that belong together.
    places : sequence of Place
        All tensors.
    kept : collection of str
        Tensors that stay: inputs and outputs.
    base : int
        First address.
    """
    weights, end = [], padded(base, _LINE)
    for size in images:
        weights.append(end)
        end += padded(size, _LINE)
    lives = {place.name: [len(layers), -1] for place in places}
    for number, layer in enumerate(layers):
        if layer.output.name in lives:
            lives[layer.output.name][0] = number
        for name in {place.name for place in (layer.output, *layer.brought)} & lives.keys():
            lives[name][1] = max(lives[name][1], number)
    for name in kept:
        lives[name] = [-1, len(layers)]
    tensors, top = {}, end
    for place in sorted(places, key=lambda place: -place.size):
        first, last = lives[place.name]
        others = sorted((tensors[other.name], tensors[other.name] + padded(other.size, _LINE))
                        for other in places if other.name in tensors
                        and lives[other.name][0] <= last and first <= lives[other.name][1])  # fmt: skip
        address = end
        for low, high in others:
            if low - address >= place.size:
                break
            address = max(address, high)
        tensors[place.name] = address
        top = max(top, address + padded(place.size, _LINE))
    return MemoryPlan(tensors, tuple(weights), top)
