"""Modules that are alike are written once."""

from tilewright.sim.hdl.shared_modules import share_modules

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
