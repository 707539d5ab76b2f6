"""A small top, mapped as one: figures, the table by blocks, and the deepest path."""

import json

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.tools.cli.main import main
from tilewright.tools.fpga import blocks as flat


class Adder(wiring.Component):
    """A sum, registered behind."""

    i: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        last = Signal(8)
        m.d.sync += [last.eq(self.i), self.o.eq(self.i + last)]
        return m


class Largest(wiring.Component):
    """Two adders, one behind the other, and whether the sum of both is the largest number."""

    i: In(8)
    o: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.first = first = Adder()
        m.submodules.reducer = second = Adder()
        total = Signal(8)
        m.d.comb += [first.i.eq(self.i), second.i.eq(first.o), total.eq(first.o + second.o), self.o.eq(total.all())]
        return m


@pytest.fixture
def measured(tmp_path, monkeypatch, capsys):
    """Runs ``tilewright area --flat`` on the small top; returns what is printed, the file, and what is recorded."""

    def measure(*options):
        recorded = {}
        monkeypatch.setattr(flat, "top_component", lambda top, preset, without, settings: Largest())
        monkeypatch.setattr(flat, "record", lambda name, **figures: recorded.update({name: figures}))
        file = tmp_path / "area.json"
        assert main(["area", "--flat", "--preset", "unit", "--out", str(file), *options]) == 0
        return capsys.readouterr().out, json.loads(file.read_text()), recorded

    return measure


def test_ecp5(measured):
    out, found, recorded = measured()
    assert out.startswith("tmau, preset unit, flattened, ecp5\nlut4 ")
    assert found["cells"]["ff"] == 32
    assert found["cells"]["carry"] == 3 * 4  # eight bits
    assert found["cells"]["comb"] == found["cells"]["lut4"] + 2 * 12
    assert [found["blocks"][name][1] for name in ("", "first", "reducer")] == [32, 16, 16]
    # A carry chain, then a LUT of eight inputs, which the multiplexers of a slice make of LUT4s.
    assert found["levels"] == 2
    assert found["path"][0]["block"] in ("first", "reducer")
    assert found["path"][-1] == {"level": 2, "block": "", "wire": "o"}
    assert f"\ndeepest path: 2 LUT4s\n{found['path'][0]['block']} → (top)\n" in out
    assert "\nwithout reducer and shared_reduce: " in out
    command = "tilewright area --flat --top tmau --preset unit --family ecp5"
    assert recorded == {"flat-tmau-unit-ecp5": {**found["cells"], "levels": 2, "command": command}}


def test_parameters_that_differ_are_named(measured):
    out, found, recorded = measured("--set", "tmau.max_burst=8,smem.size_bytes=8192", "--without", "lanes")
    assert out.startswith("tmau, preset unit, tmau.max_burst=8,smem.size_bytes=8192 without lanes, flattened, ecp5\n")
    assert found["set"] == ["tmau.max_burst=8", "smem.size_bytes=8192"]
    assert recorded == {}


@pytest.mark.long
def test_series_7(measured):
    out, found, recorded = measured("--family", "xc7", "--top", "pe")
    assert out.startswith("pe, preset unit, flattened, xc7\nlut ")
    assert (found["cells"]["ff"], found["cells"]["carry"]) == (32, 4)
    assert "levels" not in found
    assert "deepest path" not in out
    command = "tilewright area --flat --top pe --preset unit --family xc7"
    assert recorded == {"flat-pe-unit-xc7": {**found["cells"], "command": command}}
