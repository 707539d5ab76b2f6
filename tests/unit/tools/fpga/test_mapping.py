"""A block in cells of an ECP5 does what its Verilog does: Yosys proves it for the first cycles after a reset."""

import json
from functools import partial

import pytest

from tilewright.hw.bus.registers import Counters
from tilewright.hw.bus.write_port import WriteGuard
from tilewright.hw.pe.issue.scoreboard import Scoreboard
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.tmau.dispatch import GroupTracker
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.pixel import PixelWalker
from tilewright.sim.hdl.verilog import run_yosys
from tilewright.tools.fpga.mapping import map_flat

_TMAU = TMAU_PRESETS["unit"]
_READ = "hierarchy -top top\nproc\nflatten\nmemory -nomap\nmemory_map\nopt -fast\n"
#: Two cycles of reset, then cycles in which anything may come in.
_PROOF = f"""
read_rtlil top.il
{_READ}rename top wanted
design -stash wanted
read_verilog cells.v
read_verilog -nooverwrite +/lattice/cells_sim_ecp5.v
{_READ}rename top made
design -stash made
design -copy-from wanted -as wanted wanted
design -copy-from made -as made made
async2sync
miter -equiv -flatten wanted made both
hierarchy -top both
opt -fast
sat -verify -set-init-zero -set-at 1 in_rst 1 -set-at 2 in_rst 1 -prove trigger 0 -prove-skip 2 -seq {{cycles}} both
"""


def compare(component, folder, cycles):
    module = map_flat(component, "ecp5", folder).module
    for cell in module["cells"].values():
        # Nothing may be driven by an output, for Yosys, and nothing is.
        if cell["type"] == "CCU2C" and cell["connections"]["COUT"] == ["x"]:
            del cell["connections"]["COUT"]
    (folder / "cells.json").write_text(json.dumps({"modules": {"top": module}}))
    run_yosys(folder, "read_json cells.json\nwrite_verilog -noattr cells.v", "write it")
    run_yosys(folder, _PROOF.format(cycles=cycles), "prove it")


@pytest.mark.parametrize(
    ("make", "cycles"),
    [
        pytest.param(partial(WriteGuard, addr_width=_TMAU.addr_width, bus_bytes=_TMAU.bus_bytes), 7, id="WriteGuard"),
        pytest.param(partial(Counters, {"strobes": 1, "bytes": 5}), 7, id="Counters"),
        pytest.param(partial(GroupTracker, _TMAU), 6, id="GroupTracker"),
        pytest.param(partial(Scoreboard, PE_PRESETS["unit"]), 5, id="Scoreboard"),
        pytest.param(partial(PixelWalker, _TMAU), 6, id="PixelWalker", marks=pytest.mark.long),
    ],
)
def test_cells_do_what_the_verilog_does(tmp_path, make, cycles):
    compare(make(), tmp_path, cycles)
