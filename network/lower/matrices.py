"""Products of two computed matrices: convolutions whose weights are a tensor (docs/network.md, "Computed weights")."""

from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from tilewright.spec.conv import ConvOperation

from .layers import Layer, Part
from .moves import addresses_of
from .operators import OPERATORS, bits, element_type, results, table_of
from .places import BLOCK, Place, cut_place, padded, place_of
from .tensors import View

__all__ = ["in_rows", "join_columns", "product"]


class _Rows(NamedTuple):
    """Rows of contiguous elements at one pitch, in a place with one pixel a row.

    ``first`` and ``start`` are for each matrix the number of its first row, and the first byte of its rows.
    """

    place: Place
    first: np.ndarray
    start: np.ndarray

    def repeated(self, batch, wanted):
        """The rows of matrices of dimensions ``batch``, with dimensions of one matrix repeated to those ``wanted``."""
        numbers = np.broadcast_to(np.arange(prod(batch)).reshape(batch), wanted).ravel()
        return self._replace(first=self.first[numbers], start=self.start[numbers])


def product(tensors, node):
    """Adds the layer of a MatMul, whose output may lie anywhere."""
    tensor = tensors.graph.tensors[node.output]
    views = [tensors.view(name) for name in node.inputs]
    left, right = _matrices(*(view.addresses for view in views))
    alone = prod(right.shape[:-2]) == 1
    first = _operand(tensors, node, "a", views[0].place, left, joined=alone)
    second = _operand(tensors, node, "b", views[1].place, right)
    batches, height = [left.shape[:-2], right.shape[:-2]], left.shape[-2]
    if alone and len(first.first) == 1:
        batches, height = [(), ()], prod(left.shape[:-1])
    batch = np.broadcast_shapes(*batches)
    first, second = (rows.repeated(own, batch) for rows, own in zip((first, second), batches, strict=True))
    sizes = prod(batch), height, right.shape[-2]
    made, exchanged = _result(tensors, node, sizes, (first, second))
    layer = _layer(node, made, first, second, sizes, left.shape[-1], exchanged)
    if made.place.name in tensors.graph.tensors and made.place.name != node.output:
        layer = _in_channels(layer)  # a concatenation has the other channels
    if made.place.name == node.output:
        tensors.append(layer)
        return
    tensors.layers.append(layer)
    addresses = _addresses(made, sizes, made.place.element, exchanged)
    tensors.elsewhere[node.output] = View(made.place, addresses.reshape(tensor.shape))
    if tensors.every:
        tensors.place(node.output)


def _matrices(first, second):
    """Addresses of both operands as rows of the elements that are multiplied, [..., M, K] and [..., N, K]."""
    left = first[np.newaxis] if first.ndim == 1 else first
    return left, second[np.newaxis] if second.ndim == 1 else second.swapaxes(-1, -2)


def _operand(tensors, node, what, place, matrices, joined=False):
    """The :class:`_Rows` of an operand, ``joined`` as one matrix if possible. It is moved if it is not in rows."""
    *batch, rows, deep = matrices.shape
    shapes = [(1, prod(batch) * rows, deep)] * joined + [(prod(batch), rows, deep)]
    for shape in shapes:
        found = in_rows(place, matrices.reshape(shape))
        if found:
            return found
    between = tensors.between(node, what, (prod(batch) * rows, deep), place.dtype)
    moved = tensors.moved(node, View(place, matrices.reshape(between.shape)), between)
    return in_rows(moved, addresses_of(moved).reshape(shapes[0]))


def in_rows(place, addresses):
    """Matrices, offsets [groups, rows, columns] of the elements, as :class:`_Rows`; None if they are not."""
    _, rows, columns = addresses.shape
    starts, element = addresses[:, 0, 0], place.element
    pitches = (addresses[0, 1, 0] - starts[0],) if rows > 1 else (*np.diff(starts[:2]), place.size)
    for pitch in map(int, pitches):
        if pitch <= 0 or pitch % BLOCK or place.size % pitch:
            continue
        first, start = np.divmod(starts, pitch)
        expected = starts[:, None, None] + pitch * np.arange(rows)[:, None] + element * np.arange(columns)
        if (start + element * columns <= pitch).all() and (addresses == expected).all():
            # Bytes between rows do not belong to the pixels, as in the place of a matrix.
            alone = not start.any() and padded(element * columns) == pitch
            sizes = {"height": place.size // pitch, "channels": element * columns if alone else pitch}
            return _Rows(replace(place, batch=1, width=1, **sizes), first, start)
    return None


def _addresses(rows, sizes, element, exchanged):
    """Offsets [groups, rows, columns] of the elements of a result."""
    groups, height, width = sizes
    down, across = np.arange(height)[:, None], np.arange(width)
    down, across = (element * down, rows.place.row_pitch * across) if exchanged else (
        rows.place.row_pitch * down, element * across)  # fmt: skip
    starts = rows.first * rows.place.row_pitch + rows.start
    return starts.reshape(groups, 1, 1) + down + across


def _result(tensors, node, sizes, operands):
    """Where the result goes, and whether rows of it are columns there."""
    tensor = tensors.graph.tensors[node.output]
    place, wanted, exchanged = _wanted(tensors, node)
    fixed = node.attributes.bias is not None  # its numbers are of channels
    exchanged = exchanged and not fixed
    if place is not None:
        for turned in (False,) if fixed else (False, True):
            addresses = wanted.reshape(sizes)
            made = in_rows(place, addresses.swapaxes(1, 2) if turned else addresses)
            if made:
                return made, turned
    groups, height, width = sizes
    count, columns = (width, height) if exchanged else (height, width)
    element, numbers = np.dtype(tensor.dtype).itemsize, np.arange(groups)
    if groups > 1 and not np.ptp(operands[exchanged].first):
        # Rows of all matrices side by side, as the pixels are.
        pitch = padded(element * columns)
        place = tensors.between(node, "products", (count, groups * pitch // element), tensor.dtype)
        first, start = 0 * numbers, pitch * numbers
    else:
        place = tensors.between(node, "products", (groups * count, columns), tensor.dtype)
        first, start = count * numbers, 0 * numbers
    return _Rows(replace(place, batch=1, height=place.batch), first, start), exchanged


def _wanted(tensors, product):
    """Where the only reader of a product wants its elements: a place and their offsets there, in the tensor's shape.

    Of another product None, and whether the rows of that product are columns of the tensor.
    """
    graph, name = tensors.graph, product.output
    order = np.arange(prod(graph.tensors[name].shape)).reshape(graph.tensors[name].shape)
    offsets = np.empty(order.size, np.int64)
    while (node := tensors.only_reader(name)) and node.kind in ("Reshape", "Transpose"):
        order = order.transpose(node.attributes.perm) if node.kind == "Transpose" else order
        order = order.reshape(graph.tensors[node.output].shape)
        name = node.output
    if node and node.kind == "MatMul":
        rows = _matrices(order, order)[name != node.inputs[0]]
        return None, None, rows.shape[-1] > 1 and bool(rows.flat[1] - rows.flat[0] != 1)
    if node and node.kind in ("Normalise", "Softmax"):
        last = node.kind == "Normalise" or order.ndim - 1 in node.attributes.axes
        return None, None, not last
    joined = node and _columns_joined(graph, node)
    if joined:
        place, first = place_of(graph.tensors[node.output]), joined[node.inputs.index(name)]
        offsets[order.ravel()] = addresses_of(place)[:, first : first + order.shape[-1]].ravel()
        return place, offsets, False
    place = place_of(graph.tensors[name])
    offsets[order.ravel()] = addresses_of(place).ravel()
    if name != product.output:
        tensor = graph.tensors[product.output]
        place = replace(place, name=tensors.between(product, "products", tensor.shape, tensor.dtype).name)
    return place, offsets, False


def _columns_joined(graph, node):
    """Of a node that joins columns of different matrices, in multiples of 16 bytes, the first of each; or None."""
    shapes = [graph.tensors[name].shape for name in node.inputs]
    if node.kind != "Concat" or len(shapes) < 2 or len(shapes[0]) != 2 or node.attributes.axis % 2 != 1:
        return None
    firsts = np.cumsum([0, *(shape[1] for shape in shapes)]).tolist()
    plain = not any(each is not None for each in node.attributes.tables) and len(set(node.inputs)) == len(node.inputs)
    return firsts[:-1] if plain and not any(first % BLOCK for first in firsts) else None


def join_columns(tensors, node):
    """The matrix of a node that joins columns, which products have written there; all others are copied."""
    output = place_of(tensors.graph.tensors[node.output])
    for name, first in zip(node.inputs, _columns_joined(tensors.graph, node), strict=True):
        view = tensors.elsewhere.get(name)
        if view is None or view.place.name != node.output:
            source, single = tensors.place(name), replace(node, attributes=replace(node.attributes, tables=(None,)))
            part = replace(output, channels=source.channels, shape=source.shape)
            layer = OPERATORS["Concat"](single, part, (source,))
            tensors.layers.append(replace(layer, output=cut_place(output, (first, source.channels), (0, output.width))))
    tensors.places[node.output] = output


def _in_channels(layer):
    """A layer whose output is only the channels that its parts make."""
    spans = [part.out_channels for part in layer.parts]
    first, last = min(start for start, _ in spans), max(map(sum, spans))
    parts = tuple(
        replace(part, out_channels=(part.out_channels[0] - first, part.out_channels[1])) for part in layer.parts
    )
    return replace(layer, parts=parts, output=cut_place(layer.output, (first, last - first), (0, layer.output.width)))


def _layer(node, made, first, second, sizes, deep, exchanged):
    """The layer: a convolution for each matrix, whose pixels are rows of one operand, and weights those of the other.

    Exchanged rows and columns of the result are exchanged operands.
    """
    at, (_, count, columns) = node.attributes, sizes
    x, k, zeros = first, second, (at.a_zero, at.b_zero)
    if exchanged:
        x, k, zeros, count, columns = second, first, zeros[::-1], columns, count
    same = x.place == k.place
    common = {
        "operation": ConvOperation.CONVOLUTION, "source": 0, "weight_source": 0 if same else 1, "columns": (0, 1),
        "type": element_type(x.place.dtype, k.place.dtype), "x_zero": zeros[0] & 0xFF, "k_zero": zeros[1] & 0xFF,
        "table": table_of(columns, int(bits(np.float32(1) if at.scale is None else at.scale)),
                          0 if at.bias is None else at.bias),
    } | results(node, made.place, at.y_zero, at.minimum, at.maximum)  # fmt: skip
    parts = [
        Part(rows=(row, row + count), out_channels=(start // made.place.element, columns), channels=(channel, deep),
             origin=(row - pixel, 0), weight_start=tuple(weights), **common)
        for row, start, pixel, channel, *weights in zip(
            *(part.tolist() for rows in (made, x, k) for part in (rows.first, rows.start)), strict=True)
    ]  # fmt: skip
    sources = (x.place,) if same else (x.place, k.place)
    return Layer(node.name, node.operator or node.kind, made.place, sources, tuple(parts))
