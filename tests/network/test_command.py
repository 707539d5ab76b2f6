"""``tilewright compile``, and ``tilewright run`` on a program."""

import json

import numpy as np
import pytest

from tilewright.network.machine import MACHINES, machine_of
from tilewright.network.reader import read_model
from tilewright.tools.cli.main import main
from tilewright.tools.cli.run import array_bytes
from tilewright.verify.random.networks import draw_inputs, draw_network


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(27)
    proto = draw_network(rng, 6)
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
    (program,) = plan["programs"]
    assert program["address"] + 64 * program["words"] <= size
    assert plan["inputs"] == list(graph.inputs)
    out = capsys.readouterr().out
    assert all(layer["bytes_in"] == layer["bytes_alone"] for layer in plan["layers"])
    (whole,) = (line.split() for line in out.splitlines() if line.startswith("all "))
    assert {f"{sum(layer[way] for layer in plan['layers']):,}" for way in ("bytes_in", "bytes_out")} < set(whole)
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


def test_a_core_with_other_parameters(model, tmp_path, capsys):
    """A program is made for them: the same answers, and in a file another program."""
    path, given, graph = model
    made = []
    for number, options in enumerate(([], ["--set", "smem.size_bytes=8192,conv.slaves=4,tmau.bus_bytes=32"])):
        out = tmp_path / f"{number}.npz"
        options = ["--preset", "unit", *options]
        assert main(["run", str(path), "--input", str(given), "--on", "golden", "--out", str(out), *options]) == 0
        assert main(["compile", str(path), *options, "--out", str(tmp_path / str(number))]) == 0
        made.append(np.load(out))
    for name in graph.outputs:
        np.testing.assert_array_equal(made[0][name], made[1][name])
    plans, images = ([(tmp_path / f"{n}/{name}").read_bytes() for n in "01"] for name in ("plan.txt", "memory.bin"))
    assert plans[0] != plans[1]
    assert images[0] != images[1]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("compile MODEL --set conv.slaves=3", "--set conv.slaves=3: slaves must be a power of two, not 3"),
        (
            "compile MODEL --set l2.ways=4",
            "--set l2.ways=4: what is built has no l2, only tmau, pe, conv, program, smem",
        ),
        (
            "compile MODEL --set conv.types=f16",
            "no network runs on this core: networks are computed in bytes: conv.types must have 'i8', not ('f16',)",
        ),
        (
            "compile MODEL --set tmau.features=stores",
            "--set tmau.features=stores: programs of networks need the features of their preset",
        ),
        (
            "run MODEL --input X --on golden --set conv.slaves=4",
            "--set goes with --preset or --on rtl: otherwise no core runs the network",
        ),
        (
            "run MODEL --input X --on rtl --set conv.slaves=3",
            "--set conv.slaves=3: slaves must be a power of two, not 3",
        ),
    ],
)
def test_a_core_that_cannot_be(line, sentence, capsys):
    """Found before the model is read."""
    assert main(line.split()) == 2
    assert capsys.readouterr().err == f"tilewright {line.split()[0]}: {sentence}\n"


@pytest.mark.parametrize("preset", MACHINES)
def test_machines_are_the_cores_of_presets(preset):
    assert machine_of(preset) == MACHINES[preset]
