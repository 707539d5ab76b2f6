"""Mutants: all in one netlist, chosen by a number, the clock untouched."""

import re

import pytest

from tilewright.verify.mutants import mutate

VERILOG = """
module counter(input clk, input up, output reg [3:0] count = 0);
  always @(posedge clk) count <= up ? count + 1 : count - 1;
endmodule
module top(input clk, input up, output [3:0] count);
  counter counter(clk, up, count);
endmodule
"""


def make(count):
    write = "write_verilog -noattr {target}"
    return mutate(VERILOG, read="read_verilog {source}\nproc", modules=["counter"], count=count, seed=1, write=write)


def test_all_are_in_one_netlist():
    text, mutants = make(200)
    numbers = [mutant.number for mutant in mutants]
    assert numbers == sorted(set(numbers))
    assert text.count("input [11:0] mutant;") == 2  # the top hands it down
    for number in numbers:
        assert re.search(rf"mutant == 12'h0*{number:x};", text)
    ports = {mutant.facts["port"] for mutant in mutants}
    assert "D" in ports
    assert not ports & {"CLK", "Q"}
    for mutant in mutants:
        facts = mutant.facts
        # Where the change is: of a wire that several cells read, at one of them.
        assert str(mutant).startswith(f"{mutant.number}: {facts['mode']} {facts['cell']}.{facts['port']}[")
        assert (f" ({facts.get('wire')}[" in str(mutant)) == ("wire" in facts)
    assert any("wire" in mutant.facts for mutant in mutants)


@pytest.mark.parametrize("count", [0, 4096])
def test_too_few_and_too_many(count):
    with pytest.raises(ValueError, match=rf"^the number of mutants must be 1 to 4095, not {count}$"):
        make(count)
