"""Verilator's points, counted by kind and module."""

from tilewright.sim.hdl.cocotb_run import code_coverage

POINT = "C '\x01f\x02design.v\x01l\x02{line}\x01page\x02v_{kind}/{module}\x01h\x02testbench' {count}\n"


def test_points_are_counted(tmp_path):
    points = [
        ("line", "dut.a", 3),
        ("line", "dut.b", 0),
        ("branch", "dut.a", 1),
        ("line", "monitor", 0),
        ("user", "dut", 0),
    ]
    text = "".join(
        POINT.format(line=n, kind=kind, module=module, count=count) for n, (kind, module, count) in enumerate(points)
    )
    (tmp_path / "coverage.dat").write_text(f"# SystemC::Coverage-3\n{text}")
    assert code_coverage(tmp_path / "coverage.dat", "dut") == {"line": (1, 2), "branch": (1, 1)}
