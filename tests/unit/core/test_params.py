"""Parameters of a core: one shared memory, and what the presets are made of."""

import re

import pytest

from tilewright.hw.conv.params import CONV_UNIT_PRESETS, ConvUnitParams
from tilewright.hw.core import CORE_PRESETS, CoreParams
from tilewright.hw.pe.params import PE_PRESETS, PeParams
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS, TmauParams


def test_presets():
    for name, params in CORE_PRESETS.items():
        assert params.pe == PE_PRESETS[name]
        assert params.tmau == TMAU_PRESETS[name].replace(smem=params.smem)
        assert params.conv is None
        conv = CONV_UNIT_PRESETS[name]
        assert params.with_conv(conv).smem == conv.smem
        assert conv.smem.size_bytes == params.smem.size_bytes
    assert CoreParams() == CORE_PRESETS["default"]


def test_replace():
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
def test_mistakes(arguments, error, sentence):
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        CoreParams(**arguments)
