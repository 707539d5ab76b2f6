"""Blocks of well-known networks, quantised by ONNX Runtime's tools: every tensor is as ONNX Runtime has it.

Programs give the same, also where next to nothing fits shared memory. With LONG=1 whole networks, of the shapes that
come with the package onnx, and random weights.
"""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tilewright import network
from tilewright.golden import CONV_PRESETS
from tilewright.network.evaluation import evaluate
from tilewright.network.machine import Machine
from tilewright.network.models.quantiser import FloatModel, quantised
from tilewright.network.reader import read_model
from tilewright.network.rtl import measured, run_on
from tilewright.results import record
from tilewright.sim.session.core import open_accelerator

AROUND = {"pads": [1] * 4}
HALF = {"kernel_shape": [2, 2], "strides": [2, 2]}
#: Two with room for a few rows, a core that is small besides, and one whose boxes have whole blocks of channels.
MACHINES = ["default", Machine(smem_bytes=12 * 1024), Machine(CONV_PRESETS["unit"], 8 * 1024, 16, 20),
            Machine(CONV_PRESETS["ecp5"], 24 * 1024, unaligned=False)]  # fmt: skip


def fire(net):
    """SqueezeNet."""
    x = net.conv("x", 48, 64, 1)
    x = net.node("Concat", net.conv(x, 192, 48, 1), net.conv(x, 192, 48, 3, **AROUND), axis=1)
    return net.node("GlobalAveragePool", net.conv(x, 40, 384, 1))


def shuffle(net):
    """ShuffleNet."""
    x = net.conv("x", 112, 24, 1)
    for shape, axes in (([1, 4, 28, 24, 24], [0, 2, 1, 3, 4]), ([1, 112, 24, 24], None)):
        x = net.node("Reshape", x, net.constant(shape, np.int64))
        x = net.node("Transpose", x, perm=axes) if axes else x
    x = net.conv(x, 112, 112, 3, group=112, relu=False, strides=[2, 2], **AROUND)
    x = net.conv(x, 112, 112, 1, group=4, relu=False)
    return net.node("Relu", net.node("Concat", x, net.node("AveragePool", "x", **HALF), axis=1))


def inception(net):
    """Inception: kernels of one row or column, averages whose padding does not count."""
    deep = net.conv("x", 24, 48, 1)
    for kernel, pads in (((1, 7), [0, 3, 0, 3]), ((7, 1), [3, 0, 3, 0])):
        deep = net.conv(deep, 24, 24, kernel, pads=pads)
    mean = net.node("AveragePool", "x", kernel_shape=[3, 3], count_include_pad=0, **AROUND)
    most = net.node("MaxPool", "x", kernel_shape=[3, 3], **AROUND)
    return net.node("Concat", net.conv("x", 40, 48, 1), deep, net.conv(mean, 21, 48, 1), most, axis=1)


def dense(net):
    """DenseNet."""
    x, channels = "x", 20
    for _ in range(3):
        x = net.node("Concat", x, net.conv(net.conv(x, 32, channels, 1), 12, 32, 3, **AROUND), axis=1)
        channels += 12
    return net.node("AveragePool", net.conv(x, channels // 2, channels, 1), **HALF)


def inverted(net):
    """MobileNet, the second and third."""
    x = net.conv("x", 96, 16, 1)
    x = net.conv(net.conv(x, 96, 96, 3, group=96, **AROUND), 16, 96, 1, relu=False)
    return net.conv(net.node("Add", "x", x), 24, 16, 5, strides=[2, 2], pads=[1, 2, 2, 1])


def cardinality(net):
    """ResNeXt."""
    x = net.conv(net.conv("x", 128, 64, 1), 128, 128, 3, group=32, strides=[2, 2], **AROUND)
    x = net.node("Add", net.conv(x, 256, 128, 1, relu=False), net.conv("x", 256, 64, 1, relu=False, strides=[2, 2]))
    x = net.node("Flatten", net.node("GlobalAveragePool", net.node("Relu", x)))
    return net.node("Gemm", x, *net.weights(9, 256), transB=1)


def mixer(net):
    """MLP-Mixer: products along both dimensions of a matrix."""
    x = net.node("Reshape", net.conv("x", 64, 3, 8, strides=[8, 8], relu=False), net.constant([1, 64, 64], np.int64))
    across = net.node("MatMul", x, net.constant(net.noise(64, 80) / 2, np.float32))
    across = net.node("MatMul", net.node("Relu", across), net.constant(net.noise(80, 64) / 2, np.float32))
    x = net.node("Transpose", net.node("Add", x, across), perm=[0, 2, 1])
    return net.node("MatMul", x, net.constant(net.noise(64, 10), np.float32))


def larger(net):
    """What makes pixels of channels, as super-resolution does."""
    x = net.node("Reshape", net.conv("x", 9, 8, 3, **AROUND), net.constant([1, 1, 3, 3, 60, 50], np.int64))
    x = net.node("Transpose", x, perm=[0, 1, 4, 2, 5, 3])
    return net.node("Reshape", x, net.constant([1, 1, 180, 150], np.int64))


def keywords(net):
    """Sound: one dimension, and a window of all that is left."""
    x = net.conv("x", 24, 40, (1, 9), strides=[1, 2], pads=[0, 4, 0, 4])
    x = net.conv(net.conv(x, 24, 24, (1, 9), group=24, pads=[0, 4, 0, 4]), 32, 24, 1)
    return net.node("Flatten", net.node("AveragePool", x, kernel_shape=[1, 51]))


def curves(net):
    """What detectors and MobileNet's third put in place of Relu, and shares at the end."""
    x = net.node("LeakyRelu", net.conv("x", 20, 12, 3, relu=False, **AROUND), alpha=0.1)
    x = net.conv(x, 33, 20, 1, relu=False)
    x = net.conv(net.node("Mul", x, net.node("Sigmoid", x)), 24, 33, 3, relu=False, strides=[2, 2])
    x = net.node("Mul", x, net.node("HardSigmoid", x, alpha=1 / 6))
    x = net.node("Flatten", net.node("GlobalAveragePool", net.node("HardSwish", net.conv(x, 40, 24, 1, relu=False))))
    return net.node("Softmax", net.node("Gemm", x, *net.weights(9, 40), transB=1))


def pyramid(net):
    """What detectors do: half of the channels goes on, and a smaller map comes back in the size of a larger one."""
    x = net.node("Split", net.conv("x", 32, 12, 1), net.constant([12, 20], np.int64), axis=1, outputs=2)
    y = net.conv(net.conv(x, 12, 12, 3, **AROUND), 20, 12, 3, strides=[2, 2], **AROUND)
    factors = net.constant([1, 1, 2, 2], np.float32)
    y = net.node("Resize", y, net.constant([], np.float32), factors, mode="nearest")
    y = net.node("Add", y, f"{x}.1")
    return net.conv(net.node("Concat", x, y, axis=1), 10, 32, 1)


BLOCKS = {fire: (1, 64, 9, 9), shuffle: (1, 24, 24, 24), inception: (1, 48, 17, 19), dense: (1, 20, 24, 22),
          inverted: (2, 16, 28, 26), cardinality: (1, 64, 14, 14), mixer: (1, 3, 64, 64), larger: (1, 8, 60, 50),
          keywords: (1, 40, 1, 101), curves: (1, 12, 18, 17),
          pyramid: (1, 12, 16, 20)}  # fmt: skip


@pytest.mark.parametrize("form", ["QOperator", "QDQ"])
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.__name__)
def test_blocks(block, form, agree):
    shape, rng = BLOCKS[block], np.random.default_rng(3)
    net = FloatModel(rng, shape)
    samples = [{"x": rng.normal(0, 1, shape).astype(np.float32)} for _ in range(3)]
    graph, _ = agree(quantised(net.model(block(net)), samples[1:], form=form), samples[0])
    expected = evaluate(graph, samples[0])
    every = form == "QDQ"
    names = [node.output for node in graph.nodes] if every else None
    for number, machine in enumerate(MACHINES[:1] if every else MACHINES):
        found = network.compile(graph, machine, every_tensor=every).run(samples[0], names=names)
        for name, value in found.items():
            np.testing.assert_array_equal(value, expected[name], err_msg=f"{name} on {number}")


#: What is left out of them: nothing on integers does it.
LEFT_OUT = ("LRN", "Dropout")


def published(name, rng):
    """The model of floats of that name, with weights for those that it makes of zeros."""
    folder = Path(onnx.__file__).parent / "backend/test/data/light"
    graph = (model := onnx.load(folder / f"light_{name}.onnx")).graph
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    readers = {x: (node, place) for node in graph.node for place, x in enumerate(node.input)}
    nodes, renamed = [], {}
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            shape = constants[node.input[0]]
            reader, place = readers[node.output[0]]
            value = rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
            if reader.op_type in ("BatchNormalization", "Mul") and place in (1, 4):
                value = rng.uniform(0.5, 1.5, shape)
            constants[node.output[0]] = value.astype(np.float32)
        elif node.op_type in LEFT_OUT:
            renamed[node.output[0]] = renamed.get(node.input[0], node.input[0])
        else:
            node.op_type = "Add" if node.op_type == "Sum" else node.op_type
            node.input[:] = [renamed.get(x, x) for x in node.input]
            nodes.append(node)
    used = {x for node in nodes for x in node.input}
    given = [value for value in graph.input if value.name not in constants]
    made = [onnx.helper.make_empty_tensor_value_info(renamed.get(value.name, value.name)) for value in graph.output]
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items() if name in used]
    plain = onnx.helper.make_graph(nodes, name, given, made, tensors)
    plain = onnx.helper.make_model(plain, opset_imports=model.opset_import, ir_version=8)
    return onnx.version_converter.convert_version(plain, 13)


@pytest.fixture(scope="module")
def session():
    with open_accelerator("default") as session:
        yield session


def quantised_published(name):
    """The model of integers, and an input."""
    rng = np.random.default_rng(5)
    model = published(name, rng)
    (x,) = (value.name for value in model.graph.input)
    samples = [{x: rng.normal(0, 1, (1, 3, 224, 224)).astype(np.float32)} for _ in range(2)]
    return quantised(model, samples[1:]), samples[0]


@pytest.mark.long
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "inception_v1", "inception_v2", "resnet50", "zfnet512"])
def test_published_networks(name, agree):
    model, inputs = quantised_published(name)
    graph, _ = agree(model, inputs)
    compiled = network.compile(graph, "default")
    print(compiled.explanation)
    expected = evaluate(graph, inputs)
    for output, value in compiled.run(inputs).items():
        np.testing.assert_array_equal(value, expected[output], err_msg=output)


@pytest.mark.long
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_published_networks_on_hardware(name, session):
    model, inputs = quantised_published(name)
    graph = read_model(model)
    compiled = network.compile(graph, "default")
    data, run = run_on(session, compiled, compiled.memory(inputs))
    print(measured(compiled, run))
    np.testing.assert_array_equal(data, compiled.run_golden(inputs))
    expected = evaluate(graph, inputs)
    for output, value in compiled.tensors(data, graph.outputs).items():
        np.testing.assert_array_equal(value, expected[output], err_msg=output)
    macs = sum(map(graph.macs, graph.nodes))
    record(
        f"rtl-{name}", cycles=run.cycles, macs=macs, share=round(macs / compiled.plan.machine.conv.peak / run.cycles, 4)
    )
