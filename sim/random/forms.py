"""The same model as another exporter writes it: constants, names, and what stands between operators."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["in_another_form"]

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
        """What gives the same floats again."""
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
