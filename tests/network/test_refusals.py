"""What is not supported, or makes no sense, is one sentence that names node and operator, before anything runs."""

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.network import refusal
from tilewright.network import ModelError
from tilewright.network.graph import node_error
from tilewright.network.reader import read_model
from tilewright.verify.random.model import MICROSOFT

#: The end of sentences about floats.
KERNEL = ": elsewhere it would need a kernel of the processing engine, and there is none"
NEXT = ": quantise it first (docs/quantise.md)"
U8, S8, F32 = TensorProto.UINT8, TensorProto.INT8, TensorProto.FLOAT
S, Z, ZERO = np.float32(0.1), np.uint8(3), np.int8(0)
W = np.ones((4, 4, 3, 3), np.int8)
X = (1, 4, 8, 8)


def model(*nodes, shape=X, kind=U8, outputs=("y",)):
    """Nodes (operator, inputs, attributes); an input is the name of a tensor or an array; the last one gives y."""
    made, constants = [], []
    for i, (operator, inputs, attributes) in enumerate(nodes):
        names = []
        for value in inputs:
            if not isinstance(value, str):
                constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(constants)}"))
            names.append(value if isinstance(value, str) else constants[-1].name)
        domain = attributes.pop("domain", MICROSOFT if operator in CONTRIB else "")
        output = "y" if i == len(nodes) - 1 else f"t{i}"
        made.append(helper.make_node(operator, names, [output], f"n{i}", domain=domain, **attributes))
    graph = helper.make_graph(
        made, "refused", [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info(name, U8, None) for name in outputs], constants,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)])


CONTRIB = ("QLinearAdd", "QLinearMul", "QGemm", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearConcat")


def conv(*, x="x", w=W, sx=S, zx=Z, sw=S, zw=ZERO, sy=S, zy=Z, bias=(), **attributes):
    return "QLinearConv", [x, sx, zx, w, sw, zw, sy, zy, *bias], attributes


def node(operator, *inputs, **attributes):
    return operator, list(inputs), attributes


ADD = [S, Z, S, Z]
REFUSED = [
    ([node("LRN", "x", size=3)], "node 'n0' (LRN): the operator is only at the end of a network supported" + KERNEL),
    ([node("Relu", "x", domain="a.b")], "node 'n0' (Relu): the operator of a.b is not supported"),
    ([conv(), node("LRN", "t0", size=3)],
     "node 'n1' (LRN): the operator is only at the end of a network supported" + KERNEL),
    ([conv(foo=1)], "node 'n0' (QLinearConv): its attribute 'foo' does not exist in opset 21"),
    ([conv(strides=[0, 1])],
     "node 'n0' (QLinearConv): its attribute 'strides' is [0, 1], and must be 2 numbers from 1 on"),
    ([conv(strides=1)], "node 'n0' (QLinearConv): its attribute 'strides' is not of the right type"),
    ([conv(pads=[0, 0, -1, 0])],
     "node 'n0' (QLinearConv): its attribute 'pads' is [0, 0, -1, 0], and must be 4 numbers from 0 on"),
    ([conv(auto_pad="SOME")], "node 'n0' (QLinearConv): its attribute 'auto_pad' is 'SOME', which is not supported"),
    ([conv(auto_pad="VALID", pads=[1, 0, 0, 0])], "node 'n0' (QLinearConv): it has pads and auto_pad 'VALID'"),
    ([conv(pads=[0, 0, 2**40, 0])],
     "node 'n0' (QLinearConv): its feature map of 8 has padding of 1099511627776: 1,048,576 is the most"),
    ([conv(dilations=[4, 4])],
     "node 'n0' (QLinearConv): its window of 9 is larger than the feature map of 8 with padding of 0"),
    ([conv(group=3)], "node 'n0' (QLinearConv): 4 channels in 3 groups do not fit a kernel of [4, 4, 3, 3]"),
    ([conv(kernel_shape=[3, 1])],
     "node 'n0' (QLinearConv): its attribute 'kernel_shape' is not that of its kernel, [3, 3]"),
    ([conv(w=W[..., 0])],
     "node 'n0' (QLinearConv): its input is [1, 4, 8, 8] and its kernel [4, 4, 3]: only two dimensions of space are "
     "supported"),
    ([node("Reshape", "x", np.int64([1, 4, 64])), conv(x="t0", w=W[..., 0], strides=[1, 1])],
     "node 'n1' (QLinearConv): its attribute 'strides' is [1, 1, 1], and must be 2 numbers from 1 on"),
    ([conv(w=W[..., :0])], "node 'n0' (QLinearConv): its constant operand has no elements"),
    ([conv(w=W.astype(np.int16))], "node 'n0' (QLinearConv): its operand 'c2' is int16, which is not supported"),
    ([conv(w="x")], "node 'n0' (QLinearConv): its operand 'x' is computed, and only a constant is supported"),
    ([conv(x=W)], "node 'n0' (QLinearConv): its input 'c0' is a constant, which is not supported"),
    ([conv(x="nope")], "node 'n0' (QLinearConv): its input 'nope' is given by nothing before it"),
    ([conv(sx=np.float32(0))], "node 'n0' (QLinearConv): its scale 'c0' is 0.0: it must be positive and finite"),
    ([conv(sw=np.float32([1, 2]))], "node 'n0' (QLinearConv): it has 2 scales for 4 channels"),
    ([conv(sx=np.float32([1, 2]))],
     "node 'n0' (QLinearConv): its scale 'c0' has 2 elements, and only one is supported"),
    ([conv(sw=np.float32(1e30), sx=np.float32(1e30))],
     "node 'n0' (QLinearConv): its scales give a factor that binary32 does not hold"),
    ([conv(zx=np.int8(3))], "node 'n0' (QLinearConv): its zero point 'c1' is int8, not uint8"),
    ([conv(zy=np.uint16(3))], "node 'n0' (QLinearConv): its zero point 'c6' is uint16, which is not supported"),
    ([conv(bias=[np.zeros(4, np.float32)])], "node 'n0' (QLinearConv): its bias 'c7' is float32, not int32"),
    ([conv(bias=[np.zeros(3, np.int32)])], "node 'n0' (QLinearConv): it has 3 biases for 4 channels"),
    ([node("QLinearConv", "x", S, Z)], "node 'n0' (QLinearConv): it lacks input 3"),
    ([node("Transpose", "x", perm=[0, 1, 3, 2]), node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2]),
      node("QLinearAdd", "t0", S, Z, "t1", *ADD)],
     "node 'n2' (QLinearAdd): its inputs are [1, 4, 8, 8] and [1, 4, 3, 3], which do not fit"),
    ([node("QLinearAdd", "x", S, Z, np.uint8([1, 2, 3, 4, 5, 6, 7]), *ADD)],
     "node 'n0' (QLinearAdd): its inputs are [1, 4, 8, 8] and [7], which do not fit"),
    ([node("QLinearAdd", np.uint8([1]), S, Z, np.uint8([1]), *ADD)],
     "node 'n0' (QLinearAdd): both of its inputs are constants, which is not supported"),
    ([conv(), node("QLinearMul", "x", S, Z, "t0", *ADD)],
     "node 'n1' (QLinearMul): its inputs are [1, 4, 8, 8] and [1, 4, 6, 6], which do not fit"),
    ([node("QGemm", "x", S, Z, W[0, 0], S, np.int8(0), "", S, Z)],
     "node 'n0' (QGemm): its input is [1, 4, 8, 8], and only a matrix is supported"),
    ([node("Flatten", "x"), node("QGemm", "t0", S, Z, np.ones((256, 2), np.int8), S, np.int8(0), "", S, Z, alpha=2.0)],
     "node 'n1' (QGemm): its attribute 'alpha' is 2.0, and only 1.0 is supported"),
    ([node("Flatten", "x"), node("QGemm", "t0", S, Z, np.ones((25, 2), np.int8), S, np.int8(0), "", S, Z)],
     "node 'n1' (QGemm): its input is [1, 256], and its constant operand has sums of 25"),
    ([node("QLinearMatMul", "x", S, Z, np.ones((2, 8, 5), np.int8), S, np.int8(0), S, Z)],
     "node 'n0' (QLinearMatMul): its inputs are [1, 4, 8, 8] and [2, 8, 5], which do not fit"),
    ([node("QLinearAveragePool", "x", *ADD, kernel_shape=[3])],
     "node 'n0' (QLinearAveragePool): its attribute 'kernel_shape' is [3], and must be 2 numbers from 1 on"),
    ([node("QLinearAveragePool", "x", *ADD, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, count_include_pad=1)],
     "node 'n0' (QLinearAveragePool): count_include_pad with ceil_mode is not supported where windows reach out"),
    ([node("QLinearAveragePool", "x", *ADD, kernel_shape=[1, 1], pads=[1, 0, 0, 0])],
     "node 'n0' (QLinearAveragePool): its padding [1, 0, 0, 0] is not smaller than its window [1, 1]"),
    ([node("DequantizeLinear", "x", S, Z),
      node("AveragePool", "t0", kernel_shape=[2, 1], dilations=[9, 1], pads=[1, 0, 1, 0])],
     "node 'n1' (AveragePool): a window lies wholly in padding"),
    ([conv(auto_pad="SAME_LOWER", dilations=[1, 2])],
     "node 'n0' (QLinearConv): auto_pad 'SAME_LOWER' is not supported with dilations"),
    ([node("QLinearGlobalAveragePool", "x", *ADD, channels_last=1)],
     "node 'n0' (QLinearGlobalAveragePool): its attribute 'channels_last' is 1, and only 0 is supported"),
    ([node("MaxPool", "x", kernel_shape=[1, 1], strides=[3, 3], auto_pad="SAME_UPPER")],
     "node 'n0' (MaxPool): auto_pad 'SAME_UPPER' is not supported where a stride leaves elements out at the end"),
    ([node("Pad", "x", np.int64([0] * 8), mode="mirror")],
     "node 'n0' (Pad): its attribute 'mode' is 'mirror', which is not supported"),
    ([node("Pad", "x", np.int64([0, 0, 8, 0, 0, 0, 0, 0]), mode="reflect")],
     "node 'n0' (Pad): its padding is not smaller than its input, [1, 4, 8, 8], which is not supported"),
    ([node("Pad", "x", np.int64([0, 0, -1, 0, 0, 0, 0, 0]))],
     "node 'n0' (Pad): its padding is [0, 0, -1, 0, 0, 0, 0, 0]: less than 0 is not supported"),
    ([node("Pad", "x", np.int64([0] * 6))], "node 'n0' (Pad): it has 6 widths of padding for 4 of 4 dimensions"),
    ([node("Concat", "x", "x", axis=[1])], "node 'n0' (Concat): its attribute 'axis' is [1]"),
    ([node("Concat", "x", "x", axis=4)], "node 'n0' (Concat): it has no dimension 4: its input has 4"),
    ([node("Flatten", "x"), node("Concat", "x", "t0", axis=0)],
     "node 'n1' (Concat): its inputs [1, 4, 8, 8], [1, 256] do not fit along 0"),
    ([node("QLinearConcat", S, Z, "x", S, axis=0)],
     "node 'n0' (QLinearConcat): it has 4 inputs, and must have 2 and 3 for each tensor"),
    ([node("Flatten", "x", axis=5)], "node 'n0' (Flatten): its attribute 'axis' is 5, and its input [1, 4, 8, 8]"),
    ([node("Reshape", "x", np.int64([3, -1]))],
     "node 'n0' (Reshape): its input is [1, 4, 8, 8], which cannot be [3, -1]"),
    ([node("Reshape", "x", "x")], "node 'n0' (Reshape): its shape 'x' is computed, and only a constant is supported"),
    ([node("Transpose", "x", perm=[0, 1])],
     "node 'n0' (Transpose): its attribute 'perm' is [0, 1], and its input has 4 dimensions"),
    ([node("QuantizeLinear", "x", S, Z)], "node 'n0' (QuantizeLinear): its input 'x' is uint8, which is not supported"),
    ([node("DequantizeLinear", "x", np.float32([1, 2, 3, 4]), np.zeros(4, np.uint8))],
     "node 'n0' (DequantizeLinear): its zero point has 4 elements, and only one is supported"),
    ([node("DequantizeLinear", "x", S, Z), node("Conv", "t0", W.astype(np.float32))],
     "node 'n1' (Conv): its operand 'c2' is float32, not the DequantizeLinear of integers" + NEXT),
    ([node("GlobalAveragePool", "x")],
     "node 'n0' (GlobalAveragePool): its input 'x' is uint8, not the DequantizeLinear of integers"),
    ([node("Pad", "x", np.int64([0, 0, 0, 0, 0, 0, 2**40, 0]))],
     "node 'n0' (Pad): its output 'y' would be [1, 4, 1099511627784, 8], more than 2,147,483,648 elements"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_refused(nodes, sentence):
    assert refusal(model(*((kind, inputs, dict(attributes)) for kind, inputs, attributes in nodes))) == sentence


RELU = ("Clip", ["x"], {})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"shape": (4, "N")}, "dimension 1 of input 'x' is 'N': only fixed sizes are supported"),
        ({"shape": ("N",)}, "dimension 0 of input 'x' is 'N': only fixed sizes are supported"),
        ({"shape": (4, None)}, "dimension 1 of input 'x' is -1: only fixed sizes are supported"),
        ({"shape": (0, 4)}, "dimension 0 of input 'x' is 0: only fixed sizes are supported"),
        ({"shape": None}, "input 'x' has no shape"),
        ({"kind": TensorProto.INT16}, "input 'x' is int16, which is not supported"),
        ({"outputs": ("nope",)}, "output 'nope' is given by nothing"),
        ({"outputs": ()}, "the model has no outputs"),
    ],
)
def test_ends(options, sentence):
    assert refusal(model(RELU, **options)) == sentence


def test_a_name_that_is_there_already():
    twice = model(("Flatten", ["x"], {}), ("Flatten", ["x"], {}))
    twice.graph.node[0].output[0] = "y"
    assert refusal(twice) == "node 'n1' (Flatten): its output 'y' is there already"


def test_a_node_without_a_name_is_called_as_its_output():
    nameless = model(("LRN", ["x"], {"size": 3}))
    nameless.graph.node[0].name = ""
    assert refusal(nameless) == "node 'y' (LRN): the operator is only at the end of a network supported" + KERNEL


def test_one_form_of_sentences_about_nodes():
    """Only ``node_error`` writes it; names in quotation marks."""
    folder = Path(__file__).resolve().parents[2] / "network"
    found = {path.name for path in folder.rglob("*.py") if re.search(r"[\"']node \{", path.read_text(encoding="utf-8"))}
    assert found == {"graph.py"}
    assert str(node_error("k", "Add", "it is wrong")) == "node 'k' (Add): it is wrong"


@pytest.mark.parametrize("nodes", [
    [node("Conv", "x", W.astype(np.float32))], [node("Relu", "x"), node("Conv", "t0", W.astype(np.float32))],
    [node("GlobalAveragePool", "x")], [node("Relu", "x"), node("Add", "t0", "x")],
    [node("MaxPool", "x", kernel_shape=[2, 2])],
    [node("Sigmoid", "x")], [node("Softmax", "x")], [node("MatMul", "x", np.ones((8, 3), np.float32))],
], ids=lambda nodes: "-".join(kind for kind, *_ in nodes))  # fmt: skip
def test_models_of_floats_name_the_next_step(nodes):
    with pytest.raises(ModelError, match=r" is float32, .*: quantise it first \(docs/quantise\.md\)$"):
        read_model(model(*((kind, inputs, dict(attributes)) for kind, inputs, attributes in nodes), kind=F32))
