"""Parameters of the convolution engine in hardware: what is derived from them, and what hardware cannot be."""

import re

import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS, ConvParams
from tilewright.hw.conv.params import CONV_UNIT_PRESETS, ConvUnitParams
from tilewright.hw.conv.result.layouts import ResultSizes

#: lanes, row_slots, pairs, sets, sums, places, words.
DERIVED = {
    "unit": (2, 1, True, 4, 32, 32, 64),
    "ecp5": (2, 1, True, 8, 32, 64, 64),
    "default": (8, 2, True, 4, 64, 128, 128),
    "full": (8, 4, True, 4, 64, 256, 256),
}


@pytest.mark.parametrize("name", DERIVED)
def test_derived_sizes(name):
    params = CONV_UNIT_PRESETS[name]
    derived = params.lanes, params.row_slots, params.pairs, params.sets, params.sums, params.places, params.words
    conv = params.conv
    assert derived == DERIVED[name][:3] + (
        conv.feature_rows // conv.units, 16 * conv.units, 16 * max(conv.units, conv.slaves),
        conv.weight_bytes // conv.row_bytes,
    )  # fmt: skip


def test_presets_are_those_of_the_golden_model_without_floats():
    for name, preset in CONV_PRESETS.items():
        integers = tuple(family for family in preset.types if family in ("i8", "i16"))
        assert CONV_UNIT_PRESETS[name].conv == preset.replace(types=integers)


@pytest.mark.parametrize(
    ("conv", "sentence"),
    [
        (ConvParams(types=("i8", "f16", "bf16")), "types must be integers, i8 and i16, in hardware, not bf16, f16"),
        (ConvParams(32, 8, 1, feature_rows=8), "row_bytes must be at most 16 * units (16), not 32"),
        (ConvParams(16, 8, 2, feature_rows=8, results=32), "results must be at most row_bytes (16), not 32"),
        (ConvParams(64, 2, 4, feature_rows=16, results=16), "results must be at most 4 * slaves (8), not 16"),
        (ConvParams(32, 8, 4, feature_rows=8), "feature_rows must be a power of two from 4 * units (16) on, not 8"),
        (ConvParams(32, 8, 4, feature_rows=24), "feature_rows must be a power of two from 4 * units (16) on, not 24"),
    ],
)
def test_mistakes(conv, sentence):
    integers = conv if "f16" in sentence else conv.replace(types=("i8", "i16"))
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        ConvUnitParams(integers)


def test_too_many_slaves_for_a_write():
    params = ConvUnitParams(ConvParams(64, 32, 4, feature_rows=16, types=("i8",)))
    with pytest.raises(ValueError, match=r"^slaves must be at most 16 in hardware, not 32$"):
        ResultSizes(params)
