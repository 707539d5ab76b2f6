"""Sizes of the shared memory: what follows from them, and those that cannot be."""

import pytest

from tilewright.hw.smem.params import SmemParams


def test_sizes():
    params = SmemParams(32 * 1024)
    assert (params.addr_width, params.row_width, params.rows, params.chunks_a_cycle, params.writes_a_cycle) == (
        15,
        8,
        256,
        8,
        8,
    )
    assert params.replace(chunks_a_cycle=4, writes_a_cycle=2) == SmemParams(32 * 1024, 4, 2)


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"size_bytes": 1.5}, TypeError, "size_bytes must be an int, not 1.5"),
        ({"size_bytes": 512}, ValueError, "size_bytes must be a power of two from 1024 to 1048576, not 512"),
        ({"size_bytes": 3072}, ValueError, "size_bytes must be a power of two from 1024 to 1048576, not 3072"),
        ({"chunks_a_cycle": 2}, ValueError, "chunks_a_cycle must be 4 or 8, not 2"),
        ({"chunks_a_cycle": None}, ValueError, "chunks_a_cycle must be 4 or 8, not None"),
        ({"writes_a_cycle": 1}, ValueError, "writes_a_cycle must be 2, 4 or 8, not 1"),
    ],
)
def test_mistakes(changes, error, sentence):
    with pytest.raises(error, match=f"^{sentence}$"):
        SmemParams(**changes)
