"""Parameters of cores and of their command processors."""

import re

import pytest

from tilewright.hw.conv.params import CONV_UNIT_PRESETS, ConvUnitParams
from tilewright.hw.core import CORE_PRESETS, ENGINES, CoreParams, ProgramParams, core_params
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
        assert params == CoreParams(TMAU_PRESETS[name].replace(smem=PE_PRESETS[name].smem), PE_PRESETS[name])
        assert params.engines == ("tmau", "pe")
        conv = CONV_UNIT_PRESETS[name]
        assert params.with_conv(conv).smem == conv.smem
        assert conv.smem.size_bytes == params.smem.size_bytes


@pytest.mark.parametrize("preset", CORE_PRESETS)
def test_the_last_engine_decides_the_shared_memory(preset):
    tmau, pe, conv = TMAU_PRESETS[preset], PE_PRESETS[preset], CONV_UNIT_PRESETS[preset]
    assert core_params(preset, ["tmau"]) == CoreParams(tmau)
    assert core_params(preset, ["pe"]) == CoreParams(pe=pe)
    assert core_params(preset, ["conv"]) == CoreParams(conv=conv)
    assert core_params(preset, ["conv", "tmau"]) == CoreParams(tmau.replace(smem=conv.smem), conv=conv)
    assert core_params(preset, ENGINES) == CORE_PRESETS[preset].with_conv(conv).replace(program=ProgramParams())


def test_params_replace():
    params = CORE_PRESETS["unit"].replace(tmau=TmauParams(smem=SmemParams(16 * 1024)))
    assert params.tmau.bus_bytes == TmauParams().bus_bytes


_SMEMS = f"must have one shared memory, not {SmemParams()!r} and {SmemParams(1024)!r}"


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"tmau": TmauParams(), "pe": PeParams(smem=SmemParams(1024))}, ValueError, f"tmau and pe {_SMEMS}"),
        ({"pe": PeParams(), "conv": ConvUnitParams(smem=SmemParams(1024))}, ValueError, f"pe and conv {_SMEMS}"),
        ({"tmau": 8}, TypeError, "tmau must be TmauParams or None, not 8"),
        ({"conv": 8}, TypeError, "conv must be ConvUnitParams or None, not 8"),
        ({}, ValueError, "a core must have an engine: tmau, pe or conv"),
        ({"tmau": TmauParams(), "program": ProgramParams()}, ValueError,
         "a command processor needs both tmau and pe"),
        ({"tmau": TmauParams(processors=2), "pe": PeParams()}, ValueError,
         "processors of a core must be 1, not 2: its engines use tags too"),
    ],
)  # fmt: skip
def test_params_mistakes(arguments, error, sentence):
    with pytest.raises(error, match=f"^{re.escape(sentence)}$"):
        CoreParams(**arguments)
