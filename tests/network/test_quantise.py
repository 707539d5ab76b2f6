"""docs/quantise.md in a shell: its model, by every command that it names, to one answer."""

import re
import shlex
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, quantize_static, registry

from support.fences import fences
from tilewright.network.models.quantiser import FloatModel
from tilewright.network.reader.refusals import refusals_of
from tilewright.tools.cli.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs/quantise.md"
SAMPLE = np.random.default_rng(0).normal(0, 1, (1, 3, 8, 8)).astype(np.float32)


class Samples(CalibrationDataReader):
    """One input for calibration."""

    def __init__(self):
        self.left = iter([{"x": SAMPLE}])

    def get_next(self):
        return next(self.left, None)


def test_the_commands_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = fences(PAGE.read_text(encoding="utf-8"))
    names = {}
    for block in blocks:
        if block.language == "python":
            exec(compile(block.text, f"{PAGE}:{block.line}", "exec"), names)
    (commands,) = (block.text for block in blocks if block.language == "sh")
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "tilewright"
        assert main(arguments) == 0
    evaluated, made, witness = (np.load(f"{name}.npz") for name in ("evaluated", "program", "ort"))
    assert evaluated["y"].shape == (1, 10)
    assert (evaluated["y"] == made["y"]).all()
    assert np.allclose(evaluated["y"], witness["y"], atol=0.1)


def test_operators_that_the_quantiser_does_not_know(tmp_path):
    """An Elu before a maximum stays float, unless both are named as the page names them."""
    net = FloatModel(np.random.default_rng(1), (1, 3, 8, 8))
    y = net.node("ReduceMax", net.node("Elu", net.conv("x", 8, 3, 3, relu=False)), axes=[2, 3], keepdims=0)
    onnx.save(net.model(net.node("Gemm", y, *net.weights(400, 8), transB=1)), tmp_path / "floats.onnx")
    (named,) = re.findall(r"`(\[\*QDQRegistry.*?\])`", PAGE.read_text(encoding="utf-8"))
    for operators, refused in ((None, True), (eval(named, vars(registry)), False)):
        quantize_static(tmp_path / "floats.onnx", tmp_path / "integers.onnx", Samples(),
                        op_types_to_quantize=operators)  # fmt: skip
        assert bool(refusals_of(onnx.load(tmp_path / "integers.onnx"))) == refused
