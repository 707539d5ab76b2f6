"""``tilewright verilog``."""

import re

import pytest

from tilewright.sim.cli import main

#: Ports that a user of the AXI bus looks for.
AXI = {
    f"m_axi_{name}" for name in ("araddr", "arlen", "arvalid", "arready", "rdata", "rresp", "rlast", "rvalid", "rready")
}


@pytest.mark.parametrize(("top", "module"), [("tmau", "tmau"), ("subsystem", "tmau_subsystem")])
def test_conventional_names(tmp_path, top, module):
    assert main(["verilog", "--preset", "unit", "--top", top, "--out", str(tmp_path / "new")]) == 0
    (file,) = (tmp_path / "new").iterdir()
    assert file.name == f"{module}.v"
    ports = set(
        re.search(rf"^module {module}\(([^)]*)\);", file.read_text(), re.MULTILINE)[1]
        .replace("\n", " ")
        .replace(" ,", ",")
        .split(", ")
    )
    assert AXI | {"clk", "rst", "irq", "commands_valid", "s_axil_awaddr"} <= ports
    assert not any("__" in port for port in ports)


def test_file_in_the_way(tmp_path, capsys):
    path = tmp_path / "file"
    path.touch()
    assert main(["verilog", "--preset", "unit", "--out", str(path / "below")]) == 2
    assert capsys.readouterr().err == f"tilewright verilog: --out must name a folder, not {path / 'below'}\n"
