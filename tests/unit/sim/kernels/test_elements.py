"""Kernels over elements against numpy: both types, all ways to broadcast, shapes that fill no block."""

import numpy as np
import pytest

from support import kernels as reference
from support.kernels import any_bytes, equal, node
from tilewright.network import arithmetic
from tilewright.sim import kernels

SEED = 56
TYPES = [np.uint8, np.int8]


@pytest.fixture
def rng():
    print(f"seed {SEED}")
    return np.random.default_rng(SEED)


#: Shapes of two tensors that broadcast in every way.
SHAPES = [
    ((3, 10, 33), (3, 10, 33)), ((3, 10, 33), (33,)), ((3, 10, 33), (10, 33)), ((3, 10, 32), (3, 10, 1)),
    ((2, 8, 4, 16), (8, 1, 1)), ((2, 8, 5, 7), (1, 8, 1, 1)), ((3, 10, 33), (3, 1, 33)), ((3, 4, 5), ()),
    ((4, 3, 256), (3, 1)), ((200,), (200,)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shapes", SHAPES)
def test_sums_and_products(rng, dtype, shapes):
    a, b = (any_bytes(rng, shape, dtype) for shape in shapes)
    numbers = {"a_zero": 3, "b_zero": -4, "scale": np.float32(0.007), "y_zero": 9}
    wanted = arithmetic.multiply(a, b, node(dtype, **numbers), dtype)
    equal(kernels.product_bytes(a, b, **numbers), wanted)
    ratio, offset = arithmetic.sum_constants((np.float32(0.02), 3), (np.float32(0.013), 5), (np.float32(0.05), 9))
    wanted = arithmetic.add(a, b, node(dtype, ratio=ratio, offset=offset), dtype)
    equal(kernels.sum_bytes(a, b, ratio=ratio, offset=offset), wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(7, 130), (40, 64), (3,)])
def test_functions_and_rearrangements(rng, dtype, shape):
    x, table = any_bytes(rng, shape, dtype), any_bytes(rng, 256, dtype)
    equal(kernels.function_bytes(x, table), table[x.view(np.uint8)])
    matrix = x.reshape(-1, shape[-1])
    equal(kernels.transpose_bytes(matrix), np.ascontiguousarray(matrix.T))
    index = rng.integers(-1, len(matrix) + 1, 37).astype(np.int32)
    inside = (index >= 0) & (index < len(matrix))
    wanted = np.where(inside[:, np.newaxis], matrix[np.where(inside, index, 0)], dtype(0))
    equal(kernels.gather_rows(matrix, index), wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(5, 41), (8,), (3, 137)])
def test_gates(rng, dtype, shape):
    gates = [any_bytes(rng, shape, dtype) for _ in range(4)]
    state = (rng.standard_normal(shape) * 2).astype(np.float32)
    quants = (0.05, 3), (1 / 127, 0 if dtype is np.int8 else 128)
    program = kernels.lstm_gates(gates, state, gate_quant=quants[0], h_quant=quants[1])
    following, wanted = reference.lstm(gates, state, *quants, dtype)
    equal(program, wanted)
    assert (program.read_argument(4, program.final_memory()) == following.reshape(-1)).all()
    program = kernels.gru_gates(gates, state, gate_quant=quants[0], y_quant=quants[1])
    following, wanted = reference.gru(gates, state, *quants, dtype)
    equal(program, wanted)
    assert (program.read_argument(4, program.final_memory()) == following.reshape(-1)).all()
