"""Operators that do nothing once a network is trained: another name for what there is."""

import onnx

from ..graph import Tensor

__all__ = ["cast", "dropout", "identity"]


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


def cast(op, reading):
    """Cast to the type that there is."""
    op.require("saturate", 1)  # as ONNX Runtime, which takes others for types alone that are not supported
    op.take("round_mode", "up", str)  # of such types too
    value = op.value(0)
    kind = value.dtype if isinstance(value, Tensor) else "float32"
    types = {"float32": onnx.TensorProto.FLOAT, "uint8": onnx.TensorProto.UINT8, "int8": onnx.TensorProto.INT8}
    if op.take("to", 0) != types[kind]:
        raise op.refusal(f"it changes the type of {kind}, which only QuantizeLinear and DequantizeLinear do")
    reading.values[op.output] = value
