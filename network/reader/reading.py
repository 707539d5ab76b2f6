"""A graph that grows while the nodes of a model are read."""

import math
from dataclasses import replace

import numpy as np

from ..arithmetic.constants import change_table
from ..graph import Concat, Graph, Node, Tensor
from .values import Pending

__all__ = ["Reading", "change_of"]

#: Elements of a tensor; a file of a few bytes may ask for any number.
_MOST = 1 << 31


class Reading:
    """What was read so far.

    Attributes
    ----------
    values : dict
        What a name stands for: a ``Tensor``, Constant, Real or Pending.
    """

    def __init__(self):
        self.values = {}
        self._tensors = {}
        self._nodes = []

    def give(self, tensor):
        """Takes up a tensor that is given."""
        self.values[tensor.name] = self._tensors[tensor.name] = tensor

    def emit(self, op, inputs, output, attributes, shape, dtype):
        """Adds a node to the graph, and what it computes.

        Parameters
        ----------
        op : Operator
            It comes from this one.
        inputs : sequence of str
        output : str
        attributes : object
        shape : sequence of int
        dtype : str
        """
        if math.prod(shape) > _MOST:
            raise op.refusal(f"its output {output!r} would be {list(shape)}, more than {_MOST:,} elements")
        if min(shape, default=1) < 1:
            raise op.refusal(f"its output {output!r} would be {list(shape)}, without elements")
        for value in vars(attributes).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.give(Tensor(output, tuple(int(size) for size in shape), dtype))
        self._nodes.append(Node(op.name, tuple(inputs), output, attributes, op.kind))

    def defer(self, op, shape, finish):
        """Floats that become integers when a QuantizeLinear says which: see Pending."""
        self.values[op.output] = Pending(op, tuple(shape), finish)

    def change(self, op, name, x, output, y, clamp):
        """Adds what turns the tensor ``name`` of Quantity ``x`` into ``output`` of Quantity ``y``, clamped."""
        table = change_of(x, y, clamp)
        self.emit(op, (name,), output, Concat(0, (table,)), self._tensors[name].shape, y.dtype)

    def emit_bytes(self, op, names, attributes, shape, x):
        """Adds what moves bytes alone. If they stand for floats, of Quantity ``x``, the result may have another one.

        Parameters
        ----------
        op : Operator
        names : sequence of str
        attributes : object
        shape : sequence of int
        x : Quantity or None
        """
        if x is None:
            self.emit(op, names, op.output, attributes, shape, self._tensors[names[0]].dtype)
            return

        def finish(output, y, clamp):
            if change_of(x, y, clamp) is None:
                self.emit(op, names, output, attributes, shape, y.dtype)
                return
            raw = self._fresh(f"{output}.before")
            self.emit(op, names, raw, attributes, shape, x.dtype)
            self.change(op, raw, x, output, y, clamp)

        self.defer(op, shape, finish)

    def clamp(self, op, value, low, high):
        """What ``value``, a Pending, is when its floats are clamped too."""
        self.values[op.output] = replace(
            value, low=min(max(value.low, low), high), high=min(max(value.high, low), high)
        )

    def graph(self, inputs, outputs):
        """All of it."""
        return Graph(tuple(inputs), tuple(outputs), self._tensors, tuple(self._nodes))

    def _fresh(self, name):
        while name in self.values:
            name += "'"
        return name


def change_of(x, y, clamp):
    """The table from Quantity ``x`` to ``y``, clamped; None if no byte changes."""
    table = change_table((x.scale, x.zero), x.dtype, (y.scale, y.zero), y.dtype)
    table = np.clip(table, *clamp).astype(y.dtype)
    table.setflags(write=False)
    return None if x.dtype == y.dtype and np.array_equal(table.view(np.uint8), np.arange(256)) else table
