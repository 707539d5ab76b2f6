"""Yosys runs a script in a folder, and says in one sentence when it cannot."""

import pytest

from tilewright.sim.hdl.yosys import run_yosys


def test_files_of_the_folder(tmp_path):
    (tmp_path / "in.v").write_text("module top(input a, output b); assign b = ~a; endmodule\n")
    run_yosys(tmp_path, "read_verilog in.v\nwrite_rtlil out.il", "read it")
    assert "module \\top" in (tmp_path / "out.il").read_text()


def test_refusal(tmp_path):
    with pytest.raises(RuntimeError, match=r"(?s)^Yosys could not read it: .*missing\.v"):
        run_yosys(tmp_path, "read_verilog missing.v", "read it")
