"""The graph while the nodes of a model are read."""

import math
from dataclasses import replace

import numpy as np

from ..arithmetic import change_table, dequantise, limits, numbers, quantise
from ..attributes import Concat, Dequantize, Floats, Quantize, Reshape
from ..graph import Graph, Node, Tensor
from .operator import Function, Pending, Real

__all__ = ["Reading", "change_of", "function_of", "own_quantity"]

#: Most elements of a tensor: a file of a few bytes may ask for any number.
_MOST = 1 << 31


class Reading:
    """The graph so far, and the values of names.

    Attributes
    ----------
    values : dict
        Values of names: a ``Tensor``, Constant, Real or Pending.
    tables : dict of str to (str, array)
        Tensors that are a function of another one, with the table.
    inputs : set of str
        Names of the inputs of the model.
    opset : int
        Version of ONNX's operators.
    """

    def __init__(self, opset):
        self.values, self.tables, self.opset = {}, {}, opset
        self._tensors, self._constants, self._floats, self.inputs = {}, {}, {}, set()
        self._nodes = []

    def give(self, tensor):
        """Adds a tensor."""
        self.values[tensor.name] = self._tensors[tensor.name] = tensor

    def give_constant(self, name, array):
        """Adds a constant of 8 bits that nodes read as a tensor; returns its name, which is like ``name``."""
        name = self.fresh(name)
        self.give(Tensor(name, array.shape, array.dtype.name))
        array = np.ascontiguousarray(array)
        array.setflags(write=False)
        self._constants[name] = array
        return name

    def emit(self, op, inputs, output, attributes, shape, dtype):
        """Adds a node to the graph, and its output.

        Parameters
        ----------
        op : Operator
            The node of the model that it comes from.
        inputs : sequence of str
        output : str
        attributes : object
        shape : sequence of int
        dtype : str
        """
        if math.prod(shape) > _MOST:
            raise op.refusal(f"its output {output!r} would be {list(shape)}, more than {_MOST:,} elements")
        op.refuse_if(0 in shape, f"its output {output!r} would be {list(shape)}, without elements")
        for value in vars(attributes).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.give(Tensor(output, tuple(int(size) for size in shape), dtype))
        self._nodes.append(Node(op.name, tuple(inputs), output, attributes, op.kind))

    def defer(self, op, shape, finish, **options):
        """Makes the output of a node a :class:`Pending`."""
        self.values[op.output] = Pending(op, tuple(shape), finish, **options)

    def change(self, op, name, x, output, y, clamp):
        """Adds a node that changes tensor ``name`` of Quantity ``x`` to ``output`` of Quantity ``y``, clamped."""
        self.table(op, name, output, _change(x, y, clamp))

    def table(self, op, name, output, table):
        """Adds a node that makes ``output`` from the tensor ``name`` by a table of 256 results."""
        tensor, dtype = self._tensors[name], table.dtype.name
        attributes = Reshape(tensor.shape) if _is_same(table, tensor.dtype) else Concat(0, (table,))
        table.setflags(write=False)
        self.emit(op, (name,), output, attributes, tensor.shape, dtype)
        self.tables[output] = name, table

    def shape(self, name):
        """The shape of a tensor."""
        return self._tensors[name].shape

    def type_of(self, name):
        """The type of the elements of a tensor."""
        return self._tensors[name].dtype

    def floats_of(self, value):
        """A function of a name that adds nodes for the floats of a Real or a Pending; None if there are none."""
        if isinstance(value, Pending) and value.floats:
            return value.floats
        function = function_of(value)
        if function is None:
            return None
        node = value.dequantise if isinstance(value, Real) else value.node
        return lambda name: self.emit(
            node, (function.name,), name, Dequantize(function.floats), self.shape(function.name), "float32"
        )

    def on_host(self, name):
        """The name of the tensor of floats, or of numbers of another type, that the host has for a name."""
        value = self.values[name]
        if isinstance(value, Tensor):
            return name
        if name not in self._floats:
            self._floats[name] = self.fresh(f"{name}.floats")
            self.floats_of(value)(self._floats[name])
        return self._floats[name]

    def apply(self, op, value, function):
        """A function that adds nodes for ``function`` of the floats of a value, which the host computes."""
        before = self.floats_of(value)

        def floats(output):
            name = self.fresh(f"{output}.before")
            before(name)
            self.emit(op, (name,), output, Floats(function), self.shape(name), "float32")

        return floats

    def defer_floats(self, op, shape, floats, finish=None):
        """Makes the output of a node floats for which ``floats`` adds nodes; without ``finish`` their integers too."""
        self.defer(op, shape, finish or self.quantised(op, floats), floats=floats)

    def quantised(self, op, floats):
        """The ``finish`` of a Pending whose floats ``floats`` adds nodes for: the host quantises them."""

        def finish(output, y, clamp):
            name = self.fresh(f"{output}.floats")
            floats(name)
            self.make(op, self._tensors[name], output, y, clamp)

        return finish

    def make(self, op, value, output, y, clamp):
        """Adds nodes that make the tensor ``output`` of Quantity ``y``, clamped, from floats.

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
        """The name of a tensor like the one that :meth:`make` makes, which is added if needed; ``output`` reads it."""
        if isinstance(value, Real) and change_of(value.quantity, y, clamp) is None:
            return value.name
        name = self.fresh(f"{output}.before")
        self.make(op, value, name, y, clamp)
        return name

    def move(self, op, value, shape, attributes_of, quantity=None, floats=False):
        """Adds a node that moves elements: of integers, or of floats, which are made integers first.

        Parameters
        ----------
        op : Operator
        value : Tensor, Real or Pending
        shape : sequence of int
            Shape of the result.
        attributes_of : callable
            Attributes of the node from the Quantity of the floats, or None, and least and largest result.
        quantity : Quantity or None
            See Pending.
        floats : bool
            Whether floats that the host computes may be moved by the host.
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
        """The Real that a name stands for, also of floats that are exactly integers; None if there is none."""
        value = self.values[name]
        quantity = own_quantity(value)
        if isinstance(value, Pending) and quantity is not None:
            integers = self.fresh(f"{name}.integers")
            self.make(value.node, value, integers, quantity, limits(quantity.dtype))
            self.values[name] = Real(integers, quantity, value.node)
        return None if quantity is None else self.values[name]

    def clamp(self, op, value, low, high):
        """Makes the output of a node ``value``, a Pending, with its floats clamped."""
        least, most = (min(max(end, low), high) for end in (value.low, value.high))
        ends = np.float32(low), np.float32(high)
        function, pair = (each and each._replace(floats=np.clip(each.floats, *ends))
                          for each in (value.function, value.pair))  # fmt: skip
        floats = value.floats and self.apply(op, value, lambda x: np.clip(x, *ends))
        self.values[op.output] = replace(
            value, low=least, high=most, biased=None, function=function, pair=pair, floats=floats
        )

    def graph(self, inputs, outputs):
        """The Graph of all nodes so far."""
        return Graph(tuple(inputs), tuple(outputs), self._tensors, tuple(self._nodes), self._constants)

    def fresh(self, name):
        """An unused name like this one."""
        while name in self.values:
            name += "'"
        return name


def function_of(value):
    """The Function of a Real, or of a Pending that is a function of one tensor; otherwise None."""
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
    """``clamp`` limited to the clamp of a Pending."""
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
    """Whether a table changes no byte of a tensor."""
    return table.dtype.name == dtype and np.array_equal(table.view(np.uint8), np.arange(256))
