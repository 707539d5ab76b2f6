"""The dot-product unit in Verilator: directed and random rows of all types, in any order and split, bit for bit."""

import numpy as np
import pytest

from tilewright.golden.pe.dot import dot
from tilewright.golden.spec.instruction import MmType
from tilewright.sim.pe_dot_harness import make_dot_design, pack_dot_rows, run_dot_rows
from tilewright.sim.pe_dot_rows import dot_rows, join_elements
from tilewright.sim.simulation import Simulation

SEED = 41
DEPTH = 1 << 14


def rows_of(rng, kind, split, width, segments, count):
    """``count`` rows of ``segments`` parts or fewer: packed, and the results that count, as (results, mask)."""
    parts = 1 << split
    accumulators, a, b = dot_rows(rng, kind, count * parts, width // parts // kind.bytes)
    stride = segments // parts
    given = rng.integers(0, 1 << 32, (count, segments), dtype=np.uint32)
    given[:, ::stride] = accumulators.reshape(count, parts)
    expected = np.zeros((count, segments), np.uint32)
    expected[:, ::stride] = dot(accumulators, a, b, kind).reshape(count, parts)
    valid = np.tile(np.arange(segments) % stride == 0, (count, 1))
    a, b = (join_elements(elements).reshape(count, width) for elements in (a, b))
    return pack_dot_rows(kind, split, given, a, b), expected, valid


@pytest.mark.parametrize(
    ("width", "segments", "rounds"), [(8, 1, 9), (64, 16, 2)], ids=["one-row-of-8", "sixteen-parts-of-64"]
)
def test_rows(width, segments, rounds):
    rng = np.random.default_rng(SEED)
    splits = range(segments.bit_length())
    # Floats have more to tell apart.
    shares = [(kind, split) for kind in MmType for split in splits for _ in range(4 if kind.is_float else 1)]
    checked = 0
    with Simulation(make_dot_design(width, segments, DEPTH)) as simulation:
        for _ in range(rounds):
            made = [rows_of(rng, *share, width, segments, DEPTH // len(shares)) for share in shares]
            rows, expected, valid = (np.concatenate(column) for column in zip(*made, strict=True))
            order = rng.permutation(len(rows))
            came = run_dot_rows(simulation, rows[order])
            wrong = np.argwhere(valid[order] & (came != expected[order]))
            assert not len(wrong), f"row {rows[order][wrong[0][0]].tobytes().hex()}: {came[tuple(wrong[0])]:#x}"
            checked += np.count_nonzero(valid)
    assert checked > 100_000
