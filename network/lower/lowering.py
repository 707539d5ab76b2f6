"""A graph as layers: nodes that cost nothing, and nodes that share a layer (docs/network.md, "Operators as jobs")."""

from dataclasses import dataclass, replace
from functools import partial
from math import gcd

import numpy as np

from ..ends import late_nodes
from ..graph import node_error
from .matrices import join_columns, product
from .moves import MOST, addresses_of, move_between, weights_in_place
from .operators import OPERATORS, refuse, with_addition, with_function, with_groups_together
from .phases import elements_of_phases, phases_of, step_of
from .pixels import in_wide_pixels
from .places import BLOCK, as_bytes, in_images, in_pixels_of, place_of
from .pools import is_global, layers_of_rows, layers_of_view, rows_of_sums, view_of_sums
from .rearrange import join, pad, reorder, take
from .recurrent_kernel import by_steps
from .rows import ELEMENT_KERNELS, ROW_KERNELS, by_kernel, elements_by_kernel
from .split import parts_of_product
from .tensors import Tensors, View

__all__ = ["Lowered", "lower"]

#: Most elements of a row that become one pixel, for nodes that take elements one by one.
_LONG = 4096
#: The same for nodes that may be many jobs with a table of their channels each.
_FEW = 64
#: Bytes of shared memory for each element of a product of two tensors in one job, because each element has a scale.
_OF_PRODUCTS = 64


@dataclass(frozen=True, eq=False)
class Lowered:
    """Layers in order, and the places of tensors in memory.

    Attributes
    ----------
    layers : tuple of Layer
    places : dict of str to Place
        Tensors that lie in memory. Several may share the memory of one: the name in a place is the name of that one.
    constants : dict of str to array
        Tensors of ``places`` whose elements are known.
    """

    layers: tuple
    places: dict
    constants: dict

    @property
    def all_places(self):
        """Places of all tensors, and of intermediate results that are not tensors of the graph."""
        return [*self.places.values(), *(layer.output for layer in self.layers)]


def lower(graph, machine, room, every_tensor=False):
    """The :class:`Lowered` of the part of a graph that the engines compute.

    Parameters
    ----------
    graph : Graph
    machine : Machine
    room : int
        Bytes of shared memory for tensors and weights.
    every_tensor : bool
        Every tensor has a place in memory.
    """
    conv = machine.conv
    lowered = _Lowering(graph, machine, room, every_tensor).run()
    for layer in lowered.layers:
        _check_sizes(layer)
        _check_features(layer, conv)
    return replace(lowered, layers=tuple(with_groups_together(layer, conv) for layer in lowered.layers))


def _check_sizes(layer):
    """Refuses sizes that do not fit the fields of a job."""
    for part in layer.parts:
        sizes = *part.channels[1:], *part.out_channels[1:], *(last - first for first, last in (part.rows, part.columns))
        if max(sizes) > MOST:
            sentence = f"{max(sizes)} channels, rows or columns are more than {MOST}"
            raise node_error(layer.name, layer.operator, sentence)


def _check_features(layer, conv):
    """Refuses what the engine was built without."""
    for feature, needed in (("function_table", any(part.function is not None for part in layer.parts)),
                            ("zero_first", any(part.zero_first for part in layer.parts))):  # fmt: skip
        if needed and not getattr(conv, feature):
            raise node_error(layer.name, layer.operator, f"it needs a convolution engine with {feature}")


class _Lowering:
    def __init__(self, graph, machine, room, every_tensor):
        self.graph, self.conv, self.room, self.every = graph, machine.conv, room, every_tensor
        self.pe, self.tensors = machine.pe, Tensors(graph, machine.conv, every_tensor)
        self.head, self.tail = graph.head, graph.tail
        self.hosted = {node.output for node in self.tail}

    def run(self):
        """All nodes in order."""
        for error in late_nodes(self.graph):
            raise error
        for name in self.graph.inputs:
            if self.graph.tensors[name].dtype != "float32":
                self.tensors.places[name] = place_of(self.graph.tensors[name])
        for name in self.graph.constants:
            if self.tensors.readers[name]:
                self.tensors.places[name] = place_of(self.graph.tensors[name])
        for node in self.graph.nodes:
            self._node(node)
        for name in self.graph.outputs:
            if name not in self.hosted:
                self.tensors.place(name)
        return Lowered(tuple(self.tensors.layers), self.tensors.places, self.tensors.constants)

    def _node(self, node):
        tensor = self.graph.tensors[node.output]
        if node in self.head:
            pass
        elif node.kind == "Quantize" and node not in self.tail:
            if node.inputs[0] not in self.tensors.given:
                refuse(node, "only inputs of the network are quantised")
            self.tensors.places[node.output] = place_of(tensor)
        elif node in self.tail:
            for name in node.inputs:
                if name not in self.hosted:
                    self.tensors.place(name)
        elif node.kind in ("Reshape", "Transpose"):
            reorder(self.tensors, node)
        elif node.kind == "Take":
            take(self.tensors, node)
        elif node.kind == "Pool" and self._pool_of_sums(node):
            pass
        elif node.kind in ("ConvTranspose", "Linear"):
            self._phases(node)
        elif node.kind == "MatMul":
            product(self.tensors, node)
        elif node.kind in ELEMENT_KERNELS:
            elements_by_kernel(self.tensors, node, self.pe, self.room)
        elif node.kind == "Recurrent":
            by_steps(self.tensors, node, self.pe, self.room)
        elif node.kind in ROW_KERNELS:
            by_kernel(self.tensors, node, self.pe)
        elif node.kind not in OPERATORS:
            refuse(node, "it has no place on the engines")
        elif node.kind == "Concat" and self._has_columns(node):
            join_columns(self.tensors, node)
        elif node.kind == "Concat" and len(node.inputs) > 1 and not _in_pixels(node, tensor):
            join(self.tensors, node)
        elif node.kind == "Pad" and not _around_pixels(node.attributes):
            pad(self.tensors, node)
        elif node.kind == "Conv" and node.attributes.matrix:
            self._matrix(node)
        elif node.kind == "Conv":
            self._made(node, OPERATORS["Conv"](node, place_of(tensor), self._sources(node)[0]))
        elif self._is_function(node) and self._into_function(node):
            pass
        elif node.kind == "Add" and node.inputs[0] in self.tensors.waiting:
            layer, output, other = (
                self.tensors.waiting.pop(node.inputs[0]),
                place_of(tensor),
                self.tensors.place(node.inputs[1]),
            )
            if other.shape == output.shape:
                layer = in_wide_pixels(layer, self.conv)
                other = in_pixels_of(layer.output, other)
            else:
                other = _row(other)
            self.tensors.append(with_addition(layer, node, in_pixels_of(layer.output, output), other))
        elif node.kind in ("Add", "Mul") and self._differ(node):
            output, first, other = place_of(tensor), *map(self.tensors.place, node.inputs)
            if len(tensor.shape) != 4:
                output, first = _in_rows((output, first), int(np.prod(tensor.shape[:-1])))
            self.tensors.append(OPERATORS[node.kind](node, output, (first, _row(other))))
        elif node.kind == "Mul":
            most = max(self.room // _OF_PRODUCTS, BLOCK)
            output, *sources = (
                in_images(place, most) for place in (place_of(tensor), *map(self.tensors.place, node.inputs))
            )
            self.tensors.append(OPERATORS["Mul"](node, output, tuple(sources)))
        else:
            sources, numbers = self._sources(node)
            output = place_of(tensor)
            if _loose(node, output):
                sources, output = tuple(map(as_bytes, sources)), as_bytes(output)
            layer = OPERATORS[node.kind](node, output, tuple(sources[number] for number in numbers))
            parts = tuple(part.renumbered(numbers.__getitem__) for part in layer.parts)
            self.tensors.append(replace(layer, sources=sources, parts=parts))

    def _sources(self, node):
        """Places of inputs, each once, and for each input the number of its place."""
        places = [self.tensors.place(name) for name in node.inputs]
        unique = list({id(place): place for place in places}.values())
        return tuple(unique), [unique.index(place) for place in places]

    def _differ(self, node):
        """Whether the second operand of a node has another shape than the first one."""
        first, second = (self.graph.tensors[name].shape for name in node.inputs)
        return first != second

    def _has_columns(self, node):
        """Whether products have written columns of the matrix that a node joins."""
        views = (self.tensors.elsewhere.get(name) for name in node.inputs)
        return any(view and view.place.name == node.output for view in views)

    def _is_function(self, node):
        return node.kind == "Concat" and len(node.inputs) == 1 and node.attributes.tables[0] is not None

    def _into_function(self, node):
        """Applies the table of a node in the jobs that make its input; whether that can be done."""
        (name,) = node.inputs
        if self.tensors.only_reader(name) is None or name in self.tensors.waiting:
            return False
        view = None if name in self.tensors.places else self.tensors.private_view(name)
        made = view.place.name if view else name
        number = next((number for number, layer in enumerate(self.tensors.layers) if layer.output.name == made), None)
        if number is None or not self.tensors.layers[number].parts:
            return False
        layer, tensor = self.tensors.layers[number], self.graph.tensors[node.output]
        if view:
            output = replace(layer.output, dtype=tensor.dtype)
            self.tensors.layers[number] = with_function(layer, node, output)
            self.tensors.elsewhere[node.output] = replace(view, place=output)
            return True
        output = replace(layer.output, name=tensor.name, dtype=tensor.dtype)
        del self.tensors.places[name]
        self.tensors.layers[number] = with_function(layer, node, output)
        place = place_of(tensor)
        self.tensors.places[tensor.name] = output if output == place else place
        return True

    def _made(self, node, layer):
        """Adds a layer of a convolution, now or with the addition of its results."""
        if self._waits(node):
            self.tensors.waiting[node.output] = layer
        else:
            self.tensors.append(layer)

    def _waits(self, node):
        """Whether the only reader of a convolution is an addition, with the results as its first operand."""
        readers = self.tensors.readers[node.output]
        if self.every or node.output in self.graph.outputs or len(readers) != 1 or readers[0].kind != "Add":
            return False
        first, second = readers[0].inputs
        types = {self.graph.tensors[name].dtype for name in (first, second, readers[0].output)}
        return first == node.output != second and len(types) == 1

    def _matrix(self, node):
        """A product with a matrix: a convolution of single pixels, or of whole images if the model flattens them."""
        at, name = node.attributes, node.inputs[0]
        tensor, output = self.graph.tensors[name], place_of(self.graph.tensors[node.output])
        view = self.tensors.elsewhere.get(name)
        if view and name not in self.tensors.places and len(tensor.shape) == 2:
            weights = weights_in_place(view.place, view.addresses, at.weight[:, :, 0, 0])
            if weights is not None:
                whole = replace(node, attributes=replace(at, weight=weights.transpose(0, 3, 1, 2), matrix=False))
                self._made(node, OPERATORS["Conv"](whole, output, (view.place,)))
                return
        count = int(np.prod(tensor.shape[:-1]))
        if len(tensor.shape) == 4 and output.element > 1:
            refuse(node, f"the products of a feature map, {list(tensor.shape)}, are not left as floats")
        if len(tensor.shape) == 4:
            self._flat_matrix(node, tensor, output, count)
            return
        place = self.tensors.place(name)
        parts = parts_of_product(self.tensors, node, *_in_rows((place, output), count), self.pe, self.room)
        if parts:
            self.tensors.layers += parts[:-1]
            self.tensors.append(parts[-1])
        else:
            self._made(node, _product(node, output, place, count))

    def _flat_matrix(self, node, tensor, output, count):
        """A product with a tensor whose last dimension is not contiguous in memory: it is moved into rows first."""
        view = self.tensors.view(node.inputs[0])
        rows = self.tensors.between(node, "rows", (count, tensor.shape[-1]), tensor.dtype)
        place = self.tensors.moved(node, replace(view, addresses=view.addresses.reshape(rows.shape)), rows)
        products = self.tensors.between(node, "products", (count, output.shape[-1]), output.dtype)
        self.tensors.layers.append(_product(node, products, place, count))
        self.tensors.elsewhere[node.output] = View(products, addresses_of(products).reshape(output.shape))
        if self.every:
            self.tensors.place(node.output)

    def _pool_of_sums(self, node):
        """A global average as several layers, if that is faster or needed; whether it is."""
        tensor = self.graph.tensors[node.output]
        place, output = self.tensors.place(node.inputs[0]), place_of(tensor)
        if not is_global(node.attributes, place, tensor.shape):
            return False
        view, between = view_of_sums(place, self.conv, self.room), partial(self.tensors.between, node)
        count = rows_of_sums(place, self.room)
        if view:
            *layers, last = layers_of_view(node, output, place, view, between)
        elif count:
            scales = self.tensors.between(node, "scales", (place.channels,), "float32")
            self.tensors.constants[scales.name] = np.full(
                place.channels, node.attributes.scale.reshape(-1)[0], np.float32
            )
            self.tensors.places[scales.name] = scales
            *layers, last = layers_of_rows(node, output, place, scales, count, between)
        else:
            return False
        self.tensors.layers += layers
        self.tensors.append(last)
        return True

    def _phases(self, node):
        """Rows and columns of each phase lie together at first, and are moved if that is not where they belong."""
        tensor, place = self.graph.tensors[node.output], self.tensors.place(node.inputs[0])
        made = tensor.shape[2:]
        step = step_of(node, place.shape[2:], made)
        rows, columns = (-(-size // each) for size, each in zip(made, step, strict=True))
        shape = tensor.shape[0], step[1] * tensor.shape[1], rows, step[0] * columns
        phases = self.tensors.between(node, "phases", shape, tensor.dtype)
        self.tensors.layers.append(phases_of(node, phases, place, step, made))
        view = View(phases, addresses_of(phases)[elements_of_phases(tensor.shape, step)])
        if move_between(view.addresses, addresses_of(place_of(tensor))) is None:
            # Elements that are cut off at the ends are moved too.
            whole = (*tensor.shape[:2], rows * step[0], columns * step[1])
            uncut = self.tensors.between(node, "uncut", whole, tensor.dtype)
            moved = replace(view, addresses=addresses_of(phases)[elements_of_phases(whole, step)])
            place = self.tensors.moved(node, moved, uncut)
            view = View(place, addresses_of(place)[tuple(map(slice, tensor.shape))])
        self.tensors.elsewhere[node.output] = view
        self.tensors.place(node.output)


def _around_pixels(pad):
    """Whether a Pad adds only channels, rows and columns."""
    return len(pad.before) in (2, 4) and not pad.before[0] and not pad.after[0]


def _loose(node, output):
    """Whether a node takes elements of a matrix one by one, whose rows would be bands or pixels that are too long."""
    alone = node.kind == "Add" or (node.kind == "Concat" and len(node.inputs) == 1)
    most = _FEW if node.kind == "Concat" else _LONG
    return alone and len(output.shape) == 2 and (output.batch > 1 or output.channels > most)


def _in_pixels(node, output):
    """Whether a Concat joins channels, rows or columns."""
    rank = len(output.shape)
    return rank in (2, 4) and node.attributes.axis % rank > 0


def _product(node, output, place, count):
    """The layer of a product of ``count`` rows with a matrix: an image whose rows begin at multiples of 16 bytes.

    Rows have as few pixels as that needs: one if rows of the matrix are multiples of 16 bytes.
    """
    place, output = _in_rows((place, output), count)
    return OPERATORS["Conv"](node, output, (place,))


def _in_rows(places, count):
    """Places of ``count`` rows as images with a pixel for each row, whose lines begin at multiples of 16 bytes."""
    place = places[0]
    channels = [int(np.prod(one.shape)) // count * one.element for one in places]
    width = 1
    if len(place.shape) != 2:
        unit = BLOCK // gcd(*channels, BLOCK)
        width = next(width for width in range(unit, count + unit, unit) if width >= count or count % width == 0)
        width = min(width, count)
    sizes = {"batch": 1, "height": count // width, "width": width}
    return [replace(one, **sizes, channels=size) for one, size in zip(places, channels, strict=True)]


def _row(place):
    """A place of a number for each channel as one pixel, or one of each image."""
    if len(place.shape) in (2, 4):
        return place
    return replace(place, batch=1, height=1, width=1, channels=int(np.prod(place.shape)))
