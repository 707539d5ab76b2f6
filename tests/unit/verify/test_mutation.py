"""Mutants judged: by the properties of proofs, and by random runs against the golden model."""

import json
from contextlib import contextmanager

import pytest
from amaranth.hdl import Assert, Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.errors import UsageError
from tilewright.tools.cli.main import main
from tilewright.verify import mutated_proofs, mutation
from tilewright.verify.formal import FOLDER, prove
from tilewright.verify.mutated_designs import DESIGNS, mutated_verilog
from tilewright.verify.mutated_proofs import Proof, proofs_left, survivors_of_proof
from tilewright.verify.mutation import BLOCKS, ENGINES, Chunk, judge_chunk, make_model


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


def chunk_of(name, folder, count=16):
    return Chunk("properties", name, count, 1, 0, Proof(name, 4), str(folder))


def test_a_strong_property_notices_more():
    survivors = {}
    for bits in (3, 1):
        spec, name = CounterSpec(bits), f"sim-mutants-{bits}"
        prove(spec, [spec.dut.enable], name=name, mode="bmc", depth=4)
        assert Proof(name, 8) in proofs_left(FOLDER)
        record = judge_chunk(chunk_of(name, FOLDER))
        assert record["mutants"] > 10
        survivors[bits] = record["survivors"]
    assert not survivors[3]
    assert survivors[1]


def test_a_proof_that_fails_without_a_mutant(tmp_path):
    spec, name = CounterSpec(3), "sim-mutants-3"
    prove(spec, [spec.dut.enable], name=name, mode="bmc", depth=4)
    (tmp_path / name).mkdir()
    text = (FOLDER / name / "top.il").read_text()
    device = text.index("module \\top.dut")
    (tmp_path / name / "top.il").write_text(text[:device] + text[device:].replace("cell $add", "cell $sub", 1))
    failure = f"the proof {name} fails without any mutant"
    assert judge_chunk(chunk_of(name, tmp_path)) == {"mutants": 0, "survivors": [], "failure": failure}


def test_proofs_that_never_ran(tmp_path):
    with pytest.raises(UsageError, match=r"^there are no proofs in .*: `make test T=tests/formal` leaves them there$"):
        proofs_left(tmp_path)


VERILOG = """
module \\harness.dut.part.leaf (input clk, input up, output reg [3:0] count);
  always @(posedge clk) count <= up ? count + 1 : count - 1;
endmodule
module \\harness.dut.part (input clk, input up, output [3:0] count);
  \\harness.dut.part.leaf leaf(.clk(clk), .up(up), .count(count));
endmodule
module \\harness.dut (input clk, input up, output [3:0] count);
  \\harness.dut.part part(.clk(clk), .up(up), .count(count));
endmodule
"""


def test_a_block_is_changed_with_all_below_it():
    text, mutants = mutated_verilog(VERILOG, ("part",), "seed", 60, 1)
    modules = {mutant.facts["module"].strip("\\") for mutant in mutants}
    assert "harness.dut.part.leaf" in modules
    assert text.count("wire [11:0] mutant = testbench.seed;") == 1
    assert "input [11:0] mutant;" in text  # the leaf gets it from the part
    assert text.count("module \\harness.dut ") == 1
    with pytest.raises(RuntimeError, match=r"^there is no block harness\.dut\.none$"):
        mutated_verilog(VERILOG, ("none",), "seed", 1, 1)


@pytest.mark.long
def test_random_runs_notice_some():
    chunk = Chunk("simulation", "requests", 6, 1)
    assert make_model(chunk) == {}
    record = judge_chunk(chunk)
    assert record["mutants"] > len(record["survivors"])


def test_the_command_counts_what_is_killed(monkeypatch, tmp_path, capsys):
    results = {}

    @contextmanager
    def connected(scheduler, workers):
        yield None

    def worked(client, submit, chunks, records, stage):
        for chunk in chunks:
            yield chunk, {"mutants": 9, "survivors": [f"one of {chunk.name} from {chunk.first} on"]}

    monkeypatch.setattr(mutation, "connected", connected)
    monkeypatch.setattr(mutation, "worked", worked)
    monkeypatch.setattr(mutation, "record", lambda name, **figures: results.update({name: figures}))
    (tmp_path / "a-proof").mkdir()
    (tmp_path / "a-proof/run.sby").write_text("mode prove\ndepth 3\n")
    (tmp_path / "a-proof/top.il").write_text("module \\top.dut\n")
    assert main(["mutate", "--count", "20", "--proofs", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "tmau: 16 of 18 mutants killed by simulation" in lines
    assert "  survived one of conv from 16 on" in lines
    assert "a-proof: 8 of 9 mutants killed by properties" in lines
    assert set(results) == {f"mutation-simulation-{name}" for name in ("tmau", "pe", "conv")} | {
        "mutation-properties-a-proof"
    }
    assert json.dumps(results)
    assert main(["mutate", "--block", "none", "--proofs", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("tilewright mutate: there is no block none: tmau, pe, conv, requests,")


def test_the_command_knows_every_design():
    assert list(DESIGNS) == [*ENGINES, *BLOCKS]


def test_chunks_have_keys_of_their_own():
    chunks = [Chunk("simulation", name, 20, 1, first) for name in DESIGNS for first in (0, 16)]
    assert len({chunk.key for chunk in chunks}) == len(chunks)


def test_a_sample_without_a_mutant_is_judged(tmp_path, monkeypatch):
    """A change of a clock or at the output of a register is none: few that are drawn may all be such."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one/top.il").write_text("module \\top.dut\nend\n")
    monkeypatch.setattr(mutated_proofs, "mutate", lambda text, **options: ("", []))
    assert survivors_of_proof(tmp_path, Proof("one", 8), 1, 1) == (0, [])
