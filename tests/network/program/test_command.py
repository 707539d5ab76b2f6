"""``tilewright compile``, and ``tilewright run`` on a program."""

import json

import numpy as np
import pytest

from tilewright.network.arrays import array_bytes
from tilewright.network.reader import read_model
from tilewright.sim.cli import main
from tilewright.sim.random.networks import draw_inputs, draw_network


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(3)
    proto = draw_network(rng, 4)
    graph = read_model(proto)
    (value,) = draw_inputs(rng, graph).values()
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    (tmp_path / "x.npy").write_bytes(array_bytes(value))
    return tmp_path / "model.onnx", tmp_path / "x.npy", graph


def test_compile_writes_memory_and_plan(model, tmp_path, capsys):
    path, _, graph = model
    assert main(["compile", str(path), "--preset", "ecp5", "--explain", "--out", str(tmp_path / "out")]) == 0
    plan = json.loads((tmp_path / "out/plan.json").read_text())
    size = (tmp_path / "out/memory.bin").stat().st_size
    assert plan["program"]["address"] + 64 * plan["program"]["words"] <= size
    assert plan["inputs"] == list(graph.inputs)
    out = capsys.readouterr().out
    assert "operator" in out
    assert (tmp_path / "out/plan.txt").read_text() in out


def test_a_program_gives_what_the_evaluation_gives(model, tmp_path, capsys):
    path, given, graph = model
    made = []
    for number, options in enumerate(([], ["--preset", "unit"], ["--preset", "default", "--every-tensor"])):
        out = tmp_path / f"{number}.npz"
        assert main(["run", str(path), "--input", str(given), "--on", "golden", "--out", str(out), *options]) == 0
        made.append(np.load(out))
    for name in graph.outputs:
        for other in made[1:]:
            np.testing.assert_array_equal(made[0][name], other[name])
    assert set(made[2]) == {node.output for node in graph.nodes}
    assert main(["run", str(path), "--input", str(given), "--on", "ort", "--preset", "unit"]) == 2
    assert "--preset and --layers go with" in capsys.readouterr().err
