"""Networks to show: a photograph through EfficientNet-Lite0, and the files of all of them."""

import pickle
import struct
from pathlib import Path

import numpy as np
import onnx
import pytest

from tilewright.errors import UsageError
from tilewright.network import ModelError, read
from tilewright.network.models.efficientnet import build_quantised, layers, quantities, read_checkpoint
from tilewright.network.models.photographs import PHOTOGRAPHS, class_names, load_photograph, prepare
from tilewright.network.reader import read_model
from tilewright.results import record
from tilewright.tools.cli.main import main
from tilewright.tools.cli.models import MODELS
from tilewright.tools.docs.figures import stale

ROOT = Path(__file__).parents[2]
ANSWERS = {"coffee": ["espresso"], "cat": ["tiger cat", "Egyptian cat"], "camera": ["tripod"], "flower": ["daisy"]}


@pytest.fixture(scope="module")
def model():
    return build_quantised()


def test_as_published(model):
    kinds = [layer.kind for layer in layers()]
    assert [kinds.count(kind) for kind in ("conv", "add", "mean", "classes")] == [49, 9, 1, 1]
    assert list(quantities()) == ["image", *(layer.name for layer in layers())]
    graph = read_model(model)
    depthwise = [node for node in graph.nodes if node.kind == "Conv" and node.attributes.groups > 1]
    assert sum(map(graph.macs, depthwise)) == 34_532_064
    assert sum(map(graph.macs, graph.nodes)) == 385_187_552
    assert sum(node.attributes.weight.size for node in graph.nodes if node.kind == "Conv") == 4_608_992


def test_the_same_everywhere(model):
    # Nothing of it hangs on sums whose order a library chooses.
    sums = {tensor.name: int(onnx.numpy_helper.to_array(tensor).astype(np.int64).sum()) for tensor in
            model.graph.initializer if tensor.name in ("stem.weight", "head.bias", "classes.weight")}  # fmt: skip
    assert sums == {"classes.weight": -268915, "head.bias": -25489168, "stem.weight": -634}


OTHERS = [pytest.param(name, marks=pytest.mark.long) for name in PHOTOGRAPHS if name != "coffee"]


@pytest.mark.parametrize("name", ["coffee", *OTHERS])
def test_every_tensor_of_a_photograph(name, model, agree):
    graph, values = agree(model, {"image": prepare(load_photograph(name))})
    made = [values[node.output] for node in graph.nodes]
    record("network-efficientnet-lite0", tensors=len(made), values=sum(value.size for value in made),
           macs=sum(map(graph.macs, graph.nodes)))  # fmt: skip
    assert not stale("network-efficientnet-lite0", ROOT)
    found = [class_names()[i] for i in np.argsort(-values["classes"][0], kind="stable")]
    assert found[: len(ANSWERS.get(name, []))] == ANSWERS.get(name, [])


def test_command_writes_files_that_can_be_run(tmp_path, capsys):
    assert main(["models", "--out", str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.glob("*.onnx")} == set(MODELS)
    for name in ("signed", "mixed"):
        assert main(["run", f"{tmp_path}/{name}.onnx", "--input", f"{tmp_path}/{name}.npy", "--on", "golden"]) == 0
    graph = read(tmp_path / "efficientnet-lite0.onnx")
    for name in PHOTOGRAPHS:
        assert np.load(tmp_path / f"{name}.npy").shape == graph.tensors["image"].shape


def test_command_refuses_other_names(tmp_path, capsys):
    assert main(["models", "xyz", "--out", str(tmp_path / "new")]) == 2
    sentence = "tilewright models: there is no model 'xyz': `tilewright models --help` lists them\n"
    assert capsys.readouterr().err == sentence
    assert main(["models", "signed", "--preset", "unit", "--out", str(tmp_path / "new")]) == 2
    assert capsys.readouterr().err == (
        "tilewright models: --preset goes with --table: a model does not depend on a core\n"
    )
    assert list(tmp_path.iterdir()) == []


def checkpoint(*pickles, storage=b""):
    return b"".join(pickle.dumps(each, protocol=2) for each in pickles) + storage


MAGIC = 0x1950A86A20F9469CFC6C


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (b"", "Ran out of input"),
        (checkpoint(1, 2, 3, {}, []), "it begins with another number"),
        (checkpoint(MAGIC, 2, 3, UsageError, []), "it names tilewright.errors.UsageError, which tensors do not need"),
        (checkpoint(MAGIC, 2, 3, [], []), "'list' object has no attribute 'items'"),
        (checkpoint(MAGIC, 2, 3, {}, ["0"]), "'0'"),
    ],
)
def test_a_checkpoint_that_is_none(contents, sentence, tmp_path):
    path = tmp_path / "file.pth"
    path.write_bytes(contents)
    with pytest.raises(ModelError) as error:
        read_checkpoint(path)
    assert str(error.value) == f"{path} is not a checkpoint of tensors: {sentence}"


def test_a_checkpoint_runs_nothing(tmp_path):
    path = tmp_path / "file.pth"
    # What pickle makes of a call of os.system.
    path.write_bytes(checkpoint(MAGIC, 2, 3) + b"cos\nsystem\n(S'touch ran'\ntR." + struct.pack("<q", 0))
    with pytest.raises(ModelError, match=r"it names os\.system, which"):
        read_checkpoint(path)
    assert [each.name for each in tmp_path.iterdir()] == ["file.pth"]
