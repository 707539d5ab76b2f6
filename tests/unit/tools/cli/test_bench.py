"""``tilewright bench``: what each measurement is of, with measurements that take no time."""

import json

import pytest

from tilewright.sim.bench.line import Line
from tilewright.sim.hdl import build
from tilewright.tools.cli import bench as command
from tilewright.tools.cli.main import main

LINE = Line("unit", "all", None, 1, 1, "1", "none", True)


@pytest.fixture
def asked(monkeypatch):
    """Which engine was measured with which settings."""
    seen = []

    class Module:
        def __init__(self, name):
            self.name = name

        def measure(self, preset, settings, *, simulator):
            seen.append((self.name.rpartition(".")[2], list(map(str, settings))))
            yield LINE, 1

    monkeypatch.setattr(command, "import_module", Module)
    monkeypatch.setattr(command, "record", lambda name, **_: seen.append(name))
    return seen


def test_every_engine_has_the_settings(asked, tmp_path, capsys):
    out = tmp_path / "bench.json"
    assert main(["bench", "--preset", "unit", "--set", "pe.threads=8", "--set", "l2.ways=4", "--out", str(out)]) == 0
    settings = ["pe.threads=8", "l2.ways=4"]
    assert [each for _, each in asked] == [settings] * 8
    assert json.loads(out.read_text())["set"] == settings
    assert capsys.readouterr().out.startswith("with pe.threads=8, l2.ways=4\n")
    assert main(["bench", "--preset", "unit", "--out", str(out)]) == 0
    assert asked[-1] == "bench"


@pytest.mark.parametrize(
    ("engine", "setting", "groups"),
    [
        ("tmau", "pe.threads=8", "tmau, smem"),
        ("pe", "tmau.max_burst=8", "pe, smem"),
        ("kernels", "tmau.max_burst=8", "pe, smem"),
        ("conv", "smem.size_bytes=65536", "conv"),
        ("core", "l2.ways=4", "tmau, pe, conv, program, smem"),
        ("cluster", "conv.units=2", "tmau, smem, l2"),
        ("network", "l2.ways=4", "tmau, pe, conv, program, smem"),
        ("cores", "l2.ways=4", "tmau, pe, conv, program, smem"),
    ],
)
def test_an_engine_without_the_parameter(asked, capsys, engine, setting, groups):
    assert main(["bench", "--engine", engine, "--set", setting]) == 2
    group = setting.partition(".")[0]
    sentence = f"--set {setting}: what is built has no {group}, only {groups}"
    assert capsys.readouterr().err == f"tilewright bench: {sentence}\n"
    assert asked == []


@pytest.mark.parametrize("engine", command._ENGINES)
def test_a_simulator_that_is_not_installed(engine, monkeypatch, capsys):
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    monkeypatch.setattr(command, "import_module", None)
    assert main(["bench", "--engine", engine, "--preset", "unit", "--sim", "icarus"]) == 2
    sentence = "tilewright bench: the simulator icarus needs iverilog, which is not installed\n"
    assert capsys.readouterr() == ("", sentence)
