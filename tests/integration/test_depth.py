"""The depth of a whole top, flattened: a chain of ready and valid through several blocks shows nowhere else."""

import pytest

from tilewright.results import record
from tilewright.sim.hdl.tops import top_component
from tilewright.tools.fpga.blocks import flat_figures, flat_lines
from tilewright.tools.fpga.flow import map_flat

#: Four-input tables that follow one another at most, for presets meant for an FPGA. It was 19 with one chain of ready
#: through the whole access unit; the aim is 10. docs/fpga.md, "Sizes", says what it is.
LEVELS = {("tmau", "ecp5"): 10, ("pe", "ecp5"): 10, ("conv", "ecp5"): 12, ("core", "ecp5"): 10}


@pytest.mark.long
@pytest.mark.parametrize(("top", "preset"), LEVELS)
def test_flattened_depth(top, preset, tmp_path):
    figures = flat_figures(map_flat(top_component(top, preset), "ecp5", tmp_path).module, "ecp5")
    record(f"flat-{top}-{preset}-ecp5", **figures["cells"], levels=figures["levels"])
    assert figures["levels"] <= LEVELS[top, preset], "\n".join(flat_lines(figures))
