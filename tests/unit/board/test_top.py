"""What lies where in a board's design. That it works is tested over its serial line, in tests/integration."""

from dataclasses import replace

import pytest

from tilewright.board.top import Board, BoardParams, board_regions
from tilewright.hw.bus.axi4_lite import Region
from tilewright.hw.tmau.params import TMAU_PRESETS


@pytest.mark.parametrize("preset", TMAU_PRESETS)
def test_regions(preset):
    board = Board(BoardParams(tmau=TMAU_PRESETS[preset]))
    assert board_regions(board.params) == (board.engine.regions, board.regions)


def test_addresses():
    engine, board = board_regions(BoardParams())
    assert engine == {"tmau": Region(None, 12), "smem": Region(15, 15)}
    assert board == {"engine": Region(None, 16), "commands": Region(16, 7), "memory": Region(17, 17)}


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("cycles_per_bit", 3, "cycles_per_bit must be 4 to 65536, not 3"),
        ("memory_bytes", 5000, "memory_bytes must be a power of two, not 5000"),
        ("memory_bytes", 1 << 25, "memory_bytes must be 4096 to 16777216, not 33554432"),
    ],
)
def test_wrong_parameters(field, value, sentence):
    with pytest.raises(ValueError, match=rf"^{sentence}$"):
        replace(BoardParams(), **{field: value})


def test_wrong_access_unit():
    with pytest.raises(TypeError, match=r"^tmau must be TmauParams, not 'ecp5'$"):
        BoardParams(tmau="ecp5")
