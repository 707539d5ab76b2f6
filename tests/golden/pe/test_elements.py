"""Types of products by name, and which arrays fit them: numbers, raw bits, and either byte order."""

import ml_dtypes
import numpy as np
import pytest

from tilewright import golden
from tilewright.golden.pe.elements import mm_type
from tilewright.golden.spec.pe.instruction import MmType, Operation

A = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
B = np.arange(-4, 4, dtype=np.int8).reshape(4, 2)


def test_names():
    assert {mm_type(kind.name.lower()) for kind in MmType} == set(MmType)
    assert [mm_type(name) for name in ("s8", "u8", "s16", "u16", "fp16", "BF16", 3, MmType.F16)] == [
        MmType.S8S8, MmType.U8U8, MmType.S16S16, MmType.U16U16, MmType.F16, MmType.BF16, MmType.U8U8, MmType.F16,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "a", "b", "result"),
    [
        ("s8s8", np.int8, np.int8, np.int32),
        ("u8u8", np.uint8, np.uint8, np.uint32),
        ("s16u16", np.int16, np.uint16, np.uint32),
        ("s16s16", np.int16, np.int16, np.int32),
        ("fp16", np.float16, np.float16, np.float32),
        ("bf16", ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32),
    ],
)
def test_products_have_numpys_types(name, a, b, result):
    a, b = np.abs(A).astype(a), np.abs(B).astype(b)
    c = golden.multiply(a, b, name)
    assert c.dtype == result
    assert (c == np.abs(A).astype(int) @ np.abs(B).astype(int)).all()
    assert (c.view(np.uint32) == golden.gemm_program(a, b, name).run()).all()


@pytest.mark.parametrize(("name", "kind"), [("s16s16", "i2"), ("u16u16", "u2"), ("fp16", "f2")])
def test_big_endian_arrays_give_the_same_product(name, kind):
    a, b = np.abs(A).astype(kind), np.abs(B).astype(kind)
    assert (golden.multiply(a.astype(f">{kind}"), b.astype(f">{kind}"), name) == golden.multiply(a, b, name)).all()


def test_a_summand_of_either_byte_order():
    c = np.arange(6).reshape(3, 2)
    expected = A.astype(int) @ B.astype(int) + c
    for kind in ("<i4", ">i4", "<u4"):
        assert (golden.multiply(A, B, "s8s8", c.astype(kind)) == expected).all()


def test_names_wherever_a_user_gives_one():
    assert golden.dot([1], [2], [3], "s8s8").tolist() == [7]
    assert golden.instruction_word("halt") == golden.instruction_word(Operation.HALT)
    machine = golden.Machine(golden.Memory(64), np.zeros(64, np.uint8))
    machine.barrier("init", 8, 1)
    assert machine.barrier("arrive", 8, 1) is True
    for call, sentence in (
        (lambda: golden.dot([1], [2], [3], "s9"), "type must be one of s8s8, s8u8, "),
        (lambda: golden.instruction_word("stop"), "operation must be one of mm, ld, st, "),
        (lambda: machine.barrier("arive", 8, 1), "op must be one of init, arrive, expect_tx, complete_tx, try_wait, "),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            call()


def test_raw_bits_are_unsigned():
    a, b = A.astype(np.float16), B.astype(np.float16)
    raw = golden.multiply(a.view(np.uint16), b.view(np.uint16), "f16")
    assert (raw == golden.multiply(a, b, "f16")).all()


@pytest.mark.parametrize(
    ("kind", "arguments", "options", "sentence"),
    [
        (TypeError, (A.astype("f2"), B.astype("f2"), "s16u16"), {},
         "a must be an array of int16, or uint16 as raw bits, for type s16u16, not an array of shape (3, 4) and "
         "float16"),
        (TypeError, (A.astype("i2"), B.astype("f2"), "f16"), {},
         "a must be an array of float16, or uint16 as raw bits, for type f16, not an array of shape (3, 4) and int16"),
        (TypeError, (A, B, "s8u8"), {},
         "b must be an array of uint8 for type s8u8, not an array of shape (4, 2) and int8"),
        (TypeError, (A, B, "s16s16"), {},
         "a must be an array of int16, or uint16 as raw bits, for type s16s16, not an array of shape (3, 4) and int8"),
        (TypeError, ([[1]], B, "s8s8"), {}, "a must be a numpy array, not [[1]]"),
        (ValueError, (A[:0], B, "s8s8"), {}, "a must not be empty, with shape (0, 4)"),
        (ValueError, (A[0], B, "s8s8"), {}, "a must have K and at least one more dimension, not shape (4,)"),
        (ValueError, (A, B, "s8s9"), {},
         "type must be one of s8s8, s8u8, u8s8, u8u8, s16s16, s16u16, u16s16, u16u16, f16, bf16, not 's8s9'; "
         "did you mean 's8s8'?"),
        (ValueError, (A, B, "s8s8"), {"c": np.zeros((2, 3), np.int32)},
         "c must have the shape (3, 2) of the product, not (2, 3)"),
        (TypeError, (A, B, "s8s8"), {"c": np.zeros((3, 2))},
         "c must be an array of int32, or uint32 as raw bits, for type s8s8, not an array of shape (3, 2) and float64"),
        (ValueError, (A, B, "s8s8"), {"swizzle": "16B"}, "swizzle must be one of none, 32B, 64B, 128B, not '16B'"),
        (ValueError, (A, B, "s8s8"), {"size_bytes": -1}, "size_bytes must be 0 or more, not -1"),
        (ValueError, (A, B, "s8s8"), {"ka": 5}, "ka must be 1 to 4, not 5"),
        (TypeError, (A, B, "s8s8"), {"depth": "x"}, "depth must be an integer, not 'x'"),
        (TypeError, (A, B, "s8s8"), {"accumulate": True},
         "there is no option 'accumulate' of a product: there are ka, kb, transpose, order, depth"),
        (TypeError, (A, B, "s8s8"), {"page_log2": 3},
         "page_log2 must have three entries, for A, B and C, not 3"),
        (TypeError, (A, B, "s8s8"), {"sizes": "unit"},
         "sizes must be golden.PeSizes, or have its attributes, not 'unit'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_sentence(kind, arguments, options, sentence):
    with pytest.raises(kind) as caught:
        golden.multiply(*arguments, **options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("kind", "call", "sentence"),
    [
        (ValueError, lambda: golden.PeSizes(threads=0), "threads must be 1 or more, not 0"),
        (TypeError, lambda: golden.PeSizes(regs="x"), "regs must be an integer, not 'x'"),
        (TypeError, lambda: golden.Pe(b"", golden.PeSizes()),
         "smem must be a contiguous one-dimensional uint8 array, not b''"),
        (TypeError, lambda: golden.Pe(np.zeros(64, np.uint8), 3),
         "sizes must be golden.PeSizes, or have its attributes, not 3"),
        (TypeError, lambda: golden.Pe(np.zeros(64, np.uint8)).execute("halt"),
         "word must be an integer of 128 bits, not 'halt'"),
    ],
)  # fmt: skip
def test_what_is_no_engine_and_no_instruction(kind, call, sentence):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence


def test_a_program_says_what_it_is():
    program = golden.gemm_program(A, B, "s8s8", swizzle="64B")
    assert (
        repr(program)
        == f"Program(3 × 4 times 4 × 2, s8s8: {len(program.words)} instructions, 131072 bytes of shared memory)"
    )
