"""Power-on values are taken from the hardware, and from it alone."""

import shutil
import subprocess

import pytest
from amaranth.hdl import Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.sim.hdl.build import build
from tilewright.sim.hdl.testbench import Design
from tilewright.sim.hdl.unknowns import top_without_power_on_values, with_idle_payloads, without_power_on_values
from tilewright.sim.hdl.verilog import to_verilog

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


#: Eight cycles after a reset, in which nothing is offered.
BENCH = """
module bench;
  reg clk = 0, rst = 1;
  chooser_idle dut (.clk(clk), .rst(rst), .i_payload(2'b01), .i_valid(1'b0), .o_ready(1'b1));
  initial begin
    repeat (10) begin
      #5 clk = 1;
      #1 rst = 0;
      #4 clk = 0;
    end
    $display("the end");
    $finish;
  end
endmodule
"""


class Chooser(wiring.Component):
    """A stream whose ``ready`` is chosen by the payload: in its cycle, in the next one, or only where it is valid."""

    def __init__(self, how):
        self._how = how
        words = stream.Signature(unsigned(2))
        super().__init__({"i": In(words), "o": Out(words)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += [self.o.valid.eq(self.i.valid & self.i.ready), self.o.payload.eq(self.i.payload)]
        chosen = self.i.payload[0]
        if self._how == "next cycle":
            m.d.sync += self.i.ready.eq(chosen)
        else:
            m.d.comb += self.i.ready.eq(chosen & (self.i.valid if self._how == "valid" else 1))
        return m


@pytest.mark.parametrize(
    ("simulator", "how", "seen"),
    [
        ("verilator", "valid", False),
        ("verilator", "cycle", True),
        ("icarus", "valid", False),
        ("icarus", "cycle", True),
        ("icarus", "next cycle", True),
    ],
)
def test_a_handshake_by_an_idle_payload_is_seen(simulator, how, seen):
    """In the next cycle only X are seen: bits would have to be compared with those of another run."""
    if simulator == "icarus" and shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog is not installed")
    component = Chooser(how)
    text = with_idle_payloads(to_verilog(component, "chooser"), component, "chooser", "chooser_idle", simulator)
    program = build(text + BENCH, "bench", simulator=simulator)
    done = subprocess.run(program.command, cwd=program.folder, capture_output=True, text=True, check=False)
    assert ("a handshake depends on an idle payload" in done.stdout) == seen
    assert ("the end" in done.stdout) != seen
