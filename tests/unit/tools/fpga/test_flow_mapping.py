"""A block in cells of an ECP5 does what its Verilog does: Yosys proves it for the first cycles after a reset."""

from functools import partial
from pathlib import Path

import pytest

from support.fences import fences
from tilewright.hw.bus.registers import Counters
from tilewright.hw.bus.write_port import WriteGuard
from tilewright.hw.pe.issue.scoreboard import Scoreboard
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.tmau.dispatch import GroupTracker
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.pixel import PixelWalker
from tilewright.sim.hdl.verilog import run_yosys
from tilewright.tools.fpga.flow import map_flat

_REPORTS = Path(__file__).parents[4] / "docs/upstream.md"
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
    map_flat(make(), "ecp5", tmp_path)
    run_yosys(tmp_path, "read_json top.json\nwrite_verilog -noattr cells.v", "write it")
    run_yosys(tmp_path, _PROOF.format(cycles=cycles), "prove it")


def test_a_netlist_that_abc_got_wrong_is_refused(tmp_path):
    (text,) = [block.text for block in fences(_REPORTS.read_text()) if block.language == "verilog"]
    (tmp_path / "top.v").write_text(text)
    with pytest.raises(RuntimeError, match=r"^Yosys could not map it: what ABC has made of it does something else$"):
        run_yosys(tmp_path, "read_verilog top.v\nsynth_ecp5 -top top", "map it")
