"""Kernels over rows against numpy: both types, widths and numbers of rows that fill no block, and two engines."""

import numpy as np
import pytest

from support import kernels as reference
from support.kernels import any_bytes, equal, node
from tilewright.golden import PeSizes
from tilewright.network import arithmetic, functions
from tilewright.sim import kernels

ENGINES = [PeSizes(), PeSizes(threads=8, regs=128, lookup_words=1024)]
SEED = 56
TYPES = [np.uint8, np.int8]


@pytest.fixture
def rng():
    print(f"seed {SEED}")
    return np.random.default_rng(SEED)


@pytest.mark.parametrize("sizes", ENGINES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "scale"), [((2, 9, 197), 0.05), ((3, 16), 0.3), ((16, 31), 0.001)])
def test_softmax_of_bytes(rng, sizes, dtype, shape, scale):
    """Also rows of one value, and of numbers that are all negative."""
    x = any_bytes(rng, shape, dtype)
    x.reshape(-1, shape[-1])[0] = x.flat[0]
    x.reshape(-1, shape[-1])[1] = np.minimum(x.reshape(-1, shape[-1])[1], -3 if dtype is np.int8 else 2)
    table = functions.exponentials(np.float32(scale), shape[-1])
    zero = np.iinfo(dtype).min
    wanted = functions.softmax(x, node(dtype, table=table, scale=256, axes=-1, y_zero=zero), dtype)
    equal(kernels.softmax_bytes(x, np.float32(scale), sizes=sizes), wanted)


@pytest.mark.parametrize("shape", [(37, 100), (2, 3, 12), (5, 129)])
def test_softmax_of_floats(rng, shape):
    x = (rng.standard_normal(shape) * rng.choice([0.1, 1, 30], shape)).astype(np.float32)
    program = kernels.softmax_floats(x)
    wanted = reference.softmax_floats(x.reshape(-1, shape[-1])).reshape(shape)
    assert (program.run().view(np.uint32) == wanted.view(np.uint32)).all()
    assert np.abs(wanted - functions.softmax_of_floats(x, -1)).max() < 1e-6


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(21, 200), (2, 3, 7), (16, 33)])
def test_layer_norm(rng, centred, dtype, shape):
    x = any_bytes(rng, shape, dtype)
    x.reshape(-1, shape[-1])[0] = x.flat[0]  # no variance
    gain, shift = rng.standard_normal((2, shape[-1])).astype(np.float32)
    quants = (0.02, 7), (0.03, -3 if dtype is np.int8 else 100)
    program = kernels.layer_norm(x, gain, shift, x_quant=quants[0], y_quant=quants[1], centred=centred)
    rows = x.reshape(-1, shape[-1])
    wanted = reference.layer_norm(rows, gain, shift, *quants, 1e-5, dtype, centred=centred)
    equal(program, wanted.reshape(shape))
    assert len(np.unique(wanted)) > 20


@pytest.mark.parametrize("sizes", ENGINES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(2, 9, 100), (16, 32), (5, 33)])
def test_reductions(rng, sizes, dtype, shape):
    x = any_bytes(rng, shape, dtype)
    rows = x.reshape(-1, shape[-1])
    rows[0], rows[1], rows[2, -1] = np.minimum(rows[0], -5 if dtype is np.int8 else 3), rows[1, 0], np.iinfo(dtype).max
    equal(kernels.max_rows(x, sizes=sizes), x.max(axis=-1))
    equal(kernels.arg_max(x, sizes=sizes), x.argmax(axis=-1).astype(np.int32))
    sums = (x.astype(np.int32) - 3).sum(axis=-1, dtype=np.int32)
    equal(kernels.sum_rows(x, 3, sizes=sizes), sums)
    scale = np.float32(0.9 / shape[-1])
    wanted = arithmetic.requantise(sums, scale, 5, np.iinfo(dtype).min, np.iinfo(dtype).max, dtype)
    equal(kernels.mean_rows(x, scale, x_zero=3, y_zero=5, sizes=sizes), wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("width", [32, 35, 36, 63, 64, 65, 67, 96, 129, 200, 255, 257])
def test_the_first_of_equal_elements(rng, dtype, width):
    """Anywhere, also as the last four, of which a chunk has some or none; and in rows of the lowest number."""
    low = np.iinfo(dtype).min
    x = (rng.integers(0, 3, (33, width)) + low).astype(dtype)
    x[:8] = low
    x[range(8), [0, 1, 31, width - 4, width - 3, width - 2, width - 1, width // 2]] = low + 1
    x[8], x[9] = low, np.iinfo(dtype).max
    x[10] = np.sort(x[10])
    equal(kernels.arg_max(x), x.argmax(axis=-1).astype(np.int32))
