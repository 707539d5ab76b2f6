"""Power-on values are taken from the hardware, and from it alone."""

import pytest

from tilewright.sim.hdl.testbench import Design
from tilewright.sim.hdl.unknowns import without_power_on_values

HARDWARE = """module \\harness.dut.core (clk);
  reg [3:0] count{value};
  reg \\a$1 {flag};
  reg [7:0] words [3:0];
  reg [7:0] table [3:0];
{initial}  initial begin
    table[0] = 8'h07;
  end
  always @(posedge clk) words[at] <= table[at];
endmodule
"""
AROUND = """module \\harness.monitor (clk);
  reg [3:0] count = 4'h3;
  reg after_reset = 1'h{after_reset};
endmodule
"""


def test_only_the_hardware_forgets():
    initial = "  initial begin : zeros\n    words[0] = 8'h00;\n  end\n"
    before = HARDWARE.format(value=" = 4'h2", flag=" = 1'h0", initial=initial) + AROUND.format(after_reset=1)
    after = HARDWARE.format(value="", flag="", initial="") + AROUND.format(after_reset=0)
    assert without_power_on_values(Design(before, {}, {}, {})).verilog == after


def test_other_designs_are_refused():
    with pytest.raises(ValueError, match=r"^the design is not a subsystem in its harness$"):
        without_power_on_values(Design("module top;\nendmodule\n", {}, {}, {}))
