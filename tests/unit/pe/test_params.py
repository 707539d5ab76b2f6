"""Parameters of the processing engine: types that multiply, and values that are refused."""

import re

import pytest

from tilewright.hw.pe.params import PE_PRESETS, PeParams


def test_types():
    assert PeParams().types == ("i8", "i16", "f16", "bf16")
    assert PeParams(types=["bf16", "i8", "i8"]).types == ("i8", "bf16")
    assert PeParams(types=["i8"]) == PeParams(types=("i8",))
    assert PeParams(types=("bf16",)).floats
    assert not PE_PRESETS["ecp5"].floats


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"types": ()}, ValueError, "types must be one or more of i8, i16, f16, bf16, not ()"),
        ({"types": ("i8", "f32")}, ValueError, "types must be one or more of i8, i16, f16, bf16, not ('i8', 'f32')"),
        ({"types": "i8"}, TypeError, "types must be a list or tuple, not 'i8'"),
        ({"regs": 17}, ValueError, "regs must be even, not 17"),
        ({"dsp_adders": 1}, TypeError, "dsp_adders must be a bool, not 1"),
        ({"smem": 4096}, TypeError, "smem must be SmemParams, not 4096"),
    ],
)
def test_mistakes(arguments, error, sentence):
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        PeParams(**arguments)
