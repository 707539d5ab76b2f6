"""Names of tops, and their Verilog, which is kept."""

import pytest

from tilewright.sim.hdl import designs, export
from tilewright.sim.hdl.export import TOPS, module_name, top_component, top_verilog


def test_names():
    assert module_name("core", "ecp5") == "tw_ecp5_core"
    assert module_name("tmau_subsystem", "unit", "my_chip") == "my_chip_tmau_subsystem"
    with pytest.raises(
        ValueError, match=r"^a name must be letters, digits and underscores, with no digit first, not '1x'$"
    ):
        module_name("core", "unit", "1x")


def test_components():
    for top, (component, presets) in TOPS.items():
        assert type(top_component(top, "unit")) is component
        assert top_component(top, "unit").params == presets["unit"]


def test_verilog_is_made_once(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(designs, "CACHE", tmp_path)
    monkeypatch.setattr(export, "to_verilog", lambda component, name: made.append(name) or f"module {name};")
    assert top_verilog("pe", "unit") == top_verilog("pe", "unit") == "module tw_unit_pe;"
    assert top_verilog("pe", "unit", "chip") == "module chip_pe;"
    assert made == ["tw_unit_pe", "chip_pe"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(designs, "CACHE", tmp_path / "file")
    monkeypatch.setattr(export, "to_verilog", lambda component, name: "text")
    assert top_verilog("pe", "unit") == "text"
