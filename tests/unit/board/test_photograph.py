"""A photograph on a board that is played by the golden model, and by one that makes a mistake."""

import numpy as np
import pytest

from tilewright.board.photograph import FRAME, move_photograph
from tilewright.board.top import BoardParams
from tilewright.golden import Machine, Memory

PARAMS = BoardParams()


class Model:
    """A ``BoardHost`` of a golden machine."""

    def __init__(self, wrong=None):
        self._memories = {"memory": np.zeros(PARAMS.memory_bytes, np.uint8),
                          "shared": np.zeros(PARAMS.tmau.smem.size_bytes, np.uint8)}  # fmt: skip
        self._machine = Machine(Memory(self._memories["memory"], "global memory"), self._memories["shared"])
        self._wrong = wrong

    def write(self, place, address, values):
        self._memories[place][address : address + len(values)] = values

    def read(self, place, address, count):
        found = self._memories[place][address : address + count].copy()
        if self._wrong == place:
            found[5] ^= 1
        return found.tobytes()

    def command(self, word):
        self._machine.execute(word)

    def wait(self):
        assert not self._machine.errors

    def register(self, name):
        return {"busy_cycles": 77}[name]


@pytest.mark.parametrize("shape", [(8, 128, 3), (40, 16, 3)])
def test_the_frame(shape):
    photo = np.random.default_rng(2).integers(1, 256, shape, np.uint8)
    moved = move_photograph(Model(), PARAMS, photo)
    across, down = FRAME
    expected = np.pad(photo, ((down, down), (across, across), (0, 0)))
    assert (moved.framed == expected).all()
    assert moved.cycles == 77


@pytest.mark.parametrize("place", ["memory", "shared"])
def test_a_wrong_byte(place):
    photo = np.full((8, 128, 3), 0x40, np.uint8)
    with pytest.raises(RuntimeError, match=rf"^1 bytes of {place} differ: the first, at 0x5, is \d+ and not \d+$"):
        move_photograph(Model(place), PARAMS, photo)


def test_a_photograph_that_is_too_large():
    photo = np.zeros((160, 128, 3), np.uint8)
    with pytest.raises(ValueError, match=r"^photograph and picture are \d+ bytes, too many for 131072 of memory$"):
        move_photograph(Model(), PARAMS, photo)
