"""The dot-product unit against the golden model: every type, many pairs of bytes, every split."""

import numpy as np
import pytest

from tilewright.golden.dot_product import dot
from tilewright.hw.dot_product.unit import DotUnit
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.pe_operands import STYLES, dot_rows, join_elements
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import run_pipeline

SEED = 77
WIDTH = 8
BYTES = [kind for kind in MmType if kind.bytes == 1]


def run(accumulators, a, b, kind):
    """The sums of a unit without parts."""
    rows = [
        {"type": kind, "a": int.from_bytes(x, "little"), "b": int.from_bytes(y, "little"), "accumulators": [int(word)]}
        for x, y, word in zip(join_elements(a), join_elements(b), accumulators, strict=True)
    ]
    return np.array([result["o"][0] for result in run_pipeline(elaborated(DotUnit, WIDTH), rows)], np.uint32)


def check(accumulators, a, b, kind):
    came, expected = run(accumulators, a, b, kind), dot(accumulators, a, b, kind)
    wrong = np.flatnonzero(came != expected)
    assert not len(wrong), [hex(x) for i in wrong[:1] for x in (accumulators[i], *a[i], *b[i], expected[i], came[i])]


@pytest.mark.parametrize("kind", BYTES)
def test_every_byte_with_some(kind):
    """All bytes of A with 16 of B; all pairs are multiplied in tests/integration/pe/test_dot_rows.py."""
    some = [0, 1, 2, 3, 5, 85, 126, 127, 128, 129, 130, 170, 250, 253, 254, 255]
    a, b = np.meshgrid(np.arange(256, dtype=np.uint8), np.array(some, np.uint8), indexing="ij")
    a, b = a.reshape(-1, WIDTH), b.reshape(-1, WIDTH)
    check(np.random.default_rng(SEED).integers(0, 1 << 32, len(a)), a, b, kind)


@pytest.mark.parametrize("kind", [kind for kind in MmType if kind not in BYTES])
def test_words(kind):
    accumulators, a, b = dot_rows(np.random.default_rng(SEED), kind, 50 * len(STYLES), WIDTH // kind.bytes)
    check(accumulators, a, b, kind)


ONE, HALF, TINY, LEAST = 0x3C00, 0x3800, 0x0400, 0x0001
INFINITY, NAN, MINUS = 0x7C00, 0x7E00, 0x8000


@pytest.mark.parametrize(
    ("accumulator", "pairs", "expected"),
    [
        (0x80000000, [(0, MINUS)] * 4, 0x80000000),  # all terms are -0
        (0x80000000, [(0, MINUS)] * 3 + [(0, 0)], 0),
        (0, [(ONE, ONE), (ONE, ONE | MINUS)] * 2, 0),  # x - x
        (0xBF800000, [(ONE, ONE)] + [(0, MINUS)] * 3, 0),
        (0, [(INFINITY, ONE)] + [(0, 0)] * 3, 0x7F800000),
        (0xFF800000, [(0, 0)] * 4, 0xFF800000),
        (0xFF800000, [(INFINITY, ONE)] + [(0, 0)] * 3, 0x7FC00000),
        (0, [(INFINITY, 0)] + [(0, 0)] * 3, 0x7FC00000),
        (0, [(NAN, ONE)] + [(0, 0)] * 3, 0x7FC00000),
        (0xFFFFFFFF, [(0, 0)] * 4, 0x7FC00000),
        (0x7F7FFFFF, [(0x7BFF, 0x7BFF)] * 4, 0x7F7FFFFF),  # far below half a place
        (0x00000001, [(0, 0)] * 4, 0x00000001),  # subnormals are kept
        (0, [(LEAST, LEAST)] + [(0, 0)] * 3, 0x27800000),  # 2^-48
        (0x4B800000, [(ONE, ONE)] + [(0, 0)] * 3, 0x4B800000),  # 2^24 + 1: a tie, to even
        (0x4B800001, [(ONE, ONE)] + [(0, 0)] * 3, 0x4B800002),  # 2^24 + 2 + 1: a tie, to even
        (0x4B800000, [(ONE, ONE), (LEAST, LEAST)] + [(0, 0)] * 2, 0x4B800001),  # what is cut off breaks it
        (0x4B800000, [(ONE, ONE), (LEAST, LEAST | MINUS)] + [(0, 0)] * 2, 0x4B800000),
        (0x4B800001, [(ONE, ONE), (LEAST, LEAST | MINUS)] + [(0, 0)] * 2, 0x4B800001),
    ],
)
def test_directed_floats(accumulator, pairs, expected):
    a, b = np.array(pairs, np.uint16).T[:, np.newaxis]
    assert dot([accumulator], a, b, MmType.F16) == [expected]
    assert run([accumulator], a, b, MmType.F16) == [expected]


def test_parts():
    segments, width = 4, 16
    rng = np.random.default_rng(SEED)
    rows, expected = [], []
    for number in range(20 * len(MmType)):
        kind, split = MmType(number % len(MmType)), number // len(MmType) % 3
        parts, stride = 1 << split, segments >> split
        accumulators, a, b = dot_rows(rng, kind, parts, width // parts // kind.bytes)
        words = rng.integers(0, 1 << 32, segments)
        words[::stride] = accumulators
        row = {name: int.from_bytes(join_elements(each).tobytes(), "little") for name, each in (("a", a), ("b", b))}
        rows.append({"type": kind, "split": split, "accumulators": words.tolist(), **row})
        expected.append((stride, dot(accumulators, a, b, kind).tolist()))
    for result, (stride, sums) in zip(run_pipeline(DotUnit(width, segments), rows), expected, strict=True):
        assert list(result["o"])[::stride] == sums


def test_wrong_width():
    with pytest.raises(ValueError, match=r"^the width must be a multiple of 4 bytes, not 6$"):
        DotUnit(6, 4)
