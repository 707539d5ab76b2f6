"""A graph that grows while the nodes of a model are read."""

import math
from dataclasses import replace

import numpy as np

from ..arithmetic.constants import change_table
from ..arithmetic.rounding import dequantise, limits, quantise
from ..graph import Concat, Dequantize, Floats, Graph, Node, Quantize, Reshape, Tensor
from .operator import Function, Pending, Real

__all__ = ["Reading", "change_of", "function_of", "numbers", "own_quantity"]

#: Elements of a tensor; a file of a few bytes may ask for any number.
_MOST = 1 << 31


class Reading:
    """What was read so far.

    Attributes
    ----------
    values : dict
        What a name stands for: a ``Tensor``, Constant, Real or Pending.
    tables : dict of str to (str, array)
        Tensors that are a table of another one.
    opset : int
        Version of ONNX's operators.
    """

    def __init__(self, opset):
        self.values, self.tables, self.opset = {}, {}, opset
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
        op.refuse_if(min(shape, default=1) < 1, f"its output {output!r} would be {list(shape)}, without elements")
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
        self.table(op, name, output, _change(x, y, clamp))

    def table(self, op, name, output, table):
        """Adds what makes ``output`` of the tensor ``name`` by a table of 256 results."""
        tensor, dtype = self._tensors[name], table.dtype.name
        attributes = Reshape(tensor.shape) if _is_same(table, tensor.dtype) else Concat(0, (table,))
        table.setflags(write=False)
        self.emit(op, (name,), output, attributes, tensor.shape, dtype)
        self.tables[output] = name, table

    def shape(self, name):
        """Of a tensor."""
        return self._tensors[name].shape

    def floats_of(self, value):
        """A function that adds nodes which give the floats of a Real or a Pending, by their name; None if none do."""
        if isinstance(value, Pending) and value.floats:
            return value.floats
        function = function_of(value)
        if function is None:
            return None
        node = value.dequantise if isinstance(value, Real) else value.node
        return lambda name: self.emit(
            node, (function.name,), name, Dequantize(function.floats), self.shape(function.name), "float32"
        )

    def apply(self, op, value, function):
        """A function of the floats of a Real or a Pending, of the same shape: as floats, for the host to compute."""
        before = self.floats_of(value)

        def floats(output):
            name = self.fresh(f"{output}.before")
            before(name)
            self.emit(op, (name,), output, Floats(function), self.shape(name), "float32")

        return floats

    def defer_floats(self, op, shape, floats, finish=None):
        """Floats that ``floats`` adds nodes for; of their integers too, if there is no ``finish``."""

        def quantised(output, y, clamp):
            name = self.fresh(f"{output}.floats")
            floats(name)
            self.make(op, self._tensors[name], output, y, clamp)

        self.defer(op, shape, finish or quantised, floats=floats)

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

    def move(self, op, value, shape, attributes_of, quantity=None, floats=False):
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
        floats : bool
            Whether those that the host has are moved by it.
        """
        if isinstance(value, Tensor) and value.dtype != "float32":
            attributes = attributes_of(None, limits(value.dtype))
            self.emit(op, (value.name,), op.output, attributes, shape, value.dtype)
            return

        def finish(output, y, clamp):
            name = self.integers(op, value, output, y, clamp)
            self.emit(op, (name,), output, attributes_of(y, clamp), shape, y.dtype)

        def moved(output):
            name = self.fresh(f"{output}.before")
            value.floats(name)
            self.emit(op, (name,), output, attributes_of(None, None), shape, "float32")

        has = floats and isinstance(value, Pending) and value.floats
        self.defer(op, shape, finish, quantity=quantity, floats=moved if has else None)

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
        least, most = (min(max(end, low), high) for end in (value.low, value.high))
        ends = np.float32(low), np.float32(high)
        function = value.function and value.function._replace(floats=np.clip(value.function.floats, *ends))
        floats = value.floats and self.apply(op, value, lambda x: np.clip(x, *ends))
        self.values[op.output] = replace(value, low=least, high=most, biased=None, function=function, floats=floats)

    def graph(self, inputs, outputs):
        """All of it."""
        return Graph(tuple(inputs), tuple(outputs), self._tensors, tuple(self._nodes))

    def fresh(self, name):
        """A name like this one that nothing has."""
        while name in self.values:
            name += "'"
        return name


def numbers(dtype):
    """All of a type of 8 bits, by their bytes."""
    return np.arange(256, dtype=np.uint8).view(dtype)


def function_of(value):
    """The Function that floats are, if they are one: of a Real, or a Pending of one tensor; otherwise None."""
    if isinstance(value, Real):
        return Function(value.name, dequantise(numbers(value.quantity.dtype), *value.quantity[:2]))
    return value.function if isinstance(value, Pending) else None


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
    table = _change(x, y, clamp)
    table.setflags(write=False)
    return None if _is_same(table, x.dtype) else table


def _change(x, y, clamp):
    table = change_table((x.scale, x.zero), x.dtype, (y.scale, y.zero), y.dtype)
    return np.clip(table, *clamp).astype(y.dtype)


def _is_same(table, dtype):
    """Whether no byte of a tensor changes."""
    return table.dtype.name == dtype and np.array_equal(table.view(np.uint8), np.arange(256))
