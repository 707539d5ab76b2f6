"""The Verilog that users get: free of lint in every preset, named as they expect, written whole or not at all."""

import re

import pytest

from support.selection import cases
from tilewright.results import record
from tilewright.sim.hdl.lint import lint
from tilewright.sim.hdl.tops import TOPS, module_name, top_component
from tilewright.tools.cli.main import main
from tilewright.tools.package.ports import ports_of

AXI4 = (
    "awid awaddr awlen awsize awburst awcache awprot awvalid awready wdata wstrb wlast wvalid wready "
    "bid bresp bvalid bready "
    "arid araddr arlen arsize arburst arcache arprot arvalid arready rid rdata rresp rlast rvalid rready"
)
STREAM = ("valid", "ready", "payload")
AXI4_LITE = (
    "awaddr awprot awvalid awready wdata wstrb wvalid wready bresp bvalid bready "
    "araddr arprot arvalid arready rdata rresp rvalid rready"
)
_COMMON = {f"s_axil_{name}" for name in AXI4_LITE.split()} | {"clk", "rst", "irq"}
_TMAU = _COMMON | {f"m_axi_{name}" for name in AXI4.split()} | {f"commands_{name}" for name in STREAM}
_PE = _COMMON | {f"{port}_{name}" for port in ("instructions", "segments", "pages") for name in STREAM}
_CONV = _COMMON | {f"jobs_{name}" for name in STREAM} | {"job_ended", "job_end"}
#: Ports that a user of each top looks for.
CONVENTIONAL = {
    "tmau": _TMAU, "pe": _PE, "conv": _CONV,
    "core": _TMAU | _PE,
    # Of each core its own, of the port to memory one.
    "cluster": {"clk", "rst", *(f"m_axi_{name}" for name in AXI4.split())} | {
        re.sub("^(irq|s_axil|commands)", rf"\1_{core}", name)
        for core in (0, 1) for name in _TMAU if not re.match("m_axi|clk|rst", name)
    },
}  # fmt: skip

#: What is in the other tops is in these too.
LARGEST = ("conv", "core", "cluster")
#: Yosys takes more than ten minutes for each of them: some memories have a thousand enables.
TOO_LARGE = (("full", "core"), ("full", "cluster"))
#: They have the engines of a core.
SMALLER = ("tmau", "pe", "conv")
LONG = [
    *(("unit", top) for top in TOPS if top not in SMALLER),
    *((preset, top) for top in LARGEST for preset in TOPS[top].presets
      if preset != "unit" and (preset, top) not in TOO_LARGE),
]  # fmt: skip


def _ports(text, name):
    """The ports of the module, in order."""
    (listed,) = re.findall(rf"^module {name}\(\n(.*?)^\);\n", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"^  (?:input |output) (?:wire|reg) (?:\[\d+:0\] )?(\w+)", listed, re.MULTILINE)


@cases("preset, top", [("unit", top) for top in SMALLER], LONG)
def test_no_lint_and_conventional_ports(tmp_path, preset, top):
    assert main(["verilog", "--preset", preset, "--top", top, "--out", str(tmp_path / "new")]) == 0
    name = module_name(top, preset)
    # Nothing half-written is left beside the files.
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        f"{name}.{end}" for end in ("v", "vlt", "core", "xml", "h")
    }
    path = tmp_path / "new" / f"{name}.v"
    text = path.read_text()
    ports = _ports(text, name)
    assert set(ports) >= CONVENTIONAL[top]
    assert not any("__" in port for port in ports)
    assert ports == [port.name for port in ports_of(top_component(top, preset))]
    assert "always @*" not in text
    # Every module begins with the name, so that designs can stand side by side.
    modules = re.findall(r"^module \\?([^ (]+)", text, re.MULTILINE)
    assert all(module == name or module.startswith(f"{name}.") for module in modules)
    found = lint(path, name)
    record(f"lint-{preset}-{top}", preset=preset, top=top, errors=len(found))
    assert not found


@cases("engines, ports", [("tmau", _TMAU)],
       [("pe", _PE), ("conv", _CONV), ("tmau,pe,conv,program", _TMAU | _PE | _CONV)])  # fmt: skip
def test_no_lint_of_cores(tmp_path, engines, ports):
    options = ["--preset", "unit", "--top", "core", "--engines", engines, "--out", str(tmp_path)]
    assert main(["verilog", *options]) == 0
    path = tmp_path / "tw_unit_core.v"
    assert set(_ports(path.read_text(), "tw_unit_core")) >= ports
    assert not lint(path, "tw_unit_core")


@pytest.mark.long
def test_no_lint_of_a_cluster_of_cores(tmp_path):
    options = ["--preset", "unit", "--top", "cluster", "--cores", "3", "--engines", "tmau,pe", "--out", str(tmp_path)]
    assert main(["verilog", *options]) == 0
    path = tmp_path / "tw_unit_cluster.v"
    assert all(f"{port}_2_valid" in path.read_text() for port in ("commands", "instructions", "barriers"))
    assert not lint(path, "tw_unit_cluster")


@pytest.mark.parametrize("option", ["--preset", "--top"])
def test_unknown_names_are_refused(tmp_path, capsys, option):
    with pytest.raises(SystemExit) as stop:
        main(["verilog", option, "huge", "--out", str(tmp_path / "new")])
    assert stop.value.code == 2
    assert re.fullmatch(
        rf"tilewright verilog: argument {option}: invalid choice: 'huge' [^\n]*\n", capsys.readouterr().err
    )
    assert not (tmp_path / "new").exists()
