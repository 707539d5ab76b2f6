"""Operators that do nothing once a network is trained: another name for what there is."""

import onnx

from ..graph import Tensor

__all__ = ["cast", "dropout", "identity", "plain_cast"]


def identity(op, reading):
    """Identity."""
    reading.values[op.output] = op.value(0)


def dropout(op, reading):
    """Dropout, as it is while nothing is learned; nobody may read its mask."""
    op.take("ratio", 0.5, float)
    op.skip(1)  # the ratio of later versions
    op.take("seed", 0)
    if op.has(2) and op.constant(2, "training mode").array.any():
        raise op.refusal("it is one for training, which is not supported")
    reading.values[op.outputs[0]] = op.value(0)


def plain_cast(op):
    """Refuses what ONNX Runtime takes only for types that are not supported here."""
    op.require("saturate", 1)
    op.require("round_mode", "up", str)


def cast(op, reading):
    """Cast to the type that there is."""
    plain_cast(op)
    value = op.value(0)
    kind = value.dtype if isinstance(value, Tensor) else "float32"
    types = {"float32": onnx.TensorProto.FLOAT, "uint8": onnx.TensorProto.UINT8, "int8": onnx.TensorProto.INT8}
    if op.take("to", 0) != types[kind]:
        raise op.refusal(f"it changes the type of {kind}, which only QuantizeLinear and DequantizeLinear do")
    reading.values[op.output] = value
