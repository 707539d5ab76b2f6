"""A graph that grows while the nodes of a model are read."""

import math
from dataclasses import replace

import numpy as np

from ..arithmetic.constants import change_table
from ..arithmetic.ends import dequantise, limits, quantise
from ..graph import Concat, Graph, Node, Quantize, Reshape, Tensor
from .values import Pending, Real

__all__ = ["Reading", "change_of", "own_quantity"]

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

    def defer(self, op, shape, finish, **options):
        """Floats that become integers when a QuantizeLinear says which: see Pending."""
        self.values[op.output] = Pending(op, tuple(shape), finish, **options)

    def change(self, op, name, x, output, y, clamp):
        """Adds what turns the tensor ``name`` of Quantity ``x`` into ``output`` of Quantity ``y``, clamped."""
        table, shape = change_of(x, y, clamp), self._tensors[name].shape
        self.emit(op, (name,), output, Reshape(shape) if table is None else Concat(0, (table,)), shape, y.dtype)

    def make(self, op, value, output, y, clamp):
        """Adds what makes the tensor ``output`` of Quantity ``y``, clamped, of floats.

        ``value`` is a Real, a Pending, or a tensor of float32.
        """
        if isinstance(value, Pending):
            value.finish(output, y, _within(value, y, clamp))
        elif isinstance(value, Real):
            self.change(op, value.name, value.quantity, output, y, clamp)
        else:
            name = output if clamp == limits(y.dtype) else self.fresh(f"{output}.whole")
            self.emit(op, (value.name,), name, Quantize(y.scale, y.zero), value.shape, y.dtype)
            if name != output:
                self.change(op, name, y, output, y, clamp)

    def integers(self, op, value, output, y, clamp):
        """The name of a tensor with what :meth:`make` makes; nothing is added if there is one. ``output`` reads it."""
        if isinstance(value, Real) and change_of(value.quantity, y, clamp) is None:
            return value.name
        name = self.fresh(f"{output}.before")
        self.make(op, value, name, y, clamp)
        return name

    def move(self, op, value, shape, attributes_of, quantity=None):
        """Adds what changes places of elements, of integers or of floats, which are made integers first.

        Parameters
        ----------
        op : Operator
        value : Tensor, Real or Pending
        shape : sequence of int
            Of the result.
        attributes_of : callable
            Takes the Quantity of the floats, or None, and least and largest result.
        quantity : Quantity or None
            As of Pending.
        """
        if isinstance(value, Tensor) and value.dtype != "float32":
            attributes = attributes_of(None, limits(value.dtype))
            self.emit(op, (value.name,), op.output, attributes, shape, value.dtype)
            return

        def finish(output, y, clamp):
            name = self.integers(op, value, output, y, clamp)
            self.emit(op, (name,), output, attributes_of(y, clamp), shape, y.dtype)

        self.defer(op, shape, finish, quantity=quantity)

    def real(self, name):
        """The Real that a name stands for; floats become one if integers are exactly they. None if there is none."""
        value = self.values[name]
        quantity = own_quantity(value)
        if isinstance(value, Pending) and quantity is not None:
            integers = self.fresh(f"{name}.integers")
            self.make(value.node, value, integers, quantity, limits(quantity.dtype))
            self.values[name] = Real(integers, quantity, value.node)
        return None if quantity is None else self.values[name]

    def clamp(self, op, value, low, high):
        """What ``value``, a Pending, is when its floats are clamped too."""
        ends = (min(max(end, low), high) for end in (value.low, value.high))
        self.values[op.output] = replace(value, **dict(zip(("low", "high"), ends, strict=True)), biased=None)

    def graph(self, inputs, outputs):
        """All of it."""
        return Graph(tuple(inputs), tuple(outputs), self._tensors, tuple(self._nodes))

    def fresh(self, name):
        """A name like this one that nothing has."""
        while name in self.values:
            name += "'"
        return name


def own_quantity(value):
    """The Quantity of integers that are exactly the floats of a Real or a Pending; None if there is none."""
    if isinstance(value, Real):
        return value.quantity
    if not isinstance(value, Pending) or value.quantity is None:
        return None
    scale, zero, dtype = value.quantity
    least, most = (dequantise(np.int32(end), scale, zero) for end in limits(dtype))
    low, high = (dequantise(quantise(end, *value.quantity), scale, zero) for end in (value.low, value.high))
    exact = (value.low <= least or low == value.low) and (value.high >= most or high == value.high)
    return value.quantity if exact else None


def _within(pending, y, clamp):
    """``clamp`` with the ends of a Pending in it."""
    ends = (int(np.clip(quantise(end, *y), *clamp)) for end in (pending.low, pending.high))
    return tuple(ends)


def change_of(x, y, clamp):
    """The table from Quantity ``x`` to ``y``, clamped; None if no byte changes."""
    table = change_table((x.scale, x.zero), x.dtype, (y.scale, y.zero), y.dtype)
    table = np.clip(table, *clamp).astype(y.dtype)
    table.setflags(write=False)
    return None if x.dtype == y.dtype and np.array_equal(table.view(np.uint8), np.arange(256)) else table
