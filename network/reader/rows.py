"""Convolutions and pools of one dimension of space: those of feature maps of one row."""

from dataclasses import replace

import onnx

from ..graph import Reshape
from .operator import Operator
from .reading import own_quantity
from .values import Constant

__all__ = ["in_one_row"]

#: What a dimension of one element has in front of an attribute's numbers; of ``pads`` behind it too.
_OF_ONE = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 0}


def in_one_row(reader, kernel=None):
    """A reader that takes feature maps of one dimension too: they, kernels and attributes are given another.

    Parameters
    ----------
    reader : callable
    kernel : int or None
        Which input is a kernel.
    """

    def read(op, reading):
        value = op.value(0)
        if isinstance(value, Constant) or len(op.shape_of(value)) != 3:
            reader(op, reading)
            return
        images, channels, length = op.shape_of(value)
        proto = onnx.NodeProto()
        proto.CopyFrom(op.proto)
        proto.name = op.name
        proto.input[0], proto.output[0] = (reading.fresh(f"{name}.row") for name in (op.input_name(0), op.output))
        _reshape(op, reading, value, (images, channels, 1, length), proto.input[0])
        weights = None if kernel is None else op.value(kernel)
        if isinstance(weights, Constant) and weights.array.ndim == 3:
            proto.input[kernel] = reading.fresh(f"{op.input_name(kernel)}.row")
            reading.values[proto.input[kernel]] = replace(weights, array=weights.array[:, :, None])
        for attribute in proto.attribute:
            if attribute.name in _OF_ONE:
                attribute.ints[:] = _widened(attribute.name, list(attribute.ints))
        inner = Operator(proto, reading)
        reader(inner, reading)
        inner.end()
        op.forget()
        made = reading.values[inner.output]
        *shape, _, length = op.shape_of(made)
        _reshape(op, reading, made, (*shape, length), op.output)

    return read


def _widened(name, numbers):
    half = len(numbers) // 2 if name == "pads" else len(numbers)
    parts = [part for part in (numbers[:half], numbers[half:]) if part]
    return [number for part in parts for number in (_OF_ONE[name], *part)]


def _reshape(op, reading, value, shape, output):
    node = Operator(onnx.helper.make_node(op.kind, [], [output], op.name), reading)
    reading.move(node, value, shape, lambda y, clamp: Reshape(shape), own_quantity(value))
