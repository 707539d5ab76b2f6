"""binary32 to 16 bits against the golden model: every exponent, ties, carries, subnormal numbers, infinity, NaN."""

import random

import numpy as np
import pytest

from tilewright.golden.conv.results import half_floats
from tilewright.golden.spec.conv.job import ConvOutput
from tilewright.hw.conv.post.half import HalfRounder
from tilewright.sim.pysim.pipelines import run_pipeline
from tilewright.sim.pysim.simulate import elaborated

SEED = 18


def numbers(rng):
    for exponent in range(256):
        for mantissa in (0, 1, 0x7FFFFF, 1 << 22, rng.getrandbits(23)):
            yield rng.getrandbits(1) << 31 | exponent << 23 | mantissa
    for exponent in (*range(100, 115), 127, 141, 142, 143, 1, 0, 254):
        for place in (12, 13, 15, 16, 17, 20, 22):
            # A tie at this place, and its neighbours.
            mantissa = (rng.getrandbits(23) >> place << place) | (1 << place - 1)
            for near in (-1, 0, 1):
                yield rng.getrandbits(1) << 31 | exponent << 23 | mantissa + near
    yield from (0x477FEFFF, 0x477FF000, 0x477FF001, 0x7F7F7FFF, 0x7F7F8000, 0x7F800001, 0xFFFFFFFF, 0x80000000)


@pytest.mark.parametrize("output", [ConvOutput.F16, ConvOutput.BF16])
def test_numbers(output):
    work = list(numbers(random.Random(SEED)))
    rows = [{"i": number, "brain": output == ConvOutput.BF16} for number in work]
    results = run_pipeline(elaborated(HalfRounder), rows)
    for number, result, wanted in zip(work, results, half_floats(np.array(work), output), strict=True):
        assert result["o"] == wanted, f"{number:#010x}: {wanted:#06x}, not {result['o']:#06x}"
