"""A lane of residual addition against the golden model: all pairs of a grid, random factors of any size, ties."""

import random

import numpy as np
import pytest

from tilewright.golden.conv.results import add_residual
from tilewright.hw.conv.post.residual import ResidualAdder
from tilewright.sim.pysim.pipelines import run_pipeline
from tilewright.sim.pysim.simulate import elaborated

SEED = 17
TYPES = {"u8": (0, 0, 255), "s8": (1, -128, 127), "u8-narrow": (0, 7, 90)}
#: Cycles in which the constants hold after the last operand, so that all of its results are out.
HOLD = ResidualAdder.LATENCY


def bits(number):
    return int(np.float32(number).view(np.uint32))


def check(jobs, kind):
    """``jobs`` has (first ratio, second ratio, offset, pairs of operands)."""
    signed, low, high = TYPES[kind]
    dut, rows, expected = elaborated(ResidualAdder), [], []
    for first_ratio, second_ratio, offset, pairs in jobs:
        static = {"first_ratio": first_ratio, "second_ratio": second_ratio, "offset": offset, "is_signed": signed}
        static |= {"minimum": low & 255, "maximum": high & 255}
        before, after = [{}] * dut.FIRST, [{}] * HOLD
        firsts = [*before, *({"first": first & 255} for first, _ in pairs), *after]
        seconds = [*({"second": second & 255} for _, second in pairs), *before, *after]
        rows += [static | first | second for first, second in zip(firsts, seconds, strict=True)]
        wanted = add_residual(*np.array(pairs).T, (first_ratio, second_ratio), offset, (low, high)) & 255
        expected += [None] * dut.FIRST + wanted.tolist() + [None] * HOLD
    for row, (result, wanted) in enumerate(zip(run_pipeline(dut, rows), expected, strict=True)):
        assert wanted is None or result["o"] == wanted, f"row {row}: {rows[row]}: {wanted}, not {result['o']}"


def operands(rng, kind, count):
    low, high = (-128, 127) if TYPES[kind][0] else (0, 255)
    pick = [low, high, 0, 1]
    return [tuple(rng.choice([rng.randint(low, high), rng.choice(pick)]) for _ in "ab") for _ in range(count)]


@pytest.mark.parametrize("kind", TYPES)
def test_usual_factors(kind):
    """As of quantised networks: results in range."""
    rng = random.Random(SEED)
    jobs = [(bits(rng.uniform(-1.5, 1.5)), bits(rng.uniform(-1.5, 1.5)), bits(rng.uniform(-40, 80))) for _ in range(8)]
    check([(*job, operands(rng, kind, 40)) for job in jobs], kind)


def test_any_factors():
    """Any finite numbers; many of similar size, so that one does not hide the other."""
    rng = random.Random(SEED)
    jobs = []
    for _ in range(25):
        place = rng.choice([rng.randrange(255), 254, 0])
        near = [min(max(place + rng.randrange(-12, 13), 0), 254) for _ in range(3)]
        jobs.append([rng.getrandbits(1) << 31 | exponent << 23 | rng.getrandbits(23) for exponent in near])
    check([(*job, operands(rng, "s8", 12)) for job in jobs], "s8")


def test_infinite_inner_sum():
    """It outweighs what the first operand could take away."""
    largest, minus = 0x7F7FFFFF, 0xFF7FFFFF
    pairs = [(127, 127), (-128, 127), (127, -128), (-128, -128), (0, 2), (5, 0)]
    check([(first, second, offset, pairs) for first in (largest, minus) for second in (largest, minus)
           for offset in (0, largest, minus)], "s8")  # fmt: skip


def test_ties():
    """Halves, quarters, and what makes a tie of binary32 tip over."""
    tiny = [bits(sign * 2.0**-exponent) for sign in (1, -1) for exponent in (17, 18, 19, 40, 149)]
    pairs = [(first, second) for first in (-128, -3, -1, 0, 1, 2, 101, 127) for second in (-5, -1, 0, 1, 4)]
    half, quarter, odd = bits(0.5), bits(0.25), bits(0.5 + 2.0**-24)
    check([(half, half, 0, pairs), (half, quarter, quarter, pairs)], "s8")
    check([(first, second, 0, pairs) for first in (half, odd) for second in tiny], "s8")
    check([(first, 0, offset, pairs) for first in (half, odd) for offset in tiny], "s8")


def test_inner_sum_that_cancels():
    """Whatever its terms were, nothing is left of it, and the first operand stays."""
    check([(bits(0.5), bits(2.0**place), bits(-5 * 2.0**place), [(first, 5) for first in (-128, -3, 1, 100)])
           for place in (0, 20, 60, 100, 120)], "s8")  # fmt: skip


def test_identity():
    check([(bits(1), 0, 0, [(number, 9) for number in range(-128, 128)])], "s8")


def test_latency():
    assert (ResidualAdder.FIRST, ResidualAdder.LATENCY) == (7, 12)
