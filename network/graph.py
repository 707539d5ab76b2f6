"""A quantised network as integers and exact constants. A reader makes it; it is evaluated or lowered to jobs.

Shapes are those of the model file, NCHW for feature maps. Scales are the binary32 factors of the results, zero points
are integers, and padding is explicit. Results are defined in docs/network.md, "Exact arithmetic".

Arrays are read-only. Objects are compared by identity.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tilewright.errors import UsageError

__all__ = ["HOST_SHARE", "MOVES", "Graph", "ModelError", "Node", "Tensor", "needed", "node_error"]


_BYTES = ("uint8", "int8")
#: The host multiplies at most the network's multiplications divided by this.
HOST_SHARE = 50
#: Kinds of nodes that only move elements.
MOVES = ("Reshape", "Take", "Transpose")


class ModelError(UsageError, ValueError):
    """One sentence that names the file, the node or the tensor. The command line ends with status 2."""


def node_error(name, operator, sentence):
    """The error of a node, with its name and its operator."""
    return ModelError(f"node {name!r} ({operator}): {sentence}")


@dataclass(frozen=True)
class Tensor:
    """An input, a result of a node, or a constant that is read as a tensor; weights are not tensors.

    Attributes
    ----------
    name : str
    shape : tuple of int
        Each at least 1, or -1 where the values decide it. Feature maps are [N, C, H, W].
    dtype : str
        ``"uint8"`` or ``"int8"``; ``"float32"`` and other types at the ends of a network; ``"int32"`` before a
        ``Scale``.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Node:
    """An operation of a network.

    Attributes
    ----------
    name : str
        As in the model, or the name of the output if it has none there.
    inputs : tuple of str
        Names of tensors: two for Add, MatMul and Mul, one or more for Concat and Floats, otherwise one.
    output : str
    attributes : object
        An object of one of the classes of ``network/attributes.py``.
    operator : str
        The operator in the model, for messages and tables.
    """

    name: str
    inputs: tuple[str, ...]
    output: str
    attributes: object
    operator: str = ""

    @property
    def kind(self):
        """The name of the class of ``attributes``, as in ``"Conv"``."""
        return type(self.attributes).__name__


@dataclass(frozen=True, eq=False)
class Graph:
    """A network.

    Attributes
    ----------
    inputs, outputs : tuple of str
        Names of tensors, in the order of the model.
    tensors : dict of str to Tensor
        Every tensor that is given or computed, or a constant that nodes read as a tensor.
    constants : dict of str to array
        The elements of those constants, of 8 bits.
    nodes : tuple of Node
        Each after those that make its inputs.
    hosted : frozenset of str
        Outputs of nodes after which the host computes, because the engines of a machine cannot.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: dict[str, Tensor] = field(repr=False)
    nodes: tuple[Node, ...] = field(repr=False)
    constants: dict[str, np.ndarray] = field(repr=False, default_factory=dict)
    hosted: frozenset = frozenset()

    @cached_property
    def head(self):
        """Nodes that the host computes from inputs of the network, before the engines begin."""
        nodes, names = [], set(self.inputs)
        for node in self.nodes:
            moved = node.kind in MOVES and self.tensors[node.output].dtype not in _BYTES
            if (node.kind == "Floats" or moved) and names.issuperset(node.inputs):
                nodes.append(node)
                names.add(node.output)
        return tuple(nodes)

    @cached_property
    def tail(self):
        """Nodes that the host computes after the engines: those that give floats, and all that follow.

        A Softmax is one of them too, with all that follows, if few multiplications do.
        """
        nodes, names, before = [], set(), {node.output for node in self.head}
        last = self._last_softmaxes()
        for node in self.nodes:
            if node.output in before:
                continue
            hosted = node.kind in ("Dequantize", "Floats", "Scale") or node.output in last | self.hosted
            if hosted or not names.isdisjoint(node.inputs):
                nodes.append(node)
                names.add(node.output)
        return tuple(nodes)

    def _last_softmaxes(self):
        """Outputs of each Softmax after which the host may do all multiplications."""
        return {node.output for node in self.nodes if node.kind == "Softmax" and self.is_late(node)}

    def is_late(self, node):
        """Whether so few multiplications follow a node that the host may do all of them."""
        names, macs = {node.output}, 0
        for later in self.nodes[self.nodes.index(node) + 1 :]:
            if not names.isdisjoint(later.inputs):
                names.add(later.output)
                macs += self.macs(later)
        return macs * HOST_SHARE <= sum(map(self.macs, self.nodes))

    def macs(self, node):
        """Multiplications of one run of ``node``: of convolutions, also those with padding, and of matrices."""
        if node.kind == "MatMul":
            return int(np.prod(self.tensors[node.output].shape)) * self.tensors[node.inputs[0]].shape[-1]
        if node.kind not in ("Conv", "ConvTranspose"):
            return 0
        # Each element of one side is multiplied with the kernel of a channel of the other side.
        tensor = node.output if node.kind == "Conv" else node.inputs[0]
        return int(np.prod(self.tensors[tensor].shape)) * int(np.prod(node.attributes.weight.shape[1:]))


def needed(graph):
    """The graph without nodes that no output needs."""
    names, nodes = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if node.output in names:
            names.update(node.inputs)
            nodes.append(node)
    return replace(graph, nodes=tuple(reversed(nodes)))
