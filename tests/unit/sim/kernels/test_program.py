"""Programs of kernels: refusals, counts, and the files of the texts."""

import numpy as np
import pytest

from tilewright.golden import PeSizes
from tilewright.sim import kernels

BYTES = np.zeros((4, 64), np.uint8)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: kernels.softmax_bytes(BYTES[:, :15], 1), ValueError, "x must have 16 columns or more, not 15"),
        (lambda: kernels.softmax_bytes(BYTES.astype(np.int32), 1), TypeError,
         "x must have elements of uint8 or int8, not int32"),
        (lambda: kernels.softmax_floats(BYTES), TypeError, "x must have elements of float32, not uint8"),
        (lambda: kernels.arg_max(BYTES[:, :31]), ValueError, "x must have 32 columns or more, not 31"),
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
         "the state must be float32 of shape (4, 64), not an array of shape (4, 64) and uint8"),
        (lambda: kernels.kernel_text("softmax"), ValueError, "there is no kernel 'softmax': there are arg_max, "),
        (lambda: kernels.softmax_bytes(BYTES, 1, sizes=PeSizes(kernel_words=64)), ValueError,
         "kernel softmax_bytes has 247 instructions, and instruction memory 64"),
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
    assert len(kernels.KERNELS) == 15
    for name in kernels.KERNELS:
        text = kernels.kernel_text(name)
        assert text.startswith("// ") and "ur0" in text.split("\n\n")[0]
