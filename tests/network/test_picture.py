"""``tilewright run --on rtl`` leaves a report of a model of one's own, whose tensors have been compared."""

import re

import onnx
import pytest

from tilewright.network import evaluate
from tilewright.network.compiled import compile as compile_network
from tilewright.network.compiled import first_nodes
from tilewright.network.models.small import build_small, small_input
from tilewright.network.reader import read_model
from tilewright.network.rtl import run_rtl
from tilewright.results import commit, today
from tilewright.tools.cli import run as command
from tilewright.tools.cli.main import main
from tilewright.tools.cli.run import write_arrays
from tilewright.tools.network.workload import charts_of


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs a model on the hardware from the command line; returns the page."""
    monkeypatch.setattr(command, "REPORT", tmp_path / "report")
    onnx.save(build_small("signed"), tmp_path / "own.onnx")
    write_arrays(tmp_path / "x.npz", small_input("signed", seed=0))

    def run():
        files = [str(tmp_path / "own.onnx"), "--input", str(tmp_path / "x.npz"), "--preset", "unit", "--layers", "4"]
        assert main(["run", *files, "--on", "rtl", "--every-tensor", "--out", str(tmp_path / "y.npz")]) == 0
        return (tmp_path / "report/index.html").read_text(encoding="utf-8")

    return run


def test_a_run_leaves_a_report(run, capsys):
    page, printed = run(), capsys.readouterr().out
    assert "4 tensors equal to golden" in printed and "report/index.html" in printed
    assert "everything equals the golden model" in page and "own.onnx and its input x.npz on preset unit" in page
    assert "Layers of own.onnx" in page and "conv0_quant" in page and ">convolution engine<" in page
    assert f"commit {commit()}, {today()}" in page


def test_what_differs_is_said(run, capsys, monkeypatch):
    def wrong(graph, inputs):
        values = evaluate(graph, inputs)
        values[graph.nodes[1].output] = values[graph.nodes[1].output] ^ 1
        return values

    monkeypatch.setattr(command, "evaluate", wrong)
    page = run()
    assert re.search(r"DIFFERS tensor \S+: (\d+) of \1 values differ", capsys.readouterr().out)
    assert "1 problems" in page and "everything equals" not in page


def test_a_part_is_shown_where_it_is_less_than_all():
    """Of a network of up to three layers it was the same picture again."""
    graph, inputs = read_model(build_small("signed")), small_input("signed", seed=0)
    pictures = {}
    for layers in (4, 6):
        compiled = compile_network(first_nodes(graph, layers), "unit", every_tensor=True)
        _, run = run_rtl(compiled, compiled.memory(inputs))
        pictures[layers] = list(charts_of(compiled, run).values())
    assert len(pictures[4]) == 1
    whole, part = pictures[6]
    assert whole != part
