"""The same model with operators on floats between DequantizeLinear and QuantizeLinear, as many tools write it."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["as_qdq"]

#: Operators on integers: what the one on floats is called; for each of its inputs the number of ours, which scale and
#: zero point follow; the number of the scale of the result.
_KINDS = {
    "QLinearConv": ("Conv", (0, 3), 6),
    "QLinearMatMul": ("MatMul", (0, 3), 6),
    "QGemm": ("Gemm", (0, 3), 7),
    "QLinearAdd": ("Add", (0, 3), 6),
    "QLinearMul": ("Mul", (0, 3), 6),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,), 3),
    "QLinearAveragePool": ("AveragePool", (0,), 3),
    "QLinearLeakyRelu": ("LeakyRelu", (0,), 3),
    "QLinearSigmoid": ("Sigmoid", (0,), 3),
}
#: Where the bias is, of those that have one.
_BIAS = {"QLinearConv": 8, "QGemm": 6}
_BYTES = ("MaxPool", "Pad", "Concat", "Flatten", "Reshape", "Transpose", "Slice", "Resize")


def as_qdq(model):
    """A model as ``draw_network`` draws it, in the other form; tensors of integers keep their names.

    What moves bytes alone is given any scale, and a zero point of 3.
    """
    return _Rewriter(model).model


class _Rewriter:
    def __init__(self, model):
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self._arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self._types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
        self._names = 0
        del self.model.graph.node[:]
        for node in model.graph.node:
            self._rewrite(node)

    def _rewrite(self, node):
        inputs = list(node.input)
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        if node.op_type in _KINDS:
            kind, operands, result = _KINDS[node.op_type]
            floats = []
            for index in operands:
                axis = self._axis(node.op_type, inputs[index], attributes)
                floats.append(self._floats(*inputs[index : index + 3], axis=axis))
            bias = _BIAS.get(node.op_type)
            if bias is not None and len(inputs) > bias and inputs[bias]:
                floats.append(self._bias(inputs, inputs[bias]))
            self._emit(kind, floats, node, attributes, inputs[result : result + 2])
        elif node.op_type == "QLinearConcat":
            floats = [self._floats(*inputs[i : i + 3]) for i in range(2, len(inputs), 3)]
            self._emit("Concat", floats, node, attributes, inputs[:2])
        elif node.op_type in _BYTES:
            self._rewrite_bytes(node, inputs, attributes)
        else:
            self.model.graph.node.append(node)
        self._types[node.output[0]] = self._type(node)

    def _type(self, node):
        """The type of the result: that of its zero point, or of the first input."""
        if node.op_type == "QuantizeLinear":
            return helper.np_dtype_to_tensor_dtype(self._arrays[node.input[2]].dtype)
        return next((self._types[name] for name in node.input if name in self._types), None)

    def _rewrite_bytes(self, node, inputs, attributes):
        dtype = helper.tensor_dtype_to_np_dtype(self._types[inputs[0]])
        scale, zero = np.float32(0.1), np.array(3, dtype)
        quantity = [self._constant(scale), self._constant(zero)]
        floats = [self._floats(name, *quantity) if name in self._types else name for name in inputs]
        if node.op_type == "Pad":
            value = self._arrays[inputs[2]] if len(inputs) > 2 else np.zeros((), dtype)
            floats[2:] = [self._constant((value.astype(np.float32) - 3) * scale)]
        self._emit(node.op_type, floats, node, attributes, quantity)

    def _emit(self, kind, floats, node, attributes, quantity):
        """The operator on floats, and QuantizeLinear behind it."""
        self._names += 1
        result = f"{node.output[0]}.float"
        self.model.graph.node.append(helper.make_node(kind, floats, [result], node.name, **attributes))
        self.model.graph.node.append(
            helper.make_node("QuantizeLinear", [result, *quantity], [node.output[0]], f"{node.name}.quantise")
        )

    def _floats(self, name, scale, zero, axis=None):
        """The name of the floats that integers mean."""
        self._names += 1
        result = f"{name}.float{self._names}"
        attributes = {"axis": axis} if self._arrays[scale].size > 1 else {}
        self.model.graph.node.append(
            helper.make_node("DequantizeLinear", [name, scale, zero], [result], result, **attributes)
        )
        return result

    def _bias(self, inputs, name):
        """The same of a bias, in units of both scales."""
        scale = self._arrays[inputs[1]] * self._arrays[inputs[4]]
        return self._floats(name, self._constant(scale), self._constant(np.zeros(scale.shape, np.int32)), axis=0)

    def _axis(self, kind, name, attributes):
        """The dimension of weights along which scales may differ."""
        if kind == "QLinearConv" or attributes.get("transB"):
            return 0
        return self._arrays[name].ndim - 1 if name in self._arrays else None

    def _constant(self, value):
        self._names += 1
        name = f"q{self._names}"
        self._arrays[name] = np.asarray(value)
        self.model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name
