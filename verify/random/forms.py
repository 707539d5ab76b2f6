"""The same model as another exporter writes it: constants, names, and what stands between operators."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["as_qdq", "in_another_form"]

#: Biases that a float32 holds exactly, in whatever unit.
_EXACT = 1 << 22


def in_another_form(model, rng):
    """A model that ``as_qdq`` made, in a form that is drawn; tensors of integers keep their names and elements."""
    return _Writer(model, rng).model


class _Writer:
    def __init__(self, model, rng):
        self.model, self._rng, self._names, self._nodes = onnx.ModelProto(), rng, 0, []
        self.model.CopyFrom(model)
        graph = self.model.graph
        self._arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self._makers = {name: node for node in model.graph.node for name in node.output}
        values = onnx.shape_inference.infer_shapes(model).graph.value_info
        self._floats = {
            value.name: len(value.type.tensor_type.shape.dim)
            for value in values
            if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT and not self._of_constants(value.name)
        }
        for node in model.graph.node:
            self._write(node)
        del graph.node[:], graph.initializer[:]
        for name, value in self._arrays.items():
            self._give(name, value)
        graph.node.extend(self._nodes)
        naming = self._rng.integers(3)
        for number, node in enumerate(graph.node):
            node.name = ["", node.name, f"n{number % 3}"][naming]

    def _drawn(self, share=0.5):
        return self._rng.random() < share

    def _of_constants(self, name):
        return all(each in self._arrays for each in self._makers[name].input)

    def _constant(self, value):
        self._names += 1
        self._arrays[f"form{self._names}"] = np.asarray(value)
        return f"form{self._names}"

    def _add(self, kind, *inputs, output=None, **attributes):
        self._names += 1
        output = output or f"form{self._names}"
        self._nodes.append(helper.make_node(kind, inputs, [output], f"{kind}{self._names}", **attributes))
        return output

    def _give(self, name, value):
        """A constant as a node, or beside them, perhaps as an input that may be given."""
        tensor = numpy_helper.from_array(value, name)
        if self._drawn(0.3):
            self.model.graph.node.append(helper.make_node("Constant", [], [name], value=tensor))
            return
        self.model.graph.initializer.append(tensor)
        if self._drawn(0.2):
            given = helper.make_tensor_value_info(name, tensor.data_type, value.shape)
            self.model.graph.input.append(given)

    def _write(self, node):
        inputs, output = list(node.input), node.output[0]
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        changed = output in self._floats and self._drawn(0.35)
        self._names += 1
        made = f"form{self._names}" if changed else output
        if node.op_type == "DequantizeLinear":
            inputs = self._of_floats(inputs, attributes) if inputs[0] in self._arrays else self._twice(inputs)
            array = self._arrays.get(inputs[2])
            inputs = inputs[:2] if array is not None and not array.any() and self._drawn() else inputs
        elif node.op_type in ("Conv", "Gemm") and len(inputs) > 2 and self._drawn():
            inputs[2] = self._bias(inputs[2])
        if node.op_type == "Gemm" and self._drawn():
            self._product(inputs, attributes.get("transB"), made)
        else:
            self._add(node.op_type, *inputs, output=made, **attributes)
        if changed:
            self._moved(made, self._floats[output], output)

    def _of_floats(self, inputs, attributes):
        """Weights as floats that are quantised in the model; their axis perhaps counted from the end."""
        array, scale, zero = (self._arrays[name] for name in inputs)
        sizes = [1] * array.ndim
        if scale.size > 1:
            sizes[attributes["axis"]] = -1
        if array.dtype.itemsize == 1 and self._drawn():
            zeros = zero.astype(np.int32).reshape(sizes)
            floats = (array.astype(np.int32) - zeros).astype(np.float32) * scale.reshape(sizes)
            floats = self._constant(floats.reshape(array.shape))
            inputs = [self._add("QuantizeLinear", floats, *inputs[1:], **attributes), *inputs[1:]]
        if scale.size > 1 and self._drawn():
            attributes["axis"] -= array.ndim
        return inputs

    def _twice(self, inputs):
        """Integers that are made floats and integers again."""
        if not self._drawn(0.2):
            return inputs
        floats = self._add("DequantizeLinear", *inputs)
        return [self._add("QuantizeLinear", floats, *inputs[1:]), *inputs[1:]]

    def _bias(self, name):
        counts, scale = (self._arrays[each] for each in self._makers[name].input[:2])
        return self._constant(counts.astype(np.float32) * scale) if np.abs(counts / _EXACT).max() < 1 else name

    def _product(self, inputs, across, output):
        """A Gemm as a MatMul, and an Add where there is a bias."""
        x, weights, *bias = inputs
        weights = self._add("Transpose", weights, perm=[1, 0]) if across else weights
        y = self._add("MatMul", x, weights, output=None if bias else output)
        if bias:
            self._add("Add", *(y, *bias)[:: self._rng.choice([1, -1])], output=output)

    def _moved(self, x, rank, output):
        """Nodes that return the same floats."""
        axis, order = int(self._rng.integers(-rank - 1, rank + 1)), self._rng.permutation(rank)
        axes = self._constant(np.int64([axis]))
        ways = {
            "Identity": lambda: self._add("Identity", x, output=output),
            "Dropout": lambda: self._add("Dropout", x, output=output),
            "Cast": lambda: self._add("Cast", x, output=output, to=onnx.TensorProto.FLOAT),
            "Squeeze": lambda: self._add("Squeeze", self._add("Unsqueeze", x, axes), axes, output=output),
            "Transpose": lambda: self._add(
                "Transpose", self._add("Transpose", x, perm=order.tolist()), output=output,
                perm=np.argsort(order).tolist()),
            "Reshape": lambda: self._add(
                "Reshape", self._add("Flatten", x, axis=axis % (rank + 1)), self._add("Shape", x), output=output),
        }  # fmt: skip
        ways[str(self._rng.choice(list(ways)))]()


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
    "QLinearSoftmax": ("Softmax", (0,), 3),
}
#: Where the bias is, of those that have one.
_BIAS = {"QLinearConv": 8, "QGemm": 6}
_BYTES = ("MaxPool", "Pad", "Concat", "Flatten", "Reshape", "Transpose", "Slice", "Resize")


def as_qdq(model):
    """A model as ``draw_network`` draws it, in the other form; tensors of integers keep their names.

    Operators that only move bytes get any scale, and a zero point of 3.
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
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute if each.name != "opset"}
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
        """The type of the result: the type of its zero point, or of the first input."""
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
        """The operator on floats, followed by QuantizeLinear."""
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
