"""Pages that the access unit moves hold what lies there and nothing else, on golden: also of odd numbers of rows."""

import numpy as np
import pytest

from tilewright.golden import Machine, Memory, command_word
from tilewright.hw.core.params import CORE_PRESETS
from tilewright.sim.session.products import CoreProduct
from tilewright.spec.pe import MmType

SEED = 3
PARAMS = CORE_PRESETS["unit"]


@pytest.mark.parametrize("shape", [(8, 32, 4), (5, 32, 4), (3, 80, 12), (1, 16, 8)])
def test_pages_come_in_any_order(shape):
    """Nothing beyond an operand is written, so that an order of loads is as good as another one."""
    m, k, n = shape
    rng, gmem, end = np.random.default_rng(SEED), np.zeros(1 << 16, np.uint8), [0]
    a, b = (rng.integers(-128, 128, size, np.int8) for size in ((m, k), (k, n)))

    def place(array):
        address = -(-end[0] // 128) * 128
        data = np.frombuffer(bytes(array), np.uint8)
        gmem[address : address + len(data)] = data
        end[0] = address + len(data)
        return address

    product = CoreProduct(a, b, MmType.S8S8, PARAMS, place)
    placed = product.program.placement
    moves = [move for segment in (0, 1, 3) for move in product.moves[segment]]
    for order in (moves, moves[::-1]):
        smem = np.full(PARAMS.smem.size_bytes, 0xA5, np.uint8)
        machine = Machine(Memory(gmem), smem, PARAMS.tmau.bus_bytes, PARAMS.tmau.addr_width)
        words = [command_word(**move.command(place(move.tmap.pack()))) for move in order]
        assert all(machine.execute(word) is not None for word in words), machine.errors
        for segment in (0, 1, 3):
            assert (placed.get(segment, smem) == placed.get(segment)).all(), f"segment {segment}"
