"""Parameters of the convolution engine in hardware: what is derived from them, and what hardware cannot be."""

import re

import pytest

from tilewright.hw.conv.params import CONV_UNIT_PRESETS, ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS, ConvParams

#: lanes, row_slots, pairs, sets, sums, places, words.
DERIVED = {
    "unit": (2, 1, True, 4, 32, 32, 64),
    "ecp5": (2, 1, True, 16, 32, 64, 512),
    "default": (8, 2, True, 32, 64, 128, 1024),
    "full": (8, 4, True, 16, 64, 256, 1024),
}


@pytest.mark.parametrize("name", DERIVED)
def test_derived_sizes(name):
    params = CONV_UNIT_PRESETS[name]
    derived = params.lanes, params.row_slots, params.pairs, params.sets, params.sums, params.places, params.words
    assert derived == DERIVED[name]
    assert params.quarter_bytes == params.conv.weight_bytes // 4


def test_two_points_at_once():
    """Where results come faster than W / 2 bytes: with as many banks of accumulators as tiles of two cycles need."""
    found = {name: (each.conv.write_bytes, each.conv.writes_pairs, each.place_pairs, each.accumulator_banks)
             for name, each in CONV_UNIT_PRESETS.items()}  # fmt: skip
    assert found == {"unit": (16, False, False, 4), "ecp5": (16, False, False, 4), "lean": (16, False, False, 4),
                     "default": (32, True, True, 8), "full": (64, True, False, 8)}  # fmt: skip
    assert not ConvParams(units=1, row_bytes=16, slaves=8, results=16).writes_pairs
    assert not ConvParams(results=16).writes_pairs


def test_presets_are_those_of_the_golden_model():
    for name, preset in CONV_PRESETS.items():
        assert CONV_UNIT_PRESETS[name].conv == preset


def test_without_floats():
    full, default = CONV_UNIT_PRESETS["full"], CONV_UNIT_PRESETS["default"]
    assert (full.floats, full.wide) == (True, True)
    assert full.without_floats().conv == CONV_PRESETS["full"].replace(types=("i8", "i16"))
    assert default.without_floats() == default
    assert (CONV_UNIT_PRESETS["unit"].floats, CONV_UNIT_PRESETS["unit"].wide) == (False, False)
    halves = ConvUnitParams(CONV_PRESETS["unit"].replace(types=("bf16",)))
    assert (halves.floats, halves.wide) == (True, True)
    assert halves.without_floats() == halves


@pytest.mark.parametrize(
    ("conv", "sentence"),
    [
        (ConvParams(32, 8, 1, feature_rows=8), "row_bytes must be at most 16 * units (16), not 32"),
        (ConvParams(16, 8, 2, feature_rows=8, results=32), "results must be at most row_bytes (16), not 32"),
        (ConvParams(64, 2, 4, feature_rows=16, results=16), "results must be at most 4 * slaves (8), not 16"),
        (ConvParams(32, 8, 4, feature_rows=8), "feature_rows must be a power of two from 4 * units (16) on, not 8"),
        (ConvParams(32, 8, 4, feature_rows=24), "feature_rows must be a power of two from 4 * units (16) on, not 24"),
        (ConvParams(64, 32, 4, feature_rows=16), "slaves must be at most 16 in hardware, not 32"),
        (ConvParams(weight_bytes=256), "weight_bytes must be at least 512 with these rows, not 256"),
    ],
)
def test_mistakes(conv, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        ConvUnitParams(conv)


def test_a_shared_memory_that_answers_in_parts_is_refused():
    with pytest.raises(ValueError, match=r"^smem\.chunks_a_cycle must be 8, not 4$"):
        ConvUnitParams(smem=SmemParams(chunks_a_cycle=4))
