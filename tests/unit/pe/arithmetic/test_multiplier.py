"""Products of all kinds against Python's integers, one a cycle."""

import random

from tilewright.hw.pe.arithmetic.multiplier import Multiplier
from tilewright.verify.pysim.streams import run_pipeline

CORNERS = (0, 1, 0x7F, 0x80, 0xFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def signed(value, bits, is_signed):
    return value - (value >> bits - 1 << bits) if is_signed else value


def result(a, b, c, a_signed, b_signed, high, packed, adds, **_):
    if packed:
        pairs = ((signed(a >> n & 0xFF, 8, a_signed), signed(b >> n & 0xFF, 8, b_signed)) for n in range(0, 32, 8))
        return (adds * c + sum(x * y for x, y in pairs)) % (1 << 32)
    value = signed(a, 32, a_signed) * signed(b, 32, b_signed)
    return (value >> 32 if high else value + adds * c) % (1 << 32)


def random_row(rng):
    row = {name: rng.choice((rng.choice(CORNERS), rng.getrandbits(32))) for name in "abc"}
    row["bytes"] = row["packed"] = rng.randrange(2)
    row["high"] = not row["packed"] and rng.randrange(2)
    return row | {
        "adds": not row["high"] and rng.randrange(2),
        "a_signed": rng.randrange(2),
        "b_signed": rng.randrange(2),
    }


def test_products():
    rng = random.Random(59)
    rows = [random_row(rng) for _ in range(800)]
    results = run_pipeline(Multiplier(), rows, behind={"c": 2, "adds": 2, "high": 4, "packed": 4})
    assert [each["o"] for each in results] == [result(**row) for row in rows]
