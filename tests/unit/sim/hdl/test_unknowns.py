"""Power-on values are taken from the hardware, and from it alone."""

import pytest

from tilewright.sim.hdl.testbench import Design
from tilewright.sim.hdl.unknowns import top_without_power_on_values, without_power_on_values

HARDWARE = """module \\harness.dut.core (clk);
  reg [3:0] count{value};
  reg \\a$1 {flag};
  reg [7:0] words [3:0];
  reg [7:0] \\lane$1 [3:0];
  reg [7:0] table [3:0];
{initial}  initial begin
    table[0] = 8'h07;
  end
  always @(posedge clk) begin
    if (write[3])
      words[write[1:0]][7:0] <= table[at];
  end
  always @(posedge clk) if (on) \\lane$1 [{{ at[0], \\x$2 [1] }}] <= table[at] <= 3;
endmodule
"""
AROUND = """module \\harness.monitor (clk);
  reg [3:0] count = 4'h3;
  reg after_reset = 1'h{after_reset};
endmodule
"""


def test_only_the_hardware_forgets():
    initial = "".join(f"  initial begin : zeros\n    {name}[0] = 8'h00;\n  end\n" for name in ("words", "\\lane$1 "))
    before = HARDWARE.format(value=" = 4'h2", flag=" = 1'h0", initial=initial) + AROUND.format(after_reset=1)
    after = HARDWARE.format(value="", flag="", initial="") + AROUND.format(after_reset=0)
    assert without_power_on_values(Design(before, {}, {}, {})).verilog == after


def test_a_top_forgets_everywhere():
    before = HARDWARE.format(value=" = 4'h2", flag=" = 1'h0", initial="") + AROUND.format(after_reset=1)
    after = before
    for value in (" = 4'h2", " = 1'h0", " = 4'h3", " = 1'h1"):
        after = after.replace(f"{value};", ";")
    assert top_without_power_on_values(before) == after


def test_other_designs_are_refused():
    with pytest.raises(ValueError, match=r"^the Verilog has no registers with power-on values$"):
        top_without_power_on_values("module top;\nendmodule\n")
    with pytest.raises(ValueError, match=r"^the design is not a subsystem in its harness$"):
        without_power_on_values(Design("module top;\nendmodule\n", {}, {}, {}))
