"""Sizes of a command processor."""

import re

import pytest

from tilewright.hw.conv.params import CONV_UNIT_PRESETS, ConvUnitParams
from tilewright.hw.core import CORE_PRESETS, CoreParams, ProgramParams
from tilewright.hw.pe.params import PE_PRESETS, PeParams
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS, TmauParams


def test_replace():
    assert ProgramParams().replace(words=8) == ProgramParams(words=8)


def test_bursts():
    """A line of 64 bytes is one burst, or several where bursts are shorter."""
    params = ProgramParams(words=16, instruction_lines=4)
    assert [params.bursts(*sizes) for sizes in ((64, 1), (16, 4), (16, 2), (16, 16))] == [20, 20, 40, 20]


@pytest.mark.parametrize(
    ("sizes", "error", "sentence"),
    [
        ({"words": 3}, ValueError, "words must be a power of two, not 3"),
        ({"words": 1}, ValueError, "words must be 2 to 32, not 1"),
        ({"instruction_lines": 64}, ValueError, "instruction_lines must be 2 to 32, not 64"),
        ({"words": "4"}, TypeError, "words must be an int, not '4'"),
    ],
)
def test_mistakes(sizes, error, sentence):
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        ProgramParams(**sizes)


def test_presets():
    for name, params in CORE_PRESETS.items():
        assert params.pe == PE_PRESETS[name]
        assert params.tmau == TMAU_PRESETS[name].replace(smem=params.smem)
        assert params.conv is None
        conv = CONV_UNIT_PRESETS[name]
        assert params.with_conv(conv).smem == conv.smem
        assert conv.smem.size_bytes == params.smem.size_bytes
    assert CoreParams() == CORE_PRESETS["default"]


def test_params_replace():
    params = CORE_PRESETS["unit"].replace(tmau=TmauParams(smem=SmemParams(16 * 1024)))
    assert params.tmau.bus_bytes == TmauParams().bus_bytes


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        (
            {"pe": PeParams(smem=SmemParams(1024))},
            ValueError,
            f"tmau and pe must have one shared memory, not {SmemParams()!r} and {SmemParams(1024)!r}",
        ),
        ({"tmau": 8}, TypeError, "tmau must be TmauParams, not 8"),
        ({"pe": None}, TypeError, "pe must be PeParams, not None"),
        ({"conv": 8}, TypeError, "conv must be ConvUnitParams or None, not 8"),
        (
            {"conv": ConvUnitParams(smem=SmemParams(1024))},
            ValueError,
            f"conv and pe must have one shared memory, not {SmemParams(1024)!r} and {SmemParams()!r}",
        ),
    ],
)
def test_params_mistakes(arguments, error, sentence):
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        CoreParams(**arguments)
