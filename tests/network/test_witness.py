"""ONNX Runtime as a witness: where it is none it says so, with how many values that concerns."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.errors import HostError
from tilewright.network import ModelError, evaluate, witness
from tilewright.network.reader import read_model
from tilewright.network.witness import Witness, run_witness
from tilewright.tools.cli.main import main
from tilewright.tools.cli.run import write_arrays

SHAPE = (1, 8, 8, 8)
TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


def convolutions(kind, *, outputs=("y2",), shared=False, relu=False):
    """Two convolutions as exporters write them, y1 and y2; weights of 8 bits, with one zero point or each its own."""
    generator = np.random.default_rng(3)
    constants = {"s": np.float32(0.05), "z": kind(3), "sw": np.float32(0.01), "zw1": np.int8(0), "zw2": np.int8(0)}
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xd"])]
    for number, (taken, made) in enumerate((("xd", "y1"), ("y1d", "y2")), 1):
        constants[f"w{number}"] = generator.integers(-127, 128, (8, 8, 3, 3), dtype=np.int8)
        zero = "zw1" if shared else f"zw{number}"
        nodes += [
            helper.make_node("DequantizeLinear", [f"w{number}", "sw", zero], [f"wd{number}"]),
            helper.make_node("Conv", [taken, f"wd{number}"], [f"c{number}"], pads=[1] * 4),
            helper.make_node("QuantizeLinear", [f"r{number}" if relu else f"c{number}", "s", "z"], [made]),
            helper.make_node("DequantizeLinear", [made, "s", "z"], [f"{made}d"]),
        ]  # fmt: skip
        if relu:
            nodes.insert(-2, helper.make_node("Relu", [f"c{number}"], [f"r{number}"]))
    graph = helper.make_graph(
        nodes[:-1], "two", [helper.make_tensor_value_info("x", TYPES[kind], SHAPE)],
        [helper.make_tensor_value_info(name, TYPES[kind], SHAPE) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def drawn(kind):
    """An input."""
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    return {"x": np.random.default_rng(4).integers(low, high, SHAPE, dtype=kind, endpoint=True)}


@pytest.mark.parametrize("exact", [True, False], ids=["with VNNI", "without"])
@pytest.mark.parametrize("outputs", [("y2",), ("y2", "y1")], ids=["an output", "a second reader"])
@pytest.mark.parametrize("shared", [False, True], ids=["own zero points", "a shared zero point"])
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_it_is_exact_or_says_where_not(monkeypatch, kind, shared, outputs, exact):
    """Whatever differs is among the tensors that it names, or follows from them."""
    if exact and not witness.has_exact_kernels():
        pytest.skip("the processor has no VNNI")
    monkeypatch.setattr(witness, "has_exact_kernels", lambda: exact)
    model = convolutions(kind, outputs=outputs, shared=shared)
    graph, inputs = read_model(model), drawn(kind)
    expected = evaluate(graph, inputs)
    for names in (graph.outputs, [node.output for node in graph.nodes]):
        seen = Witness(model, graph, names)
        differ = {name for name, value in seen.run(inputs).items() if (value != expected[name]).any()}
        assert not differ or seen.floats
        if exact or kind is np.uint8:
            assert not differ and not seen.floats and not seen.reservation
        else:
            assert f"computes {len(seen.floats)} of 2 tensors in floats, {512 * len(seen.floats):,} values" in (
                seen.reservation
            )


def test_every_tensor_has_the_values_of_the_outputs():
    """To ask for a tensor once made ONNX Runtime compute it, and what follows, in floats."""
    model, inputs = convolutions(np.int8), drawn(np.int8)
    graph = read_model(model)
    try:
        alone, all_of_them = (run_witness(model, graph, inputs, names) for names in (["y2"], ["y1", "y2"]))
    except HostError as error:
        pytest.skip(str(error))
    if not witness.has_exact_kernels():
        pytest.skip("the processor has no VNNI")
    assert (alone["y2"] == all_of_them["y2"]).all()
    assert (all_of_them["y1"] == evaluate(graph, inputs)["y1"]).all()


def test_a_product_that_is_rounded_behind_another_operator_is_said(tmp_path, capsys):
    """ONNX Runtime does not fuse a convolution with a QuantizeLinear after a Relu that clamps numbers."""
    model = convolutions(np.uint8, relu=True)
    seen = Witness(model, read_model(model), ["y1", "y2"])
    assert set(seen.floats) >= {"y1", "y2"}
    onnx.save(model, tmp_path / "m.onnx")
    write_arrays(tmp_path / "x.npz", drawn(np.uint8))
    run = ["run", str(tmp_path / "m.onnx"), "--input", str(tmp_path / "x.npz"), "--on", "ort"]
    assert main(run) == 0
    assert "values, which may be one off, as may what follows from them: " in capsys.readouterr().out
    assert main([*run, "--every-tensor", "--out", str(tmp_path / "y.npz")]) == 0
    said = capsys.readouterr().out
    assert all(f"{name}: computed in floats, uint8 [1, 8, 8, 8]" in said for name in ("y1", "y2"))


def test_saturation_is_said_with_its_values(monkeypatch):
    """Of int8 activations between integers there is no exact kernel without VNNI."""
    monkeypatch.setattr(witness, "has_exact_kernels", lambda: False)
    generator = np.random.default_rng(5)
    weight = generator.integers(-127, 128, (8, 8, 1, 1), dtype=np.int8)
    constants = [np.float32(0.05), np.int8(1), weight, np.float32(0.01), np.int8(0), np.float32(0.05), np.int8(1)]
    names = [f"c{number}" for number in range(len(constants))]
    graph = helper.make_graph(
        [helper.make_node("QLinearConv", ["x", *names], ["y"])], "one",
        [helper.make_tensor_value_info("x", TensorProto.INT8, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.INT8, SHAPE)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in zip(names, constants, strict=True)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with pytest.raises(HostError, match=r" 1 layers with 512 values may saturate$"):
        Witness(model, read_model(model), ["y"])


def test_products_of_computed_matrices_may_saturate(monkeypatch):
    """Exact kernels have constant weights: without VNNI all products by a computed int8 matrix are in doubt."""
    monkeypatch.setattr(witness, "has_exact_kernels", lambda: False)
    constants = {"s": np.float32(0.05), "u": np.uint8(9), "i": np.int8(-3)}
    graph = helper.make_graph(
        [helper.make_node("QLinearMatMul", ["x", "s", "u", "k", "s", "i", "s", "u"], ["y"])], "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, (4, 8)),
         helper.make_tensor_value_info("k", TensorProto.INT8, (8, 3))],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, (4, 3))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with pytest.raises(HostError, match=r" 1 layers with 12 values may saturate$"):
        Witness(model, read_model(model), ["y"])


def test_a_model_that_is_refused_is_said():
    model = convolutions(np.uint8)
    graph = read_model(model)
    model.graph.node[0].op_type = "Nothing"
    with pytest.raises(ModelError, match=r"^ONNX Runtime does not take the model: "):
        Witness(model, graph, ["y2"])
