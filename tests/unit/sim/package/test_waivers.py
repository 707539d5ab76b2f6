"""Waivers have reasons. That Verilator is silent with them is in ``tests/integration/test_package.py``."""

from tilewright.sim.hdl.lint import WAIVED
from tilewright.sim.package.waivers import waivers


def test_every_waiver_follows_its_reason():
    lines = waivers("tw_unit_pe").splitlines()
    assert lines[0] == "`verilator_config"
    rules = {line: lines[index - 1] for index, line in enumerate(lines) if line.startswith("lint_off")}
    assert rules == {f'lint_off -rule {rule} -file "*tw_unit_pe.v"': f"// {reason}" for rule, reason in WAIVED.items()}
