"""Nodes that only change the addresses of elements (docs/network.md, "Moves")."""

from dataclasses import replace

import numpy as np

from .layers import Layer
from .moves import addresses_of, channel_order, move_between, pieces
from .operators import OPERATORS, filled, refuse, take_layer
from .places import place_of
from .tensors import View

__all__ = ["join", "pad", "reorder", "take"]


def join(tensors, node):
    """A concatenation across images or pixels: tables are applied, then every tensor is moved to its place."""
    output = place_of(tensors.graph.tensors[node.output])
    axis = node.attributes.axis % len(output.shape)
    targets, places, moves, start = addresses_of(output), [], [], 0
    for number, (name, table) in enumerate(zip(node.inputs, node.attributes.tables, strict=True)):
        tensor, place = tensors.graph.tensors[name], tensors.place(name)
        if table is not None:
            changed = tensors.between(node, str(number), tensor.shape, output.dtype)
            single = replace(node, attributes=replace(node.attributes, tables=(table,)))
            tensors.layers.append(OPERATORS["Concat"](single, changed, (place,)))
            place = changed
        some = (slice(None),) * axis + (slice(start, start + tensor.shape[axis]),)
        start += tensor.shape[axis]
        move = move_between(addresses_of(place), targets[some], len(places))
        if move is None:
            refuse(node, f"its input {number} of {tensor.shape} is not moved by few nested loops")
        places.append(place)
        moves.append(move)
    tensors.append(Layer(node.name, node.operator or node.kind, output, tuple(places), moves=tuple(moves)))


def take(tensors, node):
    """Some elements: one job if they are contiguous channels, and rows and columns at equal steps."""
    layer = take_layer(node, place_of(tensors.graph.tensors[node.output]), tensors.graph.tensors[node.inputs[0]].shape,
                  lambda: tensors.place(node.inputs[0]))  # fmt: skip
    if layer is not None:
        tensors.append(layer)
        return
    view, indices = tensors.view(node.inputs[0]), node.attributes.indices
    addresses, output = view.addresses[np.ix_(*indices)], place_of(tensors.graph.tensors[node.output])
    targets = addresses_of(output)
    if move_between(addresses, targets) is None and channel_order(addresses, output, view.place) is None:
        moves = [move_between(addresses[some], targets[some]) for some in pieces(indices)]
        if moves and None not in moves:
            tensors.append(Layer(node.name, node.operator or node.kind, output, (view.place,), moves=tuple(moves)))
            return
    tensors.elsewhere[node.output] = replace(view, addresses=addresses)
    tensors.place(node.output)


def pad(tensors, node):
    """Padding of any dimension: a tensor of the value is made, and both tensors are moved to their places."""
    place, output, at = tensors.place(node.inputs[0]), place_of(tensors.graph.tensors[node.output]), node.attributes
    inside = [slice(first, first + size) for first, size in zip(at.before, place.shape, strict=True)]
    boxes, targets = [], addresses_of(output)
    for axis, some in enumerate(inside):
        # Only the inside of the dimensions before this one, and all of the dimensions after it.
        boxes += [(*inside[:axis], side) for side in (slice(0, some.start), slice(some.stop, None))]
    regions = [region for box in boxes if (region := targets[box]).size]
    count = sum(region.size for region in regions)
    fill = tensors.between(node, "padding", (max(count, 1),), output.dtype)
    tensors.layers.append(filled(node, replace(fill, height=fill.height * fill.width, width=1), place))
    moves, start = [move_between(addresses_of(place), targets[tuple(inside)])], 0
    for region in regions:
        moves.append(move_between(start + np.arange(region.size).reshape(region.shape), region, 1))
        start += region.size
    if None in moves:
        refuse(node, f"from {place.shape} to {output.shape} no few nested loops lead")
    tensors.append(Layer(node.name, node.operator or node.kind, output, (place, fill), moves=tuple(moves)))


def reorder(tensors, node):
    """A reshape or a transpose: nothing is moved until a reader needs the bytes in their own order."""
    tensor = tensors.graph.tensors[node.output]
    view = tensors.view(node.inputs[0])
    addresses = view.addresses
    if node.kind == "Transpose":
        addresses = addresses.transpose(node.attributes.perm)
    tensors.elsewhere[node.output] = View(view.place, addresses.reshape(tensor.shape))
    if tensors.every or tensor.dtype == "float32":
        tensors.place(node.output)
