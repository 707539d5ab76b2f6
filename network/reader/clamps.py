"""Clamps of integers become part of the node before them, whose results are clamped anyhow."""

from collections import Counter
from dataclasses import replace

import numpy as np

from ..graph import Graph

__all__ = ["fold_clamps"]

_CLAMPING = ("Conv", "Add", "Mul", "Pool")


def fold_clamps(graph):
    """The same graph, in which no node does nothing but clamp what a node with a clamp of its own gives it alone."""
    uses = Counter(name for node in graph.nodes for name in node.inputs) + Counter(graph.outputs)
    tensors, nodes, places = dict(graph.tensors), [], {}
    for node in graph.nodes:
        place = places.get(node.inputs[0])
        ends = _clamp(graph, node)
        if ends and place is not None and _clamps(nodes[place]) and uses[node.inputs[0]] == 1:
            before = nodes[place].attributes
            low, high = (int(np.clip(end, *ends)) for end in (before.minimum, before.maximum))
            attributes = replace(before, minimum=low, maximum=high)
            nodes[place] = replace(nodes[place], output=node.output, attributes=attributes)
            del tensors[node.inputs[0]]
        else:
            place = len(nodes)
            nodes.append(node)
        places[node.output] = place
    return Graph(graph.inputs, graph.outputs, tensors, tuple(nodes))


def _clamps(node):
    return node.kind in _CLAMPING and getattr(node.attributes, "kind", "") != "max"


def _clamp(graph, node):
    """Least and largest result of a node that only clamps; None of any other."""
    if node.kind != "Concat" or len(node.inputs) != 1 or node.attributes.tables[0] is None:
        return None
    dtype, (table,) = graph.tensors[node.inputs[0]].dtype, node.attributes.tables
    numbers = np.arange(256, dtype=np.uint8).view(dtype)
    ends = int(table.min()), int(table.max())
    same = table.dtype == dtype and np.array_equal(np.clip(numbers, *ends), table)
    return ends if same else None
