"""Nodes that a kernel of the processing engine computes row by row (docs/network.md, "Kernels")."""

from dataclasses import replace
from math import prod

import numpy as np

from .arithmetic_kernel import arithmetic_kernel
from .channel_kernel import channel_kernel
from .kernels import UnfitError, normalisation_kernel, softmax_kernel
from .layers import Layer
from .matrices import in_rows
from .moves import addresses_of
from .operators import refuse
from .pairs_kernel import pairs_kernel
from .places import BLOCK, padded, place_of
from .recurrent_kernel import recurrent_kernel
from .tensors import View

__all__ = ["ELEMENT_KERNELS", "ROW_KERNELS", "by_kernel", "elements_by_kernel", "lacks_kernel"]

#: Most bytes of a row of elements.
_LONGEST = 128
#: By the kind of a node: its kernel.
ROW_KERNELS = {"Softmax": softmax_kernel, "Normalise": normalisation_kernel, "NormaliseChannels": channel_kernel}
ELEMENT_KERNELS = {"Arithmetic": arithmetic_kernel, "Pairs": pairs_kernel}


def lacks_kernel(graph, node, pe, room):
    """Whether a node needs a kernel that an engine with ``room`` bytes of shared memory cannot execute."""
    shape, types = graph.tensors[node.output].shape, [graph.tensors[name].dtype for name in node.inputs]
    try:
        if node.kind in ELEMENT_KERNELS:
            ELEMENT_KERNELS[node.kind](node.attributes, _LONGEST, types, graph.tensors[node.output].dtype, pe, room)
        elif node.kind == "Recurrent":
            (rows, _), (x_dtype,) = shape, types
            recurrent_kernel(node.attributes, rows, x_dtype, pe, room)
        elif node.kind in ROW_KERNELS:
            _, width = _order(node, shape)
            images = shape[0] if node.kind == "NormaliseChannels" else 1
            _kernel_of(node, width, prod(shape) // width, *types, graph.tensors[node.output].dtype, pe, images)
    except UnfitError:
        return True
    return False


def _kernel_of(node, width, rows, x_dtype, y_dtype, pe, images=1):
    """The kernel of a node of ``ROW_KERNELS`` for rows of ``width`` bytes; UnfitError if there is none."""
    pixels = {"pixels": rows // images} if node.kind == "NormaliseChannels" else {}
    return ROW_KERNELS[node.kind](node.attributes, width, x_dtype, y_dtype, pe, **pixels)


def by_kernel(tensors, node, pe):
    """Adds the layer of a node of ``ROW_KERNELS``. Its input is moved into rows if it is not in rows already."""
    tensor, (name,) = tensors.graph.tensors[node.output], node.inputs
    order, width = _order(node, tensor.shape)
    view, images = tensors.view(name), tensor.shape[0] if node.kind == "NormaliseChannels" else 1
    source, places = _sorted(view.place, _in_order(view.addresses, order, width))
    if source is None or (images > 1 and (np.diff(places) != 1).any()):
        rows = tensors.between(node, "rows", (prod(tensor.shape) // width, width), tensors.graph.tensors[name].dtype)
        moved = tensors.moved(node, replace(view, addresses=_in_order(view.addresses, order, width)), rows)
        source, places = _sorted(moved, addresses_of(moved))
    try:
        kernel = _kernel_of(node, width, len(places), source.place.dtype, tensor.dtype, pe, images)
    except UnfitError as error:
        refuse(node, str(error))
    own = place_of(tensor)
    made = in_rows(own, _in_order(addresses_of(own), order, width)[places][np.newaxis])
    if made is None:
        own = tensors.between(node, "results", (len(places), width), tensor.dtype)
        made = in_rows(own, addresses_of(own)[np.newaxis])
    origins = tuple((int(rows.first[0]), int(rows.start[0])) for rows in (source, made))
    kernel = replace(kernel, rows=len(places) // images, images=images, origins=origins)
    layer = Layer(node.name, node.operator or node.kind, made.place, (source.place,), kernel=kernel)
    if own.name == node.output:
        tensors.append(layer)
        return
    tensors.layers.append(layer)
    addresses = np.empty((len(places), width), np.int64)
    addresses[places] = addresses_of(own)
    shape = [tensor.shape[axis] for axis in order]
    tensors.elsewhere[node.output] = View(own, addresses.reshape(shape).transpose(np.argsort(order)))
    if tensors.every:
        tensors.place(node.output)


def elements_by_kernel(tensors, node, pe, room):
    """Adds the layer of a node of ``ELEMENT_KERNELS``: all bytes of tensors of one layout, as rows."""
    output = place_of(tensors.graph.tensors[node.output])
    size = padded(output.size)
    width = next(width for width in range(min(_LONGEST, size), 0, -BLOCK) if size % width == 0)
    sizes = {"batch": 1, "height": size // width, "width": 1, "channels": width}
    places = [replace(place, **sizes) for place in (*map(tensors.place, node.inputs), output)]
    types = [place.dtype for place in places[:-1]]
    try:
        kernel = ELEMENT_KERNELS[node.kind](node.attributes, width, types, output.dtype, pe, room)
    except UnfitError as error:
        refuse(node, str(error))
    kernel = replace(kernel, rows=places[-1].height, origins=((0, 0),) * len(places))
    tensors.append(Layer(node.name, node.operator or node.kind, places[-1], tuple(places[:-1]), kernel=kernel))


def _order(node, shape):
    """The dimensions of a tensor with those of a row last, and the elements of a row."""
    rank = len(shape)
    if node.kind == "NormaliseChannels":
        return (0, 2, 3, 1), shape[1]
    along = node.attributes.axes if node.kind == "Softmax" else tuple(range(rank - node.attributes.dimensions, rank))
    return (*(axis for axis in range(rank) if axis not in along), *along), prod(shape[axis] for axis in along)


def _in_order(addresses, order, width):
    """Offsets of elements as rows of ``width`` elements."""
    return addresses.transpose(order).reshape(-1, width)


def _sorted(place, addresses):
    """Rows in the order of their addresses, and the number of each; None if they are not at one pitch."""
    places = np.argsort(addresses[:, 0], kind="stable")
    return in_rows(place, addresses[places][np.newaxis]), places
