"""Yosys runs a script in a folder, and says in one sentence when it cannot."""

import re

import pytest
from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.hw.lib.component import shared_module
from tilewright.hw.lib.logic import delay
from tilewright.sim.hdl.lint import lint
from tilewright.sim.hdl.verilog import conventional_ports, hierarchical_name, run_yosys, share_modules, to_verilog


def test_files_of_the_folder(tmp_path):
    (tmp_path / "in.v").write_text("module top(input a, output b); assign b = ~a; endmodule\n")
    run_yosys(tmp_path, "read_verilog in.v\nwrite_rtlil out.il", "read it")
    assert "module \\top" in (tmp_path / "out.il").read_text()


def test_refusal(tmp_path):
    sentence = "Yosys could not read it: ERROR: File `missing.v' not found or is a directory"
    with pytest.raises(RuntimeError, match=f"^{sentence}$"):
        run_yosys(tmp_path, "read_verilog missing.v", "read it")


def test_a_temporary_folder_that_is_not_there(tmp_path, monkeypatch):
    """Mapping to gates writes files; Python's other temporary files lie in another place then, too."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    (tmp_path / "in.v").write_text("module top(input a, input c, output b); assign b = ~a & c; endmodule\n")
    run_yosys(tmp_path, "read_verilog in.v\nsynth -top top\nabc", "map it")


def test_a_netlist_that_does_something_else_is_refused(tmp_path):
    """ABC compares what it has made with what it was given, and Yosys goes on whatever comes out."""
    sentence = "Yosys could not map it: what ABC has made of it does something else"
    with pytest.raises(RuntimeError, match=f"^{sentence}$"):
        run_yosys(tmp_path, "log ABC: Networks are NOT EQUIVALENT.  Output 5 trivially differs", "map it")


TEXT = """module leaf_a(i, o);
  input i;
  assign o = ~ i;
endmodule

module \\leaf.b (i, o);
  input i;
  assign o = ~ i;
endmodule

module other(i, o);
  input i;
  assign o = i;
endmodule

module pair_a(i, o);
  leaf_a  leaf (
    .i(i)
  );
endmodule

module pair_b(i, o);
  \\leaf.b  leaf (
    .i(i)
  );
endmodule

module top(i, o);
  pair_a  \\one.1  (
    .i(i)
  );
  pair_b  two (
    .i(i)
  );
  other  three (
    .i(i)
  );
endmodule
"""


def test_the_first_stands_for_all_and_so_do_those_above():
    shared = share_modules(TEXT)
    assert [line.split("(")[0] for line in shared.splitlines() if line.startswith("module")] == [
        "module leaf_a", "module other", "module pair_a", "module top",
    ]  # fmt: skip
    assert [line for line in shared.splitlines() if line.endswith(" (")] == [
        "  leaf_a  leaf (", "  pair_a  \\one.1  (", "  pair_a  two (", "  other  three (",
    ]  # fmt: skip


def test_nothing_to_share_changes_names_of_nothing():
    text = TEXT[: TEXT.index("module \\leaf.b")]
    assert share_modules(text) == text


class _Table(wiring.Component):
    """A memory whose name is taken by a signal."""

    def __init__(self, init, width=8):
        self._init, self._width = init, width
        super().__init__({"requests": In(stream.Signature(4)), "o": Out(width)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = Memory(shape=self._width, depth=16, init=self._init)
        read = words.read_port(domain="sync")
        write = words.write_port()
        m.d.comb += [
            read.addr.eq(self.requests.payload),
            read.en.eq(self.requests.valid),
            write.addr.eq(self.requests.payload),
            write.data.eq(1),
            write.en.eq(~self.requests.valid),
            self.requests.ready.eq(1),
            self.o.eq(read.data),
        ]
        return m


class _Clash(wiring.Component):
    def __init__(self):
        super().__init__({"a": In(wiring.Signature({"b_c": In(1)})), "a_b": In(wiring.Signature({"c": In(1)}))})

    def elaborate(self, platform):
        return Module()


def test_ports_have_one_underscore():
    text = to_verilog(_Table([]), "table_top")
    header = re.search(r"^module table_top\(([^)]*)\);", text, re.MULTILINE)[1]
    assert set(header.split(", ")) == {"clk", "rst", "requests_payload", "requests_valid", "requests_ready", "o"}
    assert "always @*" not in text


def test_clash_of_names():
    with pytest.raises(ValueError, match=r"^two ports of _Clash would be called 'a_b_c'$"):
        conventional_ports(_Clash())


def test_zeros_become_a_loop_and_others_stay():
    zeros, others = to_verilog(_Table([]), "top"), to_verilog(_Table([0, 7]), "top")
    assert "for (word = 0; word <= 15; word = word + 1) words[word] = 8'h00;" in zeros
    assert "words[1] = 8'h07;" in others
    assert "for (word" not in others
    # Yosys writes numbers of 32 bits in decimal.
    assert "for (word = 0; word <= 15; word = word + 1) words[word] = 32'd0;" in to_verilog(_Table([], 32), "top")


class _Extended(wiring.Component):
    """A sign that is extended, of a name that is taken; and what is there twice only."""

    def __init__(self):
        super().__init__(
            {"i": In(signed(4)), "o": Out(signed(9)), "p": Out(8), "clear": In(1), "load": In(1), "kept": Out(4)}
        )

    def elaborate(self, platform):
        m = Module()
        taken = Signal(signed(4), name="i")
        m.d.comb += [taken.eq(~self.i), self.o.eq(taken ^ Cat(self.i[0], self.i[0]))]
        m.d.comb += self.p.eq(Cat(self.i, taken[2].replicate(4)))
        with m.If(self.load):
            m.d.sync += self.kept.eq(self.i)
        with m.If(self.clear):
            m.d.sync += self.kept.eq(0)
        return m


def test_what_repeats_is_a_replication(tmp_path):
    text = to_verilog(_Extended(), "top")
    assert "{ {5{o[3]}} }" in text
    assert re.search(r"= \{ \{4\{\\i\$\d+ \[2\]\}\}, i \};", text), text
    assert "i[0], i[0] }" in text  # twice is no sign
    (tmp_path / "top.v").write_text(text)
    assert lint(tmp_path / "top.v", "top") == []


def test_registers_have_resets_and_enables():
    text = to_verilog(_Extended(), "top")
    assert re.search(r"@\(posedge clk\)\n    if \(\S+ \) kept <= 4'h0;\n    else if \(load\) kept <= i;\n", text), text


def test_text_is_repeatable():
    assert to_verilog(_Table([]), "top") == to_verilog(_Table([]), "top")


def test_hierarchical_names():
    text = (
        "module top(clk);\n  \\top.a$3  \\a$3  (\n    .clk(clk)\n  );\nendmodule\n"
        "module \\top.a$3 (clk);\n  reg [7:0] mem [3:0];\n  array #(\n    .W(32'd1)\n  ) inner (\n    .clk(clk)\n  );\n"
        "endmodule\nmodule array (clk);\n  reg [W-1:0] words [0:W-1];\nendmodule\n"
    )
    assert hierarchical_name(text, "top", "a.mem") == "\\a$3 .mem"
    assert hierarchical_name(text, "top", "a.inner.words") == "\\a$3 .inner.words"
    with pytest.raises(ValueError, match=r"^module 'top\.a\$3' has no 'b', only inner$"):
        hierarchical_name(text, "top", "a.b.words")


class _Delay(wiring.Component):
    """A register, or none."""

    def __init__(self, width, cycles):
        self._cycles = cycles
        super().__init__({"i": In(width), "o": Out(width)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(delay(m, ~self.i, self._cycles, name="register"))
        return m


class _Delays(wiring.Component):
    """Delays one behind the other, of so many cycles each."""

    def __init__(self, cycles):
        self._cycles = cycles
        super().__init__({"i": In(4), "o": Out(4)})

    def elaborate(self, platform):
        m = Module()
        value = self.i
        for number, cycles in enumerate(self._cycles):
            part = _Delay(4, cycles)
            m.submodules[f"part{number}"] = shared_module(platform, part, 4, cycles)
            m.d.comb += part.i.eq(value)
            value = part.o
        m.d.comb += self.o.eq(value)
        return m


def test_components_that_are_alike_are_elaborated_once():
    text = to_verilog(_Delays([1, 0, 1, 2, 0]), "top")
    instances = dict.fromkeys(re.findall(r"^  \\(top\._Delay\d*) +(\w+) \((.*?)\);", text, re.MULTILINE | re.DOTALL))
    kinds = [(module, ".clk(clk)" in ports) for module, _, ports in instances]
    assert [part for _, part, _ in instances] == [f"part{number}" for number in range(5)]
    once, none, twice = "top._Delay", "top._Delay1", "top._Delay2"
    assert kinds == [(once, True), (none, False), (once, True), (twice, True), (none, False)]
    assert sorted(re.findall(r"^module \\?(\S+)", text, re.MULTILINE)) == ["top(clk,", once, none, twice]


def test_components_that_are_alike_have_no_lint(tmp_path):
    (tmp_path / "top.v").write_text(to_verilog(_Delays([1, 0, 1]), "top"))
    assert not lint(tmp_path / "top.v", "top")
