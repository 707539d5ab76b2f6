"""Dot products against the steps of docs/pe.md and exact sums; types and refusals of products of arrays."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from support.pe_operands import dot_rows
from tilewright import golden
from tilewright.golden.dot_product import WINDOW, dot, mm_type
from tilewright.spec.pe import MmType, Operation

SEED = 14
ROWS = 4000
ELEMENTS = 4
FLOATS = {MmType.F16: np.float16, MmType.BF16: ml_dtypes.bfloat16}
INTEGERS = [kind for kind in MmType if not kind.is_float]
FP32 = (8, 23)
FORMATS = {MmType.F16: (5, 10), MmType.BF16: (8, 7)}
NAN, INFINITY = 0x7FC00000, 0x7F800000


# --- docs/pe.md, "Numbers", step by step ----------------------------------------------------------------------------


def unpack(bits, fmt):
    """Sign, M, the exponent of M's last place; "nan" or "infinite" instead of M."""
    exponent_bits, mantissa_bits = fmt
    sign = -1 if bits >> exponent_bits + mantissa_bits & 1 else 1
    exponent, mantissa = bits >> mantissa_bits & (1 << exponent_bits) - 1, bits & (1 << mantissa_bits) - 1
    if exponent == (1 << exponent_bits) - 1:
        return sign, "nan" if mantissa else "infinite", 0
    bias = (1 << exponent_bits - 1) - 1
    if exponent:
        mantissa += 1 << mantissa_bits
    return sign, mantissa, max(exponent, 1) - bias - mantissa_bits


def terms_of(accumulator, a, b, fmt):
    """(sign, M, exponent, place of the top); step 1's outcome as a string if there is one."""
    terms = [(*unpack(accumulator, FP32), FP32[1])]
    for x, y in zip(a, b, strict=True):
        (x_sign, x_size, x_exponent), (y_sign, y_size, y_exponent) = unpack(x, fmt), unpack(y, fmt)
        sizes = {x_size, y_size}
        if "nan" in sizes or sizes == {"infinite", 0}:
            size = "nan"
        else:
            size = "infinite" if "infinite" in sizes else x_size * y_size
        terms.append((x_sign * y_sign, size, x_exponent + y_exponent, 2 * fmt[1] + 1))
    return terms


def by_the_text(accumulator, a, b, kind):
    terms = terms_of(accumulator, a, b, FORMATS[kind])
    infinities = {sign for sign, size, _, _ in terms if size == "infinite"}
    if any(size == "nan" for _, size, _, _ in terms) or len(infinities) == 2:
        return NAN
    if infinities:
        return INFINITY if infinities == {1} else INFINITY | 1 << 31
    nonzero = [term for term in terms if term[1]]
    if not nonzero:
        return 1 << 31 if all(sign < 0 for sign, _, _, _ in terms) else 0
    highest = max(exponent + place for _, _, exponent, place in nonzero)
    unit = Fraction(2) ** (highest - WINDOW)  # of the place below the window
    total = 0
    for sign, size, exponent, _ in nonzero:
        exact = size * Fraction(2) ** exponent / unit
        cut = 2 * int(exact / 2)
        total += sign * (cut + (cut != exact))
    return round_fp32(total * unit)


def round_fp32(number):
    """To nearest even; +0 for 0, and the sign of what becomes 0."""
    size, sign = abs(number), (1 << 31 if number < 0 else 0)
    if not size:
        return 0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    last = max(exponent - 23, -149)
    mantissa = round(size / Fraction(2) ** last)  # Python's is to nearest even
    if mantissa == 1 << 24:
        mantissa, last = mantissa >> 1, last + 1
    if last > 104:
        return sign | INFINITY
    return sign | (mantissa if mantissa < 1 << 23 else (last + 150 << 23) + mantissa - (1 << 23))


@pytest.mark.parametrize("elements", [1, 2, ELEMENTS, 16])
@pytest.mark.parametrize("kind", FLOATS)
def test_by_the_text(kind, elements):
    rows = dot_rows(np.random.default_rng(SEED), kind, ROWS, elements)
    for accumulator, a, b, result in zip(*rows, dot(*rows, kind), strict=True):
        expected = by_the_text(int(accumulator), a.tolist(), b.tolist(), kind)
        assert result == expected, f"{accumulator:#x}, {a}, {b}: {expected:#x}, not {result:#x}"


# --- exact sums -----------------------------------------------------------------------------------------------------


def exact_sum(accumulator, a, b, fmt):
    """The sum, and the size of the largest top; None if there is a number that is not finite."""
    terms = terms_of(accumulator, a, b, fmt)
    if any(isinstance(size, str) for _, size, _, _ in terms):
        return None
    tops = [exponent + place for _, size, exponent, place in terms if size]
    return sum(sign * size * Fraction(2) ** exponent for sign, size, exponent, _ in terms), max(tops, default=None)


@pytest.mark.parametrize("kind", FLOATS)
def test_error(kind):
    """The error is at most half a place of the result, and a place below the window for each term."""
    rows = dot_rows(np.random.default_rng(SEED), kind, ROWS, ELEMENTS)
    all_errors, kept_errors, differ = [], [], 0
    for accumulator, a, b, result in zip(*rows, dot(*rows, kind).tolist(), strict=True):
        exact = exact_sum(int(accumulator), a.tolist(), b.tolist(), FORMATS[kind])
        if exact is None or exact[1] is None or result & INFINITY == INFINITY:
            continue
        number, highest = exact
        sign, size, exponent = unpack(result, FP32)
        place = Fraction(2) ** exponent
        error = abs(sign * size * place - number)
        cuts = (ELEMENTS + 1) * Fraction(2) ** (highest - WINDOW)
        assert error <= place / 2 + cuts, f"{accumulator:#x}, {a}, {b}: {result:#x}"
        all_errors.append(error / place)
        differ += result & 0x7FFFFFFF != round_fp32(number) & 0x7FFFFFFF
        if abs(number) >= Fraction(2) ** (highest - WINDOW // 3):
            kept_errors.append(error / place)
    print(
        f"{kind.name}: {differ} of {len(all_errors)} sums are not the nearest number; largest error "
        f"{float(max(all_errors)):.6g} places, {float(max(kept_errors)):.6g} without cancellation"
    )
    assert len(kept_errors) > ROWS / 2
    # Five terms cut 2^-48 of the largest off; a place of the result is at least 2^-(16 + 23) of it.
    assert max(kept_errors) <= Fraction(1, 2) + (ELEMENTS + 1) * Fraction(2) ** (WINDOW // 3 + 23 - WINDOW)


@pytest.mark.parametrize("kind", FLOATS)
def test_sums_that_do_not_cancel_are_correctly_rounded(kind):
    """Positive terms of about one size: nothing is cut off, and double precision holds their sum."""
    rng = np.random.default_rng(SEED)
    a, b = (rng.uniform(1, 4, (ROWS, ELEMENTS)).astype(FLOATS[kind]) for _ in range(2))
    accumulators = rng.uniform(0, 4, ROWS).astype(np.float32)
    result = dot(accumulators.view(np.uint32), a.view(np.uint16), b.view(np.uint16), kind).view(np.float32)
    exact = accumulators.astype(float) + (a.astype(float) * b.astype(float)).sum(axis=1)
    assert np.array_equal(result, exact.astype(np.float32))


# --- integers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers(kind):
    accumulators, a, b = dot_rows(np.random.default_rng(SEED), kind, ROWS, ELEMENTS)
    a_numbers = a if kind & 2 else a.view(f"i{kind.bytes}")
    b_numbers = b if kind & 1 else b.view(f"i{kind.bytes}")
    for accumulator, x, y, result in zip(
        accumulators.tolist(), a_numbers.tolist(), b_numbers.tolist(), dot(accumulators, a, b, kind), strict=True
    ):
        assert result == (accumulator + sum(p * q for p, q in zip(x, y, strict=True))) % (1 << 32)


def test_shapes():
    a, b = np.arange(24, dtype=np.uint8).reshape(2, 3, 4), np.ones((2, 3, 4), np.uint8)
    sums = dot(np.ones((2, 3), np.uint32), a, b, MmType.U8U8)
    assert sums.dtype == np.uint32
    assert sums.tolist() == (1 + a.sum(axis=-1, dtype=int)).tolist()


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


def test_names_of_members_as_arguments():
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
def test_refused_products(kind, arguments, options, sentence):
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
def test_refused_engines_and_instructions(kind, call, sentence):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence


def test_repr_of_a_program():
    program = golden.gemm_program(A, B, "s8s8", swizzle="64B")
    assert (
        repr(program)
        == f"Program(3 × 4 times 4 × 2, s8s8: {len(program.words)} instructions, 131072 bytes of shared memory)"
    )
