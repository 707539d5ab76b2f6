"""What nextpnr prints and writes, read from short samples of it, and its refusals."""

import io
from copy import deepcopy

import pytest

from tilewright import progress
from tilewright.tools.fpga import flow as nextpnr
from tilewright.tools.fpga.flow import read_outcome, run_nextpnr

LOG = """\
Info: Packing constants..
Info: iter=28 steplen=1.980448 a=273.399139 penalty=[18.88, 18.88, 18.88, 18.88]
Info:   at iteration #5: temp = 0.000000, timing cost = 31, wirelen = 690
Info: Max frequency for clock '$glbnet$clock$TRELLIS_IO_IN': 154.51 MHz (PASS at 100.00 MHz)
Info:      59000 |     4012      54900 |  134   866 |    147283|       0.44       6.50|
"""
CLOCK = "posedge $glbnet$clock$TRELLIS_IO_IN"
ROUTED = {
    "fmax": {"$glbnet$clock$TRELLIS_IO_IN": {"achieved": 137.26, "constraint": 100}},
    "utilization": {"TRELLIS_COMB": {"available": 83640, "used": 66}, "ALU54B": {"available": 78, "used": 0}},
    "critical_paths": [
        {
            "from": CLOCK,
            "to": CLOCK,
            "path": [
                {"type": "clk-to-q", "delay": 0.395, "to": {"cell": "dut.a_TRELLIS_FF_Q"}},
                {"type": "routing", "delay": 1.123, "to": {"cell": "dut.b_LUT4_Z"}},
                {"type": "logic", "delay": 0.236, "to": {"cell": "dut.b_LUT4_Z"}},
                {"type": "routing", "delay": 0.5, "to": {"cell": "dut.b_TRELLIS_FF_Q"}},
                {"type": "setup", "delay": 0.0, "to": {"cell": "dut.b_TRELLIS_FF_Q"}},
            ],
        },
        {"from": "<async>", "to": CLOCK, "path": [{"type": "source", "delay": 0, "to": {"cell": "scan_in$tr_io"}}]},
    ],
    "detailed_net_timings": [
        {
            "net": "dut.n",
            "endpoints": [
                {"cell": "dut.b_TRELLIS_FF_Q", "port": "DI", "delay": [1.0, 2.25]},
                {"cell": "dut.c_TRELLIS_FF_Q", "port": "CE", "delay": [0.5, 0.75]},
            ],
        },
        {"net": "dut.e", "endpoints": [{"cell": "dut.b_TRELLIS_FF_Q", "port": "CE", "delay": [0.5, 1.5]}]},
    ],
}
PLACED = {"fmax": {}, "critical_paths": [], "utilization": ROUTED["utilization"]}


def test_what_was_routed():
    found = read_outcome(LOG, ROUTED)
    assert found.clock == 137.26
    assert found.used == {"TRELLIS_COMB": (66, 83640)}
    assert found.path == (
        ("dut.a_TRELLIS_FF_Q", 0.0, 0.395),
        ("dut.b_LUT4_Z", 1.123, 0.236),
        ("dut.b_TRELLIS_FF_Q", 0.5, 0.0),
    )
    assert found.arrivals == {"dut.b_TRELLIS_FF_Q": 2.25, "dut.c_TRELLIS_FF_Q": 0.75}


def test_what_was_placed_has_its_clock_in_the_log():
    found = read_outcome(LOG, PLACED)
    assert (found.clock, found.path, found.arrivals) == (154.51, (), {})


def test_pins_are_no_critical_path():
    found = deepcopy(ROUTED)
    del found["critical_paths"][0]
    assert read_outcome(LOG, found).path == ()


def test_no_clock():
    with pytest.raises(RuntimeError, match=r"^nextpnr gave up: it found no path between two registers$"):
        read_outcome("", PLACED)


def test_how_far_it_is():
    out = io.StringIO()
    with progress.shown(progress.Lines(out)), progress.work("it"):
        for line in LOG.splitlines():
            nextpnr._say(line)
    assert out.getvalue().splitlines() == [
        "it: packing",
        "it: placement, 28",
        "it: refinement, 5",
        "it: routing, 59,000",
    ]


def test_a_netlist_that_is_none(tmp_path):
    (tmp_path / "top.json").write_text("{}")
    with pytest.raises(RuntimeError, match=r"^nextpnr gave up: .*\S") as refusal:
        run_nextpnr(tmp_path)
    assert "\n" not in str(refusal.value)
