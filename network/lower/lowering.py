"""A graph as layers: which nodes cost nothing, which are done together (docs/network.md, "Operators as jobs")."""

from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from ..errors import node_error
from ..graph import Tensor
from .layers import Layer
from .moves import MOST, addresses_of, channel_order, move_between, pieces, weights_in_place
from .operators import (
    OPERATORS,
    filled,
    in_order,
    refuse,
    taken,
    with_addition,
    with_channels_in_order,
    with_groups_together,
)
from .places import BLOCK, Place, as_bytes, in_pixels_of, padded, place_of

__all__ = ["Lowered", "lower"]

#: Kinds of nodes that the host carries out behind the engines.
_OF_THE_HOST = ("Dequantize", "Floats", "Quantize", "Reshape", "Scale", "Softmax", "Take", "Transpose")
#: Elements of a row that are one pixel, at most, where each is taken by itself.
_LONG = 4096
#: The same where a job has a table of its channels, and there may be many jobs.
_FEW = 64


@dataclass(frozen=True, eq=False)
class Lowered:
    """Layers in their order, and where every tensor is found.

    Attributes
    ----------
    layers : tuple of Layer
    places : dict of str to Place
        Of tensors that lie in memory; the name in a place is that of the tensor whose memory it is.
    """

    layers: tuple
    places: dict

    @property
    def all_places(self):
        """Places of tensors, and of what lies between layers besides."""
        return [*self.places.values(), *(layer.output for layer in self.layers)]


@dataclass(frozen=True, eq=False)
class _Elsewhere:
    """A tensor that is no more than an order of the bytes of another one: offsets in ``place``, in its own shape."""

    place: Place
    addresses: np.ndarray


def lower(graph, conv, every_tensor=False):
    """The :class:`Lowered` of a graph between its quantisations.

    Parameters
    ----------
    graph : Graph
    conv : ConvParams
    every_tensor : bool
        No tensor is left out of memory.
    """
    lowered = _Lowering(graph, conv.peak, every_tensor).run()
    for layer in lowered.layers:
        _check_sizes(layer)
    return replace(lowered, layers=tuple(with_groups_together(layer, conv) for layer in lowered.layers))


def _check_sizes(layer):
    """Refuses what no job can count."""
    for part in layer.parts:
        sizes = *part.channels[1:], *part.out_channels[1:], *(last - first for first, last in (part.rows, part.columns))
        if max(sizes) > MOST:
            sentence = f"{max(sizes)} channels, rows or columns are more than {MOST}"
            raise node_error(layer.name, layer.operator, sentence)


class _Lowering:
    def __init__(self, graph, peak, every_tensor):
        self.graph, self.peak, self.every = graph, peak, every_tensor
        self.readers = {name: [node for node in graph.nodes if name in node.inputs] for name in graph.tensors}
        self.places, self.elsewhere, self.layers = {}, {}, []
        self.fused = {}  # convolutions that wait for their addition, by output
        self.names = set(graph.tensors)
        self.tail = graph.tail
        self.hosted = {node.output for node in self.tail}

    def run(self):
        """All nodes in order."""
        for name in self.graph.inputs:
            if self.graph.tensors[name].dtype != "float32":
                self.places[name] = place_of(self.graph.tensors[name])
        for node in self.graph.nodes:
            self._node(node)
        for name in self.graph.outputs:
            if name not in self.hosted:
                self._place(name)
        return Lowered(tuple(self.layers), self.places)

    def _node(self, node):
        tensor = self.graph.tensors[node.output]
        if node.kind == "Quantize" and node not in self.tail:
            if node.inputs[0] not in self.graph.inputs:
                refuse(node, "only inputs of the network are quantised")
            self.places[node.output] = place_of(tensor)
        elif node in self.tail:
            if node.kind not in _OF_THE_HOST:
                refuse(node, "it reads what the host computes behind the engines")
            for name in node.inputs:
                if name not in self.hosted:
                    self._place(name)
        elif node.kind in ("Reshape", "Transpose"):
            self._reorder(node)
        elif node.kind == "Take":
            self._take(node)
        elif node.kind not in OPERATORS:
            refuse(node, "it has no place on the engines")
        elif node.kind == "Concat" and len(node.inputs) > 1 and not _in_pixels(node, tensor):
            self._join(node)
        elif node.kind == "Pad" and not _around_pixels(node.attributes):
            self._pad(node)
        elif node.kind == "Conv" and node.attributes.matrix:
            self._matrix(node)
        elif node.kind == "Conv":
            self._made(node, OPERATORS["Conv"](node, place_of(tensor), self._sources(node)[0]))
        elif node.kind == "Add" and node.inputs[0] in self.fused:
            layer, places = self.fused.pop(node.inputs[0]), (place_of(tensor), self._place(node.inputs[1]))
            self._append(with_addition(layer, node, *(in_pixels_of(layer.output, place) for place in places)))
        else:
            sources, numbers = self._sources(node)
            output = place_of(tensor)
            if _loose(node, output):
                sources, output = tuple(map(as_bytes, sources)), as_bytes(output)
            layer = OPERATORS[node.kind](node, output, tuple(sources[number] for number in numbers))
            parts = tuple(part.renumbered(numbers.__getitem__) for part in layer.parts)
            self._append(replace(layer, sources=sources, parts=parts))

    def _between(self, node, what, shape, dtype):
        """A place for what lies between two layers of a node, whose name may be that of other nodes too."""
        name = f"{node.name}.{what}"
        while name in self.names:
            name += "'"
        self.names.add(name)
        return place_of(Tensor(name, shape, dtype))

    def _sources(self, node):
        """Places of inputs, each once, and which of them each input is."""
        places = [self._place(name) for name in node.inputs]
        unique = list({id(place): place for place in places}.values())
        return tuple(unique), [unique.index(place) for place in places]

    def _append(self, layer):
        """A layer that makes a tensor, which others may see as other pixels."""
        self.layers.append(layer)
        name, place = layer.output.name, place_of(self.graph.tensors[layer.output.name])
        self.places[name] = layer.output if layer.output == place else place

    def _made(self, node, layer):
        """A layer of a convolution: it waits for what is added to its results, if there is such a thing."""
        if self._waits(node):
            self.fused[node.output] = layer
        else:
            self._append(layer)

    def _waits(self, node):
        """Whether the results of a convolution are read by nothing but an addition, whose first operand they are."""
        readers = self.readers[node.output]
        if self.every or node.output in self.graph.outputs or len(readers) != 1 or readers[0].kind != "Add":
            return False
        first, second = readers[0].inputs
        types = {self.graph.tensors[name].dtype for name in (first, second, readers[0].output)}
        return first == node.output != second and len(types) == 1

    def _matrix(self, node):
        """A product with a matrix: a convolution of single pixels, or of whole images that are flattened for it."""
        at, name = node.attributes, node.inputs[0]
        tensor, output = self.graph.tensors[name], place_of(self.graph.tensors[node.output])
        found = self.elsewhere.get(name)
        if found and name not in self.places and len(tensor.shape) == 2:
            placed = weights_in_place(found.place, found.addresses, at.weight[:, :, 0, 0])
            if placed is not None:
                whole = replace(node, attributes=replace(at, weight=placed.transpose(0, 3, 1, 2), matrix=False))
                self._made(node, OPERATORS["Conv"](whole, output, (found.place,)))
                return
        count = int(np.prod(tensor.shape[:-1]))
        if len(tensor.shape) == 4 and output.element > 1:
            refuse(node, f"the products of a feature map, {list(tensor.shape)}, are not left as floats")
        if len(tensor.shape) == 4:
            self._flat_matrix(node, tensor, output, count)
            return
        place = self._place(name)
        self._made(node, _product(node, output, place, count))

    def _flat_matrix(self, node, tensor, output, count):
        """The same of a tensor whose last dimension does not adjoin in memory: it is brought into rows first."""
        found = self._found(node.inputs[0])
        rows = self._between(node, "rows", (count, tensor.shape[-1]), tensor.dtype)
        place = self._moved(node, replace(found, addresses=found.addresses.reshape(rows.shape)), rows)
        made = self._between(node, "products", (count, output.shape[-1]), output.dtype)
        self.layers.append(_product(node, made, place, count))
        self.elsewhere[node.output] = _Elsewhere(made, addresses_of(made).reshape(output.shape))
        if self.every:
            self._place(node.output)

    def _join(self, node):
        """A concatenation of what adjoins in no pixel: tables first, then every tensor is moved to its place."""
        output = place_of(self.graph.tensors[node.output])
        axis = node.attributes.axis % len(output.shape)
        targets, places, moves, start = addresses_of(output), [], [], 0
        for number, (name, table) in enumerate(zip(node.inputs, node.attributes.tables, strict=True)):
            tensor, place = self.graph.tensors[name], self._place(name)
            if table is not None:
                changed = self._between(node, str(number), tensor.shape, output.dtype)
                single = replace(node, attributes=replace(node.attributes, tables=(table,)))
                self.layers.append(OPERATORS["Concat"](single, changed, (place,)))
                place = changed
            some = (slice(None),) * axis + (slice(start, start + tensor.shape[axis]),)
            start += tensor.shape[axis]
            move = move_between(addresses_of(place), targets[some], len(places))
            if move is None:
                refuse(node, f"its input {number} of {tensor.shape} is not moved by few nested loops")
            places.append(place)
            moves.append(move)
        self._append(Layer(node.name, node.operator or node.kind, output, tuple(places), moves=tuple(moves)))

    def _take(self, node):
        """Some elements: one job where they are channels that adjoin, rows and columns at equal steps."""
        layer = taken(node, place_of(self.graph.tensors[node.output]), self.graph.tensors[node.inputs[0]].shape,
                      lambda: self._place(node.inputs[0]))  # fmt: skip
        if layer is not None:
            self._append(layer)
            return
        found, indices = self._found(node.inputs[0]), node.attributes.indices
        addresses, output = found.addresses[np.ix_(*indices)], place_of(self.graph.tensors[node.output])
        targets = addresses_of(output)
        if move_between(addresses, targets) is None and channel_order(addresses, output, found.place) is None:
            moves = [move_between(addresses[some], targets[some]) for some in pieces(indices)]
            if moves and None not in moves:
                self._append(Layer(node.name, node.operator or node.kind, output, (found.place,), moves=tuple(moves)))
                return
        self.elsewhere[node.output] = replace(found, addresses=addresses)
        self._place(node.output)

    def _pad(self, node):
        """Padding of any dimension: the value is made as often as it is needed, and all is moved to its place."""
        place, output, at = self._place(node.inputs[0]), place_of(self.graph.tensors[node.output]), node.attributes
        inside = [slice(first, first + size) for first, size in zip(at.before, place.shape, strict=True)]
        boxes, targets = [], addresses_of(output)
        for axis, some in enumerate(inside):
            # Of the dimensions before, what is inside; of those behind, all.
            boxes += [(*inside[:axis], side) for side in (slice(0, some.start), slice(some.stop, None))]
        regions = [region for box in boxes if (region := targets[box]).size]
        count = sum(region.size for region in regions)
        fill = self._between(node, "padding", (max(count, 1),), output.dtype)
        self.layers.append(filled(node, replace(fill, height=fill.height * fill.width, width=1), place))
        moves, start = [move_between(addresses_of(place), targets[tuple(inside)])], 0
        for region in regions:
            moves.append(move_between(start + np.arange(region.size).reshape(region.shape), region, 1))
            start += region.size
        if None in moves:
            refuse(node, f"from {place.shape} to {output.shape} no few nested loops lead")
        self._append(Layer(node.name, node.operator or node.kind, output, (place, fill), moves=tuple(moves)))

    def _found(self, name):
        """Where the elements of a tensor are, in its own order or not."""
        if name in self.elsewhere and name not in self.places:
            return self.elsewhere[name]
        place = self._place(name)
        return _Elsewhere(place, addresses_of(place))

    def _moved(self, node, found, place):
        """``place``, after a layer that brings the elements there; of two if they are no nest of loops."""
        move = move_between(found.addresses, addresses_of(place))
        order = channel_order(found.addresses, place, found.place)
        if order is not None and self._done_before(found.place, place, order):
            return place
        if order is not None and (move is None or place.channels * move.adjoining < self.peak):
            self.layers.append(with_channels_in_order(node, place, found.place, order))
            return place
        if move is None:
            flat = self._between(node, "flat", (found.addresses.size,), place.dtype)
            order = addresses_of(flat).reshape(place.shape)
            first, move = move_between(found.addresses, order), move_between(order, addresses_of(place))
            if first is None or move is None:
                refuse(node, f"from {found.place.shape} to {place.shape} no few nested loops lead")
            self._append_move(node, flat, found.place, first)
            found = _Elsewhere(flat, order)
        self._append_move(node, place, found.place, move)
        return place

    def _done_before(self, base, place, order):
        """Whether the convolution that makes a tensor now makes it in another order, as nobody else reads it."""
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

    def _append_move(self, node, place, source, move):
        self.layers.append(Layer(node.name, node.operator or node.kind, place, (source,), moves=(move,)))

    def _reorder(self, node):
        """A reshape or a transpose: nothing is done until somebody needs the bytes in their own order."""
        tensor = self.graph.tensors[node.output]
        found = self._found(node.inputs[0])
        addresses = found.addresses
        if node.kind == "Transpose":
            addresses = addresses.transpose(node.attributes.perm)
        self.elsewhere[node.output] = _Elsewhere(found.place, addresses.reshape(tensor.shape))
        if self.every or tensor.dtype == "float32":
            self._place(node.output)

    def _place(self, name):
        """Where a tensor lies, after it has been brought there if that is needed."""
        if name in self.places:
            return self.places[name]
        if name in self.fused:
            self._append(self.fused.pop(name))
            return self.places[name]
        found, place = self.elsewhere[name], place_of(self.graph.tensors[name])
        targets = addresses_of(place)
        if (targets == found.addresses).all() and padded(place.size) == padded(found.place.size):
            self.places[name] = replace(place, name=found.place.name)
            return self.places[name]
        node = next(node for node in self.graph.nodes if node.output == name)
        self.places[name] = self._moved(node, found, place)
        return place


def _around_pixels(pad):
    """Whether padding is channels, rows and columns alone."""
    return len(pad.before) in (2, 4) and not pad.before[0] and not pad.after[0]


def _loose(node, output):
    """Whether a node takes the elements of matrices one by one, whose rows would each be a band, or a long pixel."""
    alone = node.kind in ("Add", "Mul") or (node.kind == "Concat" and len(node.inputs) == 1)
    most = _FEW if node.kind == "Concat" else _LONG
    return alone and len(output.shape) == 2 and (output.batch > 1 or output.channels > most)


def _in_pixels(node, output):
    """Whether tensors that are joined are channels, rows or columns of the output."""
    rank = len(output.shape)
    return rank in (2, 4) and node.attributes.axis % rank > 0


def _product(node, output, place, count):
    """The layer of a product of ``count`` rows with a matrix: one image, of rows that begin at multiples of 16.

    They have no more pixels than that takes: one, where rows of the matrix do.
    """
    channels = [int(np.prod(one.shape)) // count * one.element for one in (place, output)]
    width = 1
    if len(place.shape) != 2:
        unit = BLOCK // gcd(*channels, BLOCK)
        width = next(width for width in range(unit, count + unit, unit) if width >= count or count % width == 0)
        width = min(width, count)
    sizes = {"batch": 1, "height": count // width, "width": width}
    place, output = (replace(one, **sizes, channels=size) for one, size in zip((place, output), channels, strict=True))
    return OPERATORS["Conv"](node, output, (place,))
