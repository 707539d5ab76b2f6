"""Mutants in a simulation: the blocks that ``tilewright mutate`` names are there."""

import pytest

from tilewright.sim.dev.mutate import BLOCKS, Block
from tilewright.sim.dev.mutate_simulation import survivors_of_simulation


@pytest.mark.long
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_can_be_changed(name):
    count, survivors = survivors_of_simulation(BLOCKS[name], 6, 1)  # some in each module of the block
    assert count > len(survivors)


def test_a_block_that_there_is_not():
    with pytest.raises(RuntimeError, match=r"^there is no block harness\.dut\.unit\.none$"):
        survivors_of_simulation(Block(("unit.core.port", "unit.none"), "none", (), 1), 1, 1)
