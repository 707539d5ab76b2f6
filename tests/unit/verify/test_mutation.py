"""Mutants: all in one netlist, chosen by a number, the clock untouched."""

import re
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.errors import UsageError
from tilewright.verify.formal import FOLDER, prove
from tilewright.verify.mutation import BLOCKS, Block, mutate, survivors_of_properties, survivors_of_simulation

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


class Counter(wiring.Component):
    enable: In(1)
    count: Out(3)

    def elaborate(self, platform):
        m = Module()
        with m.If(self.enable):
            m.d.sync += self.count.eq(self.count + 1)
        return m


class CounterSpec(Elaboratable):
    """All bits of the counter, or its highest one alone."""

    def __init__(self, bits):
        self.dut = Counter()
        self._bits = bits

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = self.dut
        count = Signal(3)
        m.d.sync += count.eq(count + self.dut.enable)
        m.d.comb += Assert((self.dut.count ^ count)[-self._bits :] == 0)
        return m


def test_a_strong_property_notices_more():
    survivors = {}
    for bits in (3, 1):
        spec, name = CounterSpec(bits), f"sim-mutants-{bits}"
        prove(spec, [spec.dut.enable], name=name, mode="bmc", depth=4)
        count, survivors[bits] = survivors_of_properties(Block((), name, ("dut",), 4), 16, 1, FOLDER)
        assert count > 10
    assert not survivors[3]
    assert survivors[1]


def test_a_proof_that_never_ran(tmp_path):
    with pytest.raises(UsageError, match=r"^the proof none must have been run once, and left in "):
        survivors_of_properties(Block((), "none", ("dut",), 4), 40, 1, tmp_path)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=list(BLOCKS))
def test_there_is_a_proof_of_each_name(block):
    sources = (path.read_text() for path in (Path(__file__).parents[2] / "formal").rglob("test_*.py"))
    names = (name for text in sources for name in re.findall(r'name=f?"([^"]+)"', text))
    # Parameters of a test are in braces.
    assert any(re.fullmatch(re.sub(r"\{[^}]*\}", "[^-_]+", name), block.proof) for name in names), block.proof


@pytest.mark.long
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_can_be_changed(name):
    count, survivors = survivors_of_simulation(BLOCKS[name], 6, 1)  # some in each module of the block
    assert count > len(survivors)


@pytest.mark.long  # makes the Verilog of the whole access unit
def test_a_block_that_there_is_not():
    with pytest.raises(RuntimeError, match=r"^there is no block harness\.dut\.tmau\.none$"):
        survivors_of_simulation(Block(("tmau.core.port", "tmau.none"), "none", (), 1), 1, 1)
