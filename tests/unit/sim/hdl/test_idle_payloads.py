"""A handshake that depends on an idle payload ends the simulation; one that does not is left alone."""

import shutil
import subprocess

import pytest
from amaranth.hdl import Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.sim.hdl.build import build
from tilewright.sim.hdl.idle_payloads import with_idle_payloads
from tilewright.sim.hdl.verilog import to_verilog

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
