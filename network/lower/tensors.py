"""Where the tensors of a graph lie, while its nodes become layers."""

from dataclasses import dataclass, replace

import numpy as np

from ..graph import Tensor
from .layers import Layer
from .moves import addresses_of, channel_order, move_between
from .operators import in_order, refuse, with_channels_in_order
from .places import Place, padded, place_of

__all__ = ["Tensors", "View"]


@dataclass(frozen=True, eq=False)
class View:
    """A tensor whose elements are bytes of another one: their offsets in ``place``, in the shape of the tensor."""

    place: Place
    addresses: np.ndarray


class Tensors:
    """The tensors of a graph, those that have been made so far.

    Parameters
    ----------
    graph : Graph
    conv : ConvParams
    every : bool
        Every tensor has a place in memory.

    Attributes
    ----------
    places : dict of str to Place
        Tensors that lie in memory in their own order, by name.
    elsewhere : dict of str to View
        Tensors whose elements are bytes of another one.
    waiting : dict of str to Layer
        Convolutions whose addition has not been read yet, by output.
    layers : list of Layer
    constants : dict of str to array
        Tensors whose elements are known.
    readers : dict of str to list of Node
    given : set of str
        Tensors that lie in memory before the program begins.
    """

    def __init__(self, graph, conv, every):
        self.graph, self.conv, self.every = graph, conv, every
        self.readers = {name: [node for node in graph.nodes if name in node.inputs] for name in graph.tensors}
        self.places, self.elsewhere, self.waiting, self.layers = {}, {}, {}, []
        self.constants, self.given = dict(graph.constants), {*graph.inputs, *(node.output for node in graph.head)}
        self._names = set(graph.tensors)

    def place(self, name):
        """The place of a tensor in its own order; it is moved there if needed."""
        if name in self.given and name not in self.places:
            self.places[name] = place_of(self.graph.tensors[name])
        if name in self.places:
            return self.places[name]
        if name in self.waiting:
            self.append(self.waiting.pop(name))
            return self.places[name]
        view, place = self.elsewhere[name], place_of(self.graph.tensors[name])
        targets = addresses_of(place)
        if (targets == view.addresses).all() and padded(place.size) == padded(view.place.size):
            self.places[name] = replace(place, name=view.place.name)
            return self.places[name]
        node = next(node for node in self.graph.nodes if node.output == name)
        self.places[name] = self.moved(node, view, place)
        return place

    def view(self, name):
        """The elements of a tensor where they are, in its own order or not."""
        if name in self.elsewhere and name not in self.places:
            return self.elsewhere[name]
        place = self.place(name)
        return View(place, addresses_of(place))

    def only_reader(self, name):
        """The only reader of a tensor that need not lie in memory by itself; None if there is none."""
        readers = self.readers[name]
        return None if self.every or name in self.graph.outputs or len(readers) != 1 else readers[0]

    def private_view(self, name):
        """The elements of a tensor where they are, if the bytes there are no other tensor's; otherwise None."""
        view = self.elsewhere.get(name)
        if view is None or view.place.name in self.graph.tensors:
            return None
        sharing = [each for each, other in self.elsewhere.items() if other.place.name == view.place.name]
        layers = (*self.layers, *self.waiting.values())
        read = any(place.name == view.place.name for layer in layers for place in layer.sources)
        return None if read or None in map(self.only_reader, sharing) else view

    def moved(self, node, view, place):
        """``place``, after a layer that moves the elements there, or two layers if one nest of loops is not enough."""
        sources, targets = (_bytes(offsets, place.element) for offsets in (view.addresses, addresses_of(place)))
        move = move_between(sources, targets)
        order = channel_order(view.addresses, place, view.place) if place.element == 1 else None
        if order is not None and self._done_before(view.place, place, order):
            return place
        if order is not None and (move is None or place.channels * move.adjoining < self.conv.peak):
            self.layers.append(with_channels_in_order(node, place, view.place, order))
            return place
        if move is None:
            flat = self.between(node, "flat", (view.addresses.size,), place.dtype)
            between = _bytes(addresses_of(flat), place.element).reshape(sources.shape)
            first, move = move_between(sources, between), move_between(between, targets)
            if first is None or move is None:
                refuse(node, f"from {view.place.shape} to {place.shape} no few nested loops lead")
            self._append_move(node, flat, view.place, first)
            view = View(flat, between)
        self._append_move(node, place, view.place, move)
        return place

    def _done_before(self, base, place, order):
        """Changes the convolution that makes a tensor to make it in another order, if it has no other readers."""
        name = base.name
        while name != place.name:
            readers = self.readers.get(name, ())
            if len(readers) != 1 or name in self.graph.outputs or readers[0].kind not in ("Reshape", "Transpose"):
                return False
            name = readers[0].output
        number = next((number for number, layer in enumerate(self.layers) if layer.output is base), None)
        layer = None if self.every or number is None else in_order(self.layers[number], place, order)
        if layer is not None:
            self.layers[number] = layer
            del self.places[base.name]
        return layer is not None

    def append(self, layer):
        """Adds a layer that makes a tensor, whose readers may see other pixels."""
        self.layers.append(layer)
        name, place = layer.output.name, place_of(self.graph.tensors[layer.output.name])
        self.places[name] = layer.output if layer.output == place else place

    def _append_move(self, node, place, source, move):
        self.layers.append(Layer(node.name, node.operator or node.kind, place, (source,), moves=(move,)))

    def between(self, node, what, shape, dtype):
        """A place for an intermediate result of a node; names of nodes need not be unique."""
        name = f"{node.name}.{what}"
        while name in self._names:
            name += "'"
        self._names.add(name)
        return place_of(Tensor(name, shape, dtype))


def _bytes(offsets, element):
    """Offsets of all bytes of elements, from those of their first bytes."""
    return offsets if element == 1 else offsets[..., np.newaxis] + np.arange(element)
