"""A core with protocol monitors: the testbench of the top, and AXI with all that the specification allows."""

import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from tilewright.results import record
from tilewright.sim.hdl.build import build
from tilewright.sim.hdl.cocotb_run import run_cocotb
from tilewright.sim.hdl.verilog import to_verilog
from tilewright.tb.monitored import VARIANTS, MonitoredCore
from tilewright.tools.docs.stages import record_rules, rules_table

SEED = 2026
PAGE = Path(__file__).parents[2] / "docs" / "cocotb.md"

#: Tests of tb/tb_monitored.py that run in one simulation.
GROUPS = {
    "independent": "independent_slave",
    "own": "own_slave",
    "stores": "stores",
    "errors": "read_error",
    "reset": "reset_in_transfer",
    "rest": "page_edges|registers",
}
#: What runs of the largest by default: every knob with and without back-pressure, each place of an error with both
#: responses, and a reset in every eighth cycle.
SOME = {
    "own": r"own_slave/.*stall=(none|both)",
    "errors": r"read_error/.*run=1",
    "reset": r"reset_in_transfer/moment=(0|8|16|24|32|40|48)",
}

#: Results for the stages page.
RECORDED = {"errors": "axi-errors", "reset": "reset"}


@cache
def _verilog(variant):
    return to_verilog(MonitoredCore(VARIANTS[variant]), "monitored")


def _run(simulator, variant, group, module="tb_monitored", tests=None, **environment):
    if simulator == "icarus" and shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog is not installed")
    name = f"{group}-{simulator}-{variant}"
    print(f"{name}: seed {SEED}")
    program = build(_verilog(variant), "monitored", simulator=simulator, cocotb=True)
    environment |= {"TILEWRIGHT_VARIANT": variant}
    return run_cocotb(
        program,
        f"tilewright.tb.{module}",
        name=name,
        seed=SEED,
        environment=environment,
        tests=rf"\.({tests or GROUPS[group]})(/|$)" if group in GROUPS else None,
    )


def check(variant, group, tests=None):
    passed = _run("verilator", variant, group, tests=tests)
    if group in RECORDED:
        record(f"{RECORDED[group]}-{variant}", cases=len(passed), mismatches=0)
    record_rules("simulated", f"cocotb-{variant}")
    print(rules_table())
    return passed


@pytest.mark.parametrize(
    "group", [pytest.param(name, marks=pytest.mark.long) if name in SOME else name for name in GROUPS]
)
@pytest.mark.parametrize(
    "variant", [pytest.param(name, marks=pytest.mark.long) if name != "unit" else name for name in VARIANTS]
)
def test_verilator(variant, group):
    """Every testbench on every variant."""
    check(variant, group)


@pytest.mark.parametrize(("group", "count"), [("own", 16), ("errors", 10), ("reset", 7)])
def test_some(group, count):
    """Of the largest groups, those that differ most."""
    assert len(check("unit", group, SOME[group])) == count


@pytest.mark.parametrize("count", ["1", pytest.param("4", marks=pytest.mark.long)])
def test_core(count):
    """The testbench that integrators copy; monitors or not, the ports are the same."""
    passed = _run("verilator", "unit", "tb_core", "tb_core", TILEWRIGHT_COUNT=count)
    assert len(passed) == 15


def test_testbench_of_the_documentation(tmp_path, monkeypatch):
    """The smallest one on docs/cocotb.md, as it stands there."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (tmp_path / "tb_small.py").write_text(next(block for block in blocks if "@cocotb.test()" in block))
    monkeypatch.syspath_prepend(tmp_path)
    program = build(_verilog("unit"), "monitored", cocotb=True)
    assert run_cocotb(program, "tb_small", name="small-verilator", seed=SEED) == ["one_load"]


@pytest.mark.long
@pytest.mark.parametrize("group", ["independent", "rest"])
def test_icarus(group):
    """A second simulator agrees, where it is installed."""
    _run("icarus", "unit", group)
