"""The dot-product unit in Verilator: rows of all types in any order and split, and every pair of bytes by itself."""

from functools import cache

import numpy as np
import pytest

from support.pe_operands import dot_rows, join_elements
from support.selection import cases
from tilewright.golden.dot_product import dot
from tilewright.sim.harness.dot import make_dot_design, pack_dot_rows, run_dot_rows
from tilewright.sim.hdl.simulation import Simulation
from tilewright.spec.pe import MmType

SEED = 41
DEPTH = 1 << 14
WIDE = (64, 16)


@cache
def design(width, segments):
    return make_dot_design(width, segments, DEPTH)


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


@cases("width, segments, rounds", [(8, 1, 9)], [(*WIDE, 2)], ids=["one-row-of-8", "sixteen-parts-of-64"])
def test_rows(width, segments, rounds):
    rng = np.random.default_rng(SEED)
    splits = range(segments.bit_length())
    # Floats have more to tell apart.
    shares = [(kind, split) for kind in MmType for split in splits for _ in range(4 if kind.is_float else 1)]
    checked = 0
    with Simulation(design(width, segments)) as simulation:
        for _ in range(rounds):
            made = [rows_of(rng, *share, width, segments, DEPTH // len(shares)) for share in shares]
            rows, expected, valid = (np.concatenate(column) for column in zip(*made, strict=True))
            order = rng.permutation(len(rows))
            came = run_dot_rows(simulation, rows[order])
            wrong = np.argwhere(valid[order] & (came != expected[order]))
            assert not len(wrong), f"row {rows[order][wrong[0][0]].tobytes().hex()}: {came[tuple(wrong[0])]:#x}"
            checked += np.count_nonzero(valid)
    assert checked > 100_000


@pytest.mark.parametrize("place", range(4), ids="byte{}".format)
def test_every_pair_of_bytes(place):
    """Each in a part of a row by itself, in every place of the part, signed and unsigned."""
    width, segments = WIDE
    pairs = np.stack(np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2, indexing="ij")).reshape(2, -1)
    factors = np.zeros((2, pairs.shape[1], width // segments), np.uint8)
    factors[:, :, place] = pairs
    a, b = factors
    accumulators = np.random.default_rng(SEED).integers(0, 1 << 32, len(a), np.uint32)
    kinds = [kind for kind in MmType if kind.bytes == 1]
    rows = [
        pack_dot_rows(kind, 4, accumulators.reshape(-1, segments), a.reshape(-1, width), b.reshape(-1, width))
        for kind in kinds
    ]
    with Simulation(design(width, segments)) as simulation:
        came = run_dot_rows(simulation, np.concatenate(rows)).reshape(len(kinds), -1)
    for kind, results in zip(kinds, came, strict=True):
        assert np.array_equal(results, dot(accumulators, a, b, kind)), kind
