"""Reductions: words by hand from the specification, seed cases, and sums of numpy and ml_dtypes."""

import hashlib
import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilewright.golden.tmau.reduce import is_legal, reduce
from tilewright.spec import Element, Reduction

SEED = 26
SEED_CASES = Path(__file__).parents[2] / "vectors" / "tmau_seed.json"

FLOATS = {Element.F16: (np.float16, 10), Element.BF16: (ml_dtypes.bfloat16, 7), Element.F32: (np.float32, 23)}


def words(element, *values):
    return np.array(values, f"<u{element.bytes}").view(np.uint8)


@pytest.mark.parametrize(
    ("op", "element", "old", "source", "expected"),
    [
        ("ADD", "U32", 0xFFFFFFFE, 5, 3),
        ("ADD", "S32", 0x7FFFFFFF, 1, 0x80000000),
        ("ADD", "U64", (1 << 64) - 1, 2, 1),
        ("MIN", "S32", 0xFFFFFFFF, 1, 0xFFFFFFFF),
        ("MIN", "U32", 0xFFFFFFFF, 1, 1),
        ("MAX", "S64", 1 << 63, 0, 0),
        ("MAX", "U64", 1 << 63, 0, 1 << 63),
        ("INC", "U32", 6, 7, 7),
        ("INC", "U32", 7, 7, 0),
        ("INC", "U32", 9, 7, 0),
        ("DEC", "U32", 0, 7, 7),
        ("DEC", "U32", 8, 7, 7),
        ("DEC", "U32", 7, 7, 6),
        ("DEC", "U32", 0, 0, 0),
        ("AND", "U64", 0xF0F0 << 48, 0xFF00 << 48, 0xF000 << 48),
        ("OR", "S32", 0xF0F0F0F0, 0xFF00FF00, 0xFFF0FFF0),
        ("XOR", "U32", 0xF0F0F0F0, 0xFF00FF00, 0x0FF00FF0),
        # f32: subnormal operands and sums become zeros of their sign.
        ("ADD", "F32", 0x00000001, 0x00000001, 0),
        ("ADD", "F32", 0x80000001, 0x80000000, 0x80000000),
        ("ADD", "F32", 0x80800001, 0x00800000, 0x80000000),
        ("ADD", "F32", 0x3F800000, 0xBF800000, 0),
        ("ADD", "F32", 0x3F800000, 0x33800000, 0x3F800000),  # half a place: to the even one below
        ("ADD", "F32", 0x3F800001, 0x33800000, 0x3F800002),  # and above
        ("ADD", "F32", 0x3F800000, 0x33800001, 0x3F800001),  # more than half
        ("ADD", "F32", 0x7F7FFFFF, 0x73000000, 0x7F800000),  # half a place beyond the largest number
        ("ADD", "F32", 0x7F800000, 0xFF800000, 0x7FFFFFFF),
        ("ADD", "F32", 0xFF800000, 0x7F7FFFFF, 0xFF800000),
        ("ADD", "F32", 0xFFC00000, 0, 0x7FFFFFFF),
        # f16 and bf16: subnormal numbers stay.
        ("ADD", "F16", 0x0001, 0x0001, 0x0002),
        ("ADD", "F16", 0x03FF, 0x0001, 0x0400),
        ("ADD", "F16", 0x7BFF, 0x4C00, 0x7C00),
        ("ADD", "F16", 0x7C00, 0xFC00, 0x7FFF),
        ("ADD", "BF16", 0x0001, 0x0001, 0x0002),
        ("ADD", "BF16", 0x8080, 0x0001, 0x807F),
        ("ADD", "BF16", 0x7F7F, 0x0001, 0x7F7F),
        ("MIN", "F16", 0x0000, 0x8000, 0x8000),
        ("MAX", "F16", 0x8000, 0x0000, 0x0000),
        ("MIN", "F16", 0x7E00, 0x7C00, 0x7C00),
        ("MAX", "BF16", 0xFF80, 0xFFC0, 0xFF80),
        ("MIN", "BF16", 0x7FC1, 0xFFC0, 0x7FFF),
        ("MAX", "F16", 0xBC00, 0xC000, 0xBC00),
    ],
)
def test_word(op, element, old, source, expected):
    op, element = Reduction[op], Element[element]
    result = reduce(op, element, words(element, old), words(element, source))
    assert result.tobytes() == words(element, expected).tobytes(), f"{result.view(f'<u{element.bytes}')[0]:#x}"


def test_seed_cases():
    cases = [case for case in json.loads(SEED_CASES.read_text())["cases"] if case["name"].startswith("reduce_")]
    assert len(cases) == 13
    for case in cases:
        memory = np.zeros(case["gmem"]["bytes"], np.uint8)
        source = np.frombuffer(bytes.fromhex(case["smem"]["init"]["hex"]), np.uint8)
        old = np.frombuffer(bytes.fromhex(case["gmem"]["init"]["hex"]), np.uint8)
        op, element = Reduction[case["commands"][0]["reduce"].upper()], Element[case["maps"]["x"]["element"].upper()]
        memory[: len(old)] = reduce(op, element, old, source)
        assert hashlib.sha256(memory.tobytes()).hexdigest() == case["expect"]["gmem"]["sha256"], case["name"]


def random_pairs(element, count=200_000):
    """Random words; in half of the pairs the exponents are near, so that both numbers count."""
    rng = np.random.default_rng(SEED)
    _, mantissa = FLOATS[element]
    bits = 8 * element.bytes
    old, source = rng.integers(0, 1 << bits, (2, count))
    sign_and_exponent = (old >> mantissa) + rng.integers(-mantissa - 3, mantissa + 4, count)
    near = (sign_and_exponent << mantissa & (1 << bits) - 1) | (source & (1 << mantissa) - 1)
    source = np.where(np.arange(count) % 2, near ^ rng.integers(0, 2, count) << bits - 1, source)
    source[::100] = old[::100] ^ 1 << bits - 1
    return old.astype(f"<u{element.bytes}"), source.astype(f"<u{element.bytes}")


def flushed(bits):
    return np.where(bits & 0x7F800000, bits, bits & 0x80000000).astype(np.uint32)


@pytest.mark.parametrize("element", FLOATS, ids=lambda element: element.name.lower())
def test_sums_equal_numpys(element):
    kind = FLOATS[element][0]
    old, source = random_pairs(element)
    numbers = [flushed(bits) if element == Element.F32 else bits for bits in (old, source)]
    with np.errstate(all="ignore"):
        total = numbers[0].view(kind) + numbers[1].view(kind)
    expected = total.view(old.dtype)
    if element == Element.F32:
        expected = flushed(expected)
    expected = np.where(np.isnan(total), (1 << 8 * element.bytes - 1) - 1, expected)
    result = reduce(Reduction.ADD, element, old.view(np.uint8), source.view(np.uint8)).view(old.dtype)
    assert (result == expected).all()


@pytest.mark.parametrize("op", [Reduction.MIN, Reduction.MAX], ids=lambda op: op.name.lower())
@pytest.mark.parametrize("element", [Element.F16, Element.BF16], ids=lambda element: element.name.lower())
def test_minima_and_maxima_equal_numpys(element, op):
    kind = FLOATS[element][0]
    old, source = random_pairs(element)
    result = reduce(op, element, old.view(np.uint8), source.view(np.uint8)).view(old.dtype)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        a, b, result = (bits.view(kind).astype(np.float64) for bits in (old, source, result))
    expected = np.fmin(a, b) if op == Reduction.MIN else np.fmax(a, b)
    np.testing.assert_array_equal(result, expected)


def test_shape_is_kept_and_nothing_changed():
    old = np.arange(48, dtype=np.uint8).reshape(2, 3, 8)
    source = np.full((2, 3, 16), 255, np.uint8)[..., ::2]
    new = reduce(Reduction.XOR, Element.U64, old, source)
    assert (new == 255 - old).all()
    assert (old == np.arange(48).reshape(2, 3, 8)).all()


def test_every_pair_of_operation_and_type_is_legal_or_refused():
    assert sum(is_legal(op, element) for op in Reduction for element in Element) == 6 + 6 + 6 + 1 + 1 + 4 + 4 + 4
    assert not is_legal(Reduction.NONE, Element.U32)
    assert not is_legal(9, Element.U32)
    with pytest.raises(ValueError, match=r"^INC is not defined for S32$"):
        reduce(Reduction.INC, Element.S32, words(Element.S32, 1), words(Element.S32, 1))


def test_operands_must_be_whole_elements_of_one_shape():
    with pytest.raises(ValueError, match=r"^old and source must have one shape, not \(4,\) and \(8,\)$"):
        reduce(Reduction.ADD, Element.U32, np.zeros(4, np.uint8), np.zeros(8, np.uint8))
    with pytest.raises(ValueError, match=r"^the last axis must hold whole elements of 8 bytes, not shape \(4,\)$"):
        reduce(Reduction.ADD, Element.U64, np.zeros(4, np.uint8), np.zeros(4, np.uint8))
