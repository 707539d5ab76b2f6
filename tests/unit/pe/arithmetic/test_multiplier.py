"""Products of all kinds against Python's integers, one a cycle."""

import random

from tilewright.hw.pe.arithmetic.multiplier import Multiplier
from tilewright.verify.pysim.streams import run_pipeline

CORNERS = (0, 1, 0x1F, 0x7F, 0x80, 0xFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def signed(value, bits, is_signed):
    return value - (value >> bits - 1 << bits) if is_signed else value


def check(results, row):
    a, b, c, a_signed, b_signed = (row[name] for name in ("a", "b", "c", "a_signed", "b_signed"))
    if row["bytes"]:
        pairs = ((signed(a >> n & 0xFF, 8, a_signed), signed(b >> n & 0xFF, 8, b_signed)) for n in range(0, 32, 8))
        assert results["high"] == (row["adds_to_bytes"] * c + sum(x * y for x, y in pairs)) % (1 << 32)
        return
    b = 1 << (32 - b % 32 if row["right"] else b % 32) if row["shifts"] else signed(b, 32, b_signed)
    value = signed(a, 32, a_signed) * b
    assert results["low"] == (value + row["adds"] * c) % (1 << 32)
    if not row["adds"]:
        assert results["high"] == (value >> 32) % (1 << 32)


def random_row(rng):
    row = {name: rng.choice((rng.choice(CORNERS), rng.getrandbits(32))) for name in "abc"}
    row |= {name: rng.randrange(2) for name in ("bytes", "a_signed", "b_signed", "adds", "right")}
    row["shifts"] = not row["bytes"] and rng.randrange(2)
    row["b_signed"] &= not row["shifts"]
    row["adds_to_bytes"] = row["bytes"] and row["adds"]
    row["adds"] &= not row["bytes"]
    return row


def test_products():
    rng = random.Random(59)
    rows = [random_row(rng) for _ in range(2000)]
    behind = {"c": 1, "adds": 1, "adds_to_bytes": 1}
    for results, row in zip(
        run_pipeline(Multiplier(), rows, behind=behind, low=Multiplier.LATENCY, high=Multiplier.LATENCY),
        rows,
        strict=True,
    ):
        check(results, row)
