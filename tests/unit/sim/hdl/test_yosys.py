"""Yosys runs a script in a folder, and says in one sentence when it cannot."""

import pytest

from tilewright.sim.hdl.yosys import run_yosys


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
