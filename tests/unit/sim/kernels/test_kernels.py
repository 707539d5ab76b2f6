"""Kernels on the golden model against numpy: all types, widths and numbers of rows that fill no block, refusals."""

from types import SimpleNamespace

import numpy as np
import pytest

from support import kernels as reference
from tilewright.golden import PeSizes
from tilewright.network import arithmetic, functions
from tilewright.sim import kernels

SEED = 56
TYPES = [np.uint8, np.int8]
ENGINES = [PeSizes(), PeSizes(threads=8, regs=128, lookup_words=1024)]


@pytest.fixture
def rng():
    print(f"seed {SEED}")
    return np.random.default_rng(SEED)


def any_bytes(rng, shape, dtype):
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def node(dtype, **fields):
    limits = np.iinfo(dtype)
    return SimpleNamespace(minimum=limits.min, maximum=limits.max, **fields)


def equal(program, wanted):
    result = program.run()
    assert result.dtype == wanted.dtype and result.shape == wanted.shape
    assert (result == wanted).all()


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


@pytest.mark.parametrize("shape", [(37, 100), (2, 3, 8), (5, 129)])
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
@pytest.mark.parametrize("shape", [(5, 40), (8,), (3, 136)])
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


BYTES = np.zeros((4, 64), np.uint8)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: kernels.softmax_bytes(BYTES[:, :15], 1), ValueError, "x must have 16 columns or more, not 15"),
        (lambda: kernels.softmax_bytes(BYTES.astype(np.int32), 1), TypeError,
         "x must have elements of uint8 or int8, not int32"),
        (lambda: kernels.softmax_floats(BYTES), TypeError, "x must have elements of float32, not uint8"),
        (lambda: kernels.max_rows(BYTES[:, :31]), ValueError, "x must have 32 columns or more, not 31"),
        (lambda: kernels.function_bytes(BYTES, BYTES[0]), ValueError, "table must have 256 entries, not 64"),
        (lambda: kernels.product_bytes(BYTES, BYTES[:3], a_zero=0, b_zero=0, scale=1, y_zero=0), ValueError,
         "b must broadcast to the shape (4, 64) of a, not (3, 64)"),
        (lambda: kernels.gather_rows(BYTES, BYTES[0]), TypeError,
         "index must be int32 with one dimension, not uint8 with 1"),
        (lambda: kernels.layer_norm(BYTES, [1], [1], x_quant=(1, 0), y_quant=(1, 0)), ValueError,
         "gain must have a number for each of 64 columns, not shape (1,)"),
        (lambda: kernels.lstm_gates([BYTES] * 3, BYTES, gate_quant=(1, 0), h_quant=(1, 0)), ValueError,
         "gates must be four arrays of one shape and type"),
        (lambda: kernels.gru_gates([BYTES] * 4, BYTES, gate_quant=(1, 0), y_quant=(1, 0)), ValueError,
         "the state must be float32 of shape (4, 64), of a multiple of 8 elements"),
        (lambda: kernels.kernel_text("softmax"), ValueError, "there is no kernel 'softmax': there are arg_max, "),
        (lambda: kernels.softmax_bytes(BYTES, 1, sizes=PeSizes(kernel_words=64)), ValueError,
         "kernel softmax_bytes has 136 instructions, and instruction memory 64"),
        (lambda: kernels.softmax_bytes(BYTES, 1, sizes=PeSizes(uniform_regs=4)), ValueError,
         "kernel softmax_bytes has 8 arguments, and the engine 4 registers"),
        (lambda: kernels.softmax_bytes(BYTES, 1, smem_bytes=128), ValueError,
         "128 bytes of shared memory do not hold all operands: split the product"),
    ],
)  # fmt: skip
def test_refusals(call, error, sentence):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(sentence)


def test_a_kernel_that_the_engine_cannot_run():
    program = kernels.softmax_bytes(BYTES, 1, sizes=PeSizes(units=("alu",)))
    with pytest.raises(RuntimeError, match=r"^kernel softmax_bytes met Fault\(code=<PeError.UNSUPPORTED: 2>"):
        program.run()


def test_counts_are_of_the_kernel_alone():
    counts = kernels.gather_rows(np.zeros((32, 64), np.uint8), np.arange(16, dtype=np.int32)).instructions()
    assert counts == {"mov": 3, "loop": 2, "ld": 5, "arith": 3, "st": 2, "end": 2, "return": 1}


def test_every_kernel_has_a_program_and_a_header():
    assert len(kernels.KERNELS) == 13
    for name in kernels.KERNELS:
        text = kernels.kernel_text(name)
        assert text.startswith("// ") and "ur0" in text.split("\n\n")[0]
