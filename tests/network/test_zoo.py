"""Shapes of well-known networks: every tensor is as ONNX Runtime has it, and programs give the same outputs."""

import re
import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest

from support.fences import fences
from support.network import compare_program
from tilewright import network
from tilewright.network.machine import MACHINES
from tilewright.network.models.zoo import NETWORKS, Entry, build
from tilewright.network.reader import read_model
from tilewright.network.rtl import run_on
from tilewright.results import record
from tilewright.sim.session.core import open_accelerator
from tilewright.tools.cli.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs/models.md"
#: Networks whose programs are simulated.
ON_HARDWARE = ("resnet-8", "wake-words", "blazeface", "mtcnn-p", "mtcnn-r", "mtcnn-o", "ds-cnn", "yamnet", "tcn",
               "autoencoder")  # fmt: skip
#: Networks that each run of the tests takes.
QUICK = ("autoencoder", "ds-cnn", "mtcnn-r")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in NETWORKS]
)
def test_networks(name, agree):
    model, inputs = build(name)
    graph, _ = agree(model, inputs)
    compare_program(graph, inputs, "default")


@pytest.mark.long
def test_networks_on_hardware():
    """Outputs of the smaller networks are the evaluation's; cycles are recorded beside those that plans expect."""
    rows = {}
    with open_accelerator("default") as session:
        for name in ON_HARDWARE:
            model, inputs = build(name)
            compiled = network.compile(graph := read_model(model), "default")
            data, run = run_on(session, compiled, compiled.memory(inputs))
            expected = network.evaluate(graph, inputs)
            for output, value in compiled.tensors(data, graph.outputs).items():
                np.testing.assert_array_equal(value, expected[output], err_msg=f"{output} of {name}")
            cycles = run.words[-1].cycle - run.words[0].cycle
            rows[name] = {"cycles": cycles, "more": 100 * (cycles / compiled.plan.cycles - 1)}
            print(f"{name}: {compiled.plan.cycles:,} cycles expected, {cycles:,} on the hardware")
    record("rtl-models", rows=rows)


def test_commands_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (commands,) = (block.text for block in fences(PAGE.read_text(encoding="utf-8")) if block.language == "sh")
    for line in commands.splitlines():
        assert main(shlex.split(line)[1:]) == 0
    model, inputs = build("ds-cnn")
    assert onnx.load("here/ds-cnn.onnx") == model
    assert (np.load("here/ds-cnn.npy") == inputs["x"]).all()


def test_table(capsys, monkeypatch):
    def neighbours(maker):
        maker.conv(maker.other("LRN", maker.conv(maker.input((1, 4, 8, 8)), 8), size=3), 8)

    monkeypatch.setitem(NETWORKS, "lrn", Entry(neighbours, "an old layer"))
    model, _ = build("ds-cnn")
    assert main(["models", "--table", "lrn", "ds-cnn", "--preset", "unit"]) == 0
    head, refused, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["network", "MACs", "cycles", "of", "MACs", "for"]
    assert "an old layer: node 'lrn1' (LRN)" in refused
    compiled = network.compile(read_model(model), "unit").plan
    name, macs, cycles, share = row.split()[:4]
    assert (name, macs, cycles) == ("ds-cnn", f"{compiled.macs:,}", f"{compiled.cycles:,}")
    assert share == f"{100 * compiled.macs / MACHINES['unit'].conv.peak / compiled.cycles:.1f}%"


def test_networks_of_the_page():
    """docs/models.md has a row for each network, and refuses none."""
    page = PAGE.read_text(encoding="utf-8").partition("\n### ")[0]
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", page, re.MULTILINE))
    assert rows.keys() == NETWORKS.keys()
    assert not [name for name, row in rows.items() if "refused" in row]
    for name, row in rows.items():
        entry = NETWORKS[name]
        assert entry.about in row, name
        made = f"{entry.form}, {'s8' if entry.signed else 'u8'}"
        assert made in row, name
