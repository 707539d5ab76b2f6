"""The integer DCT: its matrix is that of cosines, and nothing is lost on the way back."""

import numpy as np

from tilewright.sim.workloads.products import MATRIX, restored, rounded


def transformed(pixels):
    """Coefficients of blocks of int8 pixels as the workload computes them."""
    columns = MATRIX.astype(np.int64) @ pixels
    kept = rounded(columns)
    assert np.abs(columns).max() < 1 << 17
    return kept.astype(np.int64) @ MATRIX.T.astype(np.int64)


def test_matrix_is_orthogonal_but_for_rounding():
    product = MATRIX.astype(np.int64) @ MATRIX.T
    assert np.abs(product - (1 << 14) * np.eye(8)).max() < 1 << 8


def test_flat_block_has_one_coefficient():
    coefficients = transformed(np.full((1, 8, 8), 100, np.int8))
    assert abs(coefficients[0, 0, 0] / (1 << 12) - 800) < 12
    assert np.count_nonzero(coefficients) == 1


def test_every_block_comes_back():
    numbers = np.random.default_rng(3)
    blocks = numbers.integers(-128, 128, (2000, 8, 8), np.int8)
    # The largest coefficients: black and white where a wave down times one across is negative and positive.
    waves = MATRIX[:, np.newaxis, :, np.newaxis].astype(int) * MATRIX[:, np.newaxis]
    extremes = np.where(waves < 0, -128, 127).astype(np.int8).reshape(-1, 8, 8)
    for pixels in (blocks, extremes, ~extremes):
        assert (restored(transformed(pixels)) == pixels.astype(np.int64) + 128).all()
