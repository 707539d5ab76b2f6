"""Numbers to integers: ties, what is too small, what is too large, zero points and clamps, against exact fractions."""

import random
from fractions import Fraction

from tilewright.hw.conv.post.clamp import Clamp
from tilewright.sim.pysim.pipelines import run_pipeline
from tilewright.sim.pysim.simulate import elaborated

SEED = 14


def sizes(rng):
    """(size, places): any; ties of every length and their neighbours; the ends of the range."""
    for places in range(-60, 20):
        for size in (1 << 23, (1 << 24) - 1, 1 << 24, rng.getrandbits(23) | 1 << 23):
            yield size, places
    for places in range(-24, -13):
        for _ in range(12):
            whole = rng.randrange(1 << 23 >> -places, 1 << 24 >> -places)
            yield max(1 << 23, (whole << -places) + (1 << -places - 1) + rng.choice([-1, 0, 0, 1])), places
    for places in (-512, -300, 0, 300, 511):
        yield from ((0, places), (1 << 23, places))


def test_results():
    rng = random.Random(SEED)
    dut = elaborated(Clamp)
    work = list(sizes(rng))
    for signed, zero, low, high in (
        (0, 0, 0, 255),
        (0, 255, 3, 200),
        (1, -128, -128, 127),
        (1, 5, -7, 6),
        (0, 9, 7, 7),
    ):
        static = {"is_signed": signed, "zero": zero & 255, "minimum": low & 255, "maximum": high & 255}
        rows = [
            static | {"size": size, "places": places, "negative": rng.getrandbits(1), "infinite": rng.random() < 0.05}
            for size, places in work
        ]
        for row, result in zip(rows, run_pipeline(dut, rows), strict=True):
            value = 1000 if row["infinite"] else round(min(row["size"] * Fraction(2) ** row["places"], Fraction(1000)))
            expected = min(max((-value if row["negative"] else value) + zero, low), high) & 255
            assert result["o"] == expected, f"{row}: {expected}"
