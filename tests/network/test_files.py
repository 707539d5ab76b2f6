"""Files: damaged models, inputs, results."""

import numpy as np
import onnx
import pytest

from tilewright.network import ModelError, read
from tilewright.network.evaluation import evaluate
from tilewright.network.reader import read_model
from tilewright.tools.cli.main import main
from tilewright.tools.cli.run import array_bytes
from tilewright.verify.random.networks import draw_inputs, draw_network

BROKEN = 150


@pytest.fixture
def folder(tmp_path):
    """A network of one input, model.onnx, with x.npy."""
    model = draw_network(np.random.default_rng(5), dtype="uint8", floats=True)
    onnx.save(model, tmp_path / "model.onnx")
    inputs = draw_inputs(np.random.default_rng(5), read(tmp_path / "model.onnx"))
    (tmp_path / "x.npy").write_bytes(array_bytes(inputs["x"]))
    return tmp_path


def test_damaged_models_are_refused_or_run(folder):
    whole = (folder / "model.onnx").read_bytes()
    rng, path = np.random.default_rng(0), folder / "broken.onnx"
    refused = 0
    for seed in range(BROKEN):
        print(f"case {seed}")
        data = bytearray(whole[: rng.integers(1, len(whole))] if seed % 3 == 0 else whole)
        for _ in range(rng.integers(0 if seed % 3 == 0 else 1, 5)):
            data[rng.integers(len(data))] = rng.integers(256)
        path.write_bytes(data)
        sentence = refusal(path)
        refused += sentence is not None
        assert "\n" not in (sentence or "")
    assert refused > BROKEN // 3


def refusal(path):
    try:
        read(path)
    except ModelError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (b"", "{} is not an ONNX model, or has no nodes"),
        (b"\x00", "{} is not an ONNX model, or is truncated"),
        (b"no model, but a text of some length" * 20, "{} is not an ONNX model, or is truncated"),
    ],
)
def test_no_model(contents, sentence, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(contents)
    with pytest.raises(ModelError) as error:
        read(path)
    assert str(error.value) == sentence.format(path)


def test_weights_in_other_files(folder):
    model = onnx.load(folder / "model.onnx")
    onnx.save(model, folder / "parts.onnx", save_as_external_data=True, size_threshold=0, location="parts.bin")
    answers = []
    for name in ("model.onnx", "parts.onnx"):
        graph = read(folder / name)
        answers.append(evaluate(graph, draw_inputs(np.random.default_rng(5), graph))[graph.outputs[0]])
    np.testing.assert_array_equal(*answers)
    alone = onnx.load(folder / "parts.onnx", load_external_data=False)
    with pytest.raises(ModelError, match=r"^constant '.*' lies in another file, which was not read with the model$"):
        read_model(alone)
    (folder / "parts.bin").unlink()
    with pytest.raises(ModelError, match=r"parts.onnx has weights in other files: .*parts.bin.*"):
        read(folder / "parts.onnx")


def run(folder, line, capsys):
    status = main(["run", *(str(folder / word) if "." in word else word for word in line.split())])
    return status, capsys.readouterr()


def test_golden_and_onnx_runtime_answer_the_same(folder, capsys):
    answers = []
    for place in ("golden", "ort"):
        status, printed = run(folder, f"model.onnx --input x.npy --on {place} --out {place}.npz", capsys)
        assert status == 0
        assert printed.out.startswith(f"{folder / 'model.onnx'}: ")
        assert f"\n{place}: " in printed.out
        with np.load(folder / f"{place}.npz") as file:
            answers.append(dict(file))
    graph = read(folder / "model.onnx")
    assert answers[0].keys() == set(graph.outputs)
    np.testing.assert_array_equal(*(answer[graph.outputs[0]] for answer in answers), strict=True)


def test_every_tensor(folder, capsys):
    assert run(folder, "model.onnx --input x.npy --on golden --out y.npz --every-tensor", capsys)[0] == 0
    graph = read(folder / "model.onnx")
    with np.load(folder / "y.npz") as file:
        assert list(file) == [node.output for node in graph.nodes]
        assert all(file[name].shape == graph.tensors[name].shape for name in file)


def test_every_tensor_that_onnx_runtime_has(folder, capsys):
    """Of a model for which the reader adds a tensor."""
    kinds = ["QuantizeLinear", "DequantizeLinear", "Relu", "Flatten", "QuantizeLinear"]
    nodes = [
        onnx.helper.make_node(kind, [f"t{i}", *(["s"] if "Linear" in kind else [])], [f"t{i + 1}"])
        for i, kind in enumerate(kinds)
    ]
    ends = [onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in (("t0", [2, 5]), ("t5", None))]
    scale = onnx.numpy_helper.from_array(np.float32(0.1), "s")
    ends[1].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    graph = onnx.helper.make_graph(nodes, "made", ends[:1], ends[1:], [scale])
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "made.onnx")
    np.save(folder / "t.npy", np.arange(10, dtype=np.float32).reshape(2, 5))
    for place, count in (("golden", 3), ("ort", 2)):
        assert run(folder, f"made.onnx --input t.npy --on {place} --out {place}.npz --every-tensor", capsys)[0] == 0
        with np.load(folder / f"{place}.npz") as file:
            assert len(file.files) == count
            assert file["t5"].tolist() == [[0, 10, 20, 30, 40], [50, 60, 70, 80, 90]]


def test_progress_is_on_the_standard_error_output(folder, capsys):
    _, printed = run(folder, "model.onnx --input x.npy --on golden", capsys)
    assert printed.err.startswith("golden: layers, 0 of ")


def test_inputs_by_name(folder, capsys):
    np.savez(folder / "x.npz", x=np.load(folder / "x.npy"))
    assert run(folder, "model.onnx --input x.npz --on golden", capsys)[0] == 0


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("none.onnx --input x.npy --on golden", "{}/none.onnx: No such file or directory"),
        ("model.onnx --input none.npy --on golden", "{}/none.npy: No such file or directory"),
        ("x.npy --input x.npy --on golden", "{}/x.npy is not an ONNX model, or is truncated"),
        ("model.onnx --input model.onnx --on golden",
         "{}/model.onnx has no arrays of numbers: This file contains pickled (object) data. If you trust the file you "
         "can load it unsafely using the `allow_pickle=` keyword argument or `pickle.load()`."),
        ("model.onnx --input empty.npy --on golden", "{}/empty.npy has no arrays of numbers: No data left in file"),
        ("model.onnx --input shape.npy --on golden", "input 'x' must be [2, 6, 1, 10], not [1, 10]"),
        ("model.onnx --input type.npy --on ort", "input 'x' must be float32, not float64"),
        ("model.onnx --input nan.npy --on golden", "input 'x' has elements that are not a number"),
        ("model.onnx --input name.npz --on golden", "the network has no input 'z', but 'x'"),
        ("model.onnx --input less.npz --on golden", "input 'x' is missing"),
        ("model.onnx --input x.npy --on golden --every-tensor", "--every-tensor goes with --out"),
        ("model.onnx --input x.npy --on golden --out model.onnx",
         "--out must not be a file that is read, {}/model.onnx"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_sentence(line, sentence, folder, capsys):
    x = np.load(folder / "x.npy")
    (folder / "empty.npy").touch()
    np.save(folder / "shape.npy", x[0, 0])
    np.save(folder / "type.npy", x.astype(float))
    np.save(folder / "nan.npy", x * np.float32("nan"))
    np.savez(folder / "name.npz", z=x)
    np.savez(folder / "less.npz")
    status, printed = run(folder, line, capsys)
    assert (status, printed.out) == (2, "")
    assert printed.err == f"tilewright run: {sentence.format(folder)}\n"
