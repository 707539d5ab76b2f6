"""Bus words of commands, by hand."""

import pytest

from tilewright.golden import TensorMap
from tilewright.sim.replay.commands import needed_words
from tilewright.spec import Opcode, Reduction

TILE = TensorMap(element="u8", size=(16, 8), stride=(64,), box=(16, 4))
PIXELS = TensorMap(element="u8", size=(16, 8, 2), stride=(64, 512), mode="im2col", channels=16, pixels=3, lower=(0,),
                   upper=(-1,))  # fmt: skip

INWARD = {"source": 0, "source_space": 0, "destination": 0, "destination_space": 1}
ACROSS = INWARD | {"destination_space": 0}


@pytest.mark.parametrize(
    ("opcode", "tmap", "fields", "words"),
    [
        (Opcode.LOAD, TILE, {"coords": (0, 6)}, (2, 0)),
        (Opcode.LOAD, PIXELS, {"coords": (0, 5, 1), "offsets": (1,)}, (2, 0)),
        (Opcode.STORE, TILE, {"coords": (0, 0), "fill": 1}, (0, 4)),
        (Opcode.REDUCE, TILE, {"coords": (0, 0), "smem": 128}, (4, 4)),
        (Opcode.PREFETCH, TILE, {"coords": (0, 0)}, (0, 0)),
        (Opcode.COPY_BLOCK, None, INWARD | {"source": 48, "size": 96}, (3, 0)),
        (Opcode.COPY_BLOCK, None, ACROSS | {"destination": 32, "size": 64}, (1, 2)),
        (Opcode.COPY_BLOCK, None, ACROSS | {"destination": 32, "size": 64, "reduction": Reduction.ADD}, (3, 2)),
        (Opcode.COPY_BLOCK, None, INWARD | {"size": 0}, (0, 0)),
        (Opcode.COMMIT, None, {}, (0, 0)),
    ],
)  # fmt: skip
def test_words_that_must_be_read_and_written(opcode, tmap, fields, words):
    assert needed_words(opcode, tmap, fields, 64, 48) == words
