"""Attention in groups of heads, so that softmax runs beside products (docs/network.md, "Kernels").

Each group has projections, products and a softmax of its own: while the softmax of one group is computed, the
convolution engine makes the projections and products of the others.
"""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import prod

from ..attributes import Concat, Reshape
from ..graph import Node, needed

__all__ = ["in_head_groups"]

#: Groups of heads, and elements of a softmax from which they help: each group takes some thousand cycles more.
_GROUPS, _LEAST = 4, 1 << 16


def in_head_groups(graph):
    """The graph with each attention in groups of heads; the graph itself if there is none of several heads."""
    for node in graph.nodes:
        if node.kind == "Softmax" and node not in graph.tail:
            shape, axes = graph.tensors[node.output].shape, node.attributes.axes
            large = prod(shape) >= _LEAST
            dimensions = [axis for axis, size in enumerate(shape[:-2]) if large and size > 1 and axis not in axes]
            grouped = (_Attention(graph).grouped(node, axis) for axis in reversed(dimensions))
            graph = next(filter(None, grouped), graph)
    return graph


class _Attention:
    """Finds what follows a softmax, and makes groups of it."""

    def __init__(self, graph):
        self._graph, self._tensors = graph, dict(graph.tensors)
        self._makers = {node.output: node for node in graph.nodes}
        self._uses = Counter(name for node in graph.nodes for name in node.inputs) + Counter(graph.outputs)

    def grouped(self, softmax, axis):
        """The graph with the attention of a Softmax in groups along a dimension; None if that cannot be."""
        end = self._end(softmax.output, axis)
        if end is None:
            return None
        name, axis, unit = end
        heads = self._tensors[name].shape[axis] // unit
        bounds = [unit * (heads * group // _GROUPS) for group in range(_GROUPS + 1)]
        made, parts = [], []
        for first, last in pairwise(bounds):
            if first < last:
                part = self._cut(name, axis, (first, last), made, {})
                if part is None:
                    return None
                parts.append(part)
        made.append(Node(self._makers[name].name, tuple(parts), name, Concat(axis, (None,) * len(parts)), "Concat"))
        place = self._graph.nodes.index(self._makers[name])
        nodes = (*self._graph.nodes[:place], *made, *self._graph.nodes[place + 1 :])
        return needed(replace(self._graph, nodes=nodes, tensors=self._tensors))

    def _end(self, name, axis):
        """The last tensor of the heads, its dimension of them, and elements of each; None if products do not follow."""
        unit, products = 1, 0
        while self._uses[name] == 1 and (reader := self._reader(name)):
            shape, made = self._tensors[name].shape, self._tensors[reader.output].shape
            if reader.kind == "MatMul" and not products and name == reader.inputs[0] and len(made) == len(shape):
                products += 1
            elif reader.kind == "Transpose":
                axis = reader.attributes.perm.index(axis)
            elif reader.kind == "Reshape" and (found := _axis_in(shape, made, axis)) is not None:
                unit *= made[found] // shape[axis]
                axis = found
            else:
                break
            name = reader.output
        return (name, axis, unit) if products else None

    def _reader(self, name):
        return next((node for node in self._graph.nodes if name in node.inputs), None)

    def _cut(self, name, axis, span, made, known):
        """The name of elements ``span`` of a dimension of a tensor, with nodes that make it; None if that cannot be."""
        key = name, axis
        if key not in known:
            node, shape = self._makers.get(name), self._tensors[name].shape
            if node is None or self._uses[name] > 1:
                return None
            inputs, attributes = self._pieces(node, shape, axis, span, made, known)
            if inputs is None or None in inputs:
                return None
            sizes = (*shape[:axis], span[1] - span[0], *shape[axis + 1 :])
            if node.kind == "Reshape":
                attributes = Reshape(sizes)
            known[key] = f"{name}[{span[0]}:{span[1]}]"
            self._tensors[known[key]] = replace(self._tensors[name], name=known[key], shape=sizes)
            made.append(replace(node, inputs=inputs, output=known[key], attributes=attributes))
        return known[key]

    def _pieces(self, node, shape, axis, span, made, known):
        """Inputs and attributes of a node that makes ``span`` of a dimension; None and None if it cannot be cut."""
        at, (first, last) = node.attributes, span
        given = self._tensors[node.inputs[0]].shape
        if node.kind == "Conv" and at.matrix and axis == len(shape) - 1:
            numbers = {name: getattr(at, name)[first:last] for name in ("weight", "w_zero", "bias", "scale")}
            return node.inputs, replace(at, **numbers)
        if node.kind == "MatMul" and axis < len(shape) - 2:
            return tuple(self._operand(each, axis - len(shape), span, made, known) for each in node.inputs), at
        if node.kind == "Softmax" and axis not in at.axes:
            return (self._cut(node.inputs[0], axis, span, made, known),), at
        if node.kind == "Transpose":
            return (self._cut(node.inputs[0], at.perm[axis], span, made, known),), at
        if node.kind == "Reshape" and (found := _axis_in(given, shape, axis, back=True)) is not None:
            ratio = given[found], shape[axis]
            if all(bound * ratio[0] % ratio[1] == 0 for bound in span):
                span = tuple(bound * ratio[0] // ratio[1] for bound in span)
                return (self._cut(node.inputs[0], found, span, made, known),), at
        return None, None

    def _operand(self, name, axis, span, made, known):
        """An operand of a product, cut along a dimension that is counted from the end, or whole if it lacks it."""
        shape = self._tensors[name].shape
        if -axis > len(shape) or shape[axis] == 1:
            return name
        return self._cut(name, len(shape) + axis, span, made, known)


def _axis_in(given, made, axis, back=False):
    """The dimension of ``made`` that dimension ``axis`` of ``given`` is the outer part of, or the whole; None if none.

    ``back``: the dimension of ``given`` for ``axis`` of ``made``.
    """
    known, sought = (made, given) if back else (given, made)
    before = prod(known[:axis])
    found = next((other for other in range(len(sought)) if prod(sought[:other]) == before and sought[other] > 1), None)
    if found is None:
        return None
    sizes = known[axis], sought[found]
    inner, outer = (prod(shape[number + 1 :]) for shape, number in ((known, axis), (sought, found)))
    return found if sizes[0] * inner == sizes[1] * outer or max(sizes) % min(sizes) == 0 else None
