"""The files of an integrator, read by the tools of the distribution: docs/integration.md, "Versions of tools".

Continuous integration installs the oldest of those versions; elsewhere it is whatever the PATH has.
"""

import shutil
import subprocess

import pytest

from support.selection import cases
from tilewright.sim.hdl.tops import TOPS, module_name
from tilewright.tools.cli.main import main

#: Their Verilog is made for other tests too.
DEFAULT = ("tmau", "pe", "conv")
LONG = [*(("unit", top) for top in TOPS if top not in DEFAULT), *(("default", top) for top in TOPS)]
#: Arguments by program.
TOOLS = {
    "verilator": ("--lint-only", "-Wall", "{name}.vlt", "{name}.v"),
    "iverilog": ("-g2005", "-Wall", "-s", "{name}", "-o", "{name}.vvp", "{name}.v"),
    "yosys": ("-q", "-p", "read_verilog {name}.v; hierarchy -check -top {name}"),
}


def says(tool, folder, name):
    """What a program of the PATH prints of ``name.v``, without Verilator's closing report."""
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool} on the PATH")
    command = [tool, *(word.format(name=name) for word in TOOLS[tool])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    assert done.returncode == 0, "\n".join(lines[:20])
    return [line for line in lines if not line.startswith("- ")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A function that writes the files of a top and returns their folder and name."""

    def make(preset, top):
        folder = tmp_path_factory.mktemp("made")
        assert main(["verilog", "--preset", preset, "--top", top, "--out", str(folder)]) == 0
        return folder, module_name(top, preset)

    return make


@cases("preset, top", [("unit", top) for top in DEFAULT], LONG)
@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_to_say(made, preset, top, tool):
    assert says(tool, *made(preset, top)) == []


@pytest.mark.parametrize("tool", TOOLS)
def test_a_fault_is_seen(tmp_path, tool):
    """So that silence means something."""
    (tmp_path / "top.v").write_text("module top(input a, output b); missing m(.a(a), .b(b)); endmodule\n")
    (tmp_path / "top.vlt").write_text("`verilator_config\n")
    with pytest.raises(AssertionError):
        says(tool, tmp_path, "top")
