"""Higher ranks: A (m × x × k) times B (k × n × y × z) against numpy's product of the tensors."""

import numpy as np
import pytest

from tilewright.golden.pe.machine import PeSizes
from tilewright.golden.pe.program import gemm_program
from tilewright.golden.pe.ranks import gemm_of_shapes, laid_out
from tilewright.golden.spec.pe.instruction import MmType

SHAPES = {
    "seed": ((3, 5, 20), (20, 2, 3, 4)),
    "only A": ((2, 2, 3, 9), (9, 7)),
    "only B": ((7, 33), (33, 3, 6)),
    "ones": ((1, 4, 1, 17), (17, 1, 5, 1)),
    "wider than the threads": ((2, 9, 24), (24, 2, 3, 19)),
}


@pytest.mark.parametrize("transpose", [0, 1])
@pytest.mark.parametrize(("ka", "kb"), [(1, 1), (2, 1), (3, 2), (1, 4)])
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES.values(), ids=SHAPES)
def test_against_numpy(a_shape, b_shape, ka, kb, transpose):
    rng = np.random.default_rng([20261121, ka, kb, transpose])
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in (a_shape, b_shape))
    expected = np.tensordot(a.astype(int), b.astype(int), 1)
    order = "columns" if ka > 1 else "k"
    program = gemm_program(a, b, MmType.S8S8, ka=ka, kb=kb, transpose=transpose, order=order, sizes=PeSizes(12, 48))
    assert program.shape == (*a_shape[:-1], *b_shape[1:])
    assert (program.run().view(np.int32) == expected).all()


def test_accumulated():
    rng = np.random.default_rng(20261121)
    a, b = rng.integers(0, 256, (3, 4, 10), np.uint8), rng.integers(0, 256, (10, 3, 5), np.uint8)
    c = rng.integers(0, 1 << 32, (3, 4, 3, 5), np.uint32)
    for transpose in (0, 1):
        program = gemm_program(a, b, MmType.U8U8, c=c, ka=2, transpose=transpose, sizes=PeSizes(12, 32))
        assert (program.run() == c + np.tensordot(a.astype(np.uint32), b.astype(np.uint32), 1)).all()


def test_k_is_the_last_dimension_in_memory_or_the_last_but_one():
    b = np.arange(24).reshape(2, 3, 4)  # k, n, y
    assert laid_out(b, 0).shape == (3, 4, 2)
    assert laid_out(b, 1).shape == (3, 2, 4)
    assert (laid_out(b, 0)[..., 1] == b[1]).all()
    assert (laid_out(b, 1)[:, 1] == b[1]).all()


def test_k_must_agree():
    with pytest.raises(ValueError, match="A has 3 elements along K, and B 4"):
        gemm_of_shapes((2, 3), (4, 2), MmType.S8S8)
