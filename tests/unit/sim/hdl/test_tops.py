"""Names of tops, what is left out of them, and their Verilog, which is kept."""

from argparse import ArgumentTypeError

import pytest

from tilewright.errors import UsageError
from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import CORE_PRESETS, CoreParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.hdl import testbench
from tilewright.sim.hdl import tops as export
from tilewright.sim.hdl.tops import TOPS, engine_list, feature_list, module_name, top_component, top_verilog
from tilewright.spec.tmau_registers import FEATURES


def test_names():
    assert module_name("core", "ecp5") == "tw_ecp5_core"
    assert module_name("core", "unit", "my_chip") == "my_chip_core"
    with pytest.raises(
        ValueError, match=r"^a name must be letters, digits and underscores, with no digit first, not '1x'$"
    ):
        module_name("core", "unit", "1x")


def test_components():
    for top, (component, presets) in TOPS.items():
        assert type(top_component(top, "unit")) is component
        assert top_component(top, "unit").params == presets["unit"]


def test_engines_of_a_core():
    for preset in TOPS["core"].presets:
        assert top_component("core", preset, engines=["conv"]).params == CoreParams(conv=CONV_UNIT_PRESETS[preset])
    params = top_component("core", "unit", without=["lanes"], engines=["tmau", "pe", "program"]).params
    assert params.conv is None and "lanes" not in params.tmau.features
    assert engine_list("conv,conv") == ("conv",)
    with pytest.raises(ArgumentTypeError, match=r"^must be of tmau, pe, conv, program, not 'l2'$"):
        engine_list("conv,l2")
    with pytest.raises(UsageError, match=r"^--engines conv,program: a command processor needs both tmau and pe$"):
        top_component("core", "unit", engines=["conv", "program"])
    with pytest.raises(UsageError, match=r"^--engines pe: core must have an access unit: tmau is None$"):
        top_component("cluster", "unit", engines=["pe"])


def test_clusters_of_any_cores():
    params = top_component("cluster", "unit", cores=4).params
    assert (params.cores, params.core) == (4, CoreParams(TMAU_PRESETS["unit"].replace(cores=4)))
    params = top_component("cluster", "unit", engines=["tmau", "pe"]).params
    assert (params.cores, params.core.conv, params.core.pe) == (2, None, CORE_PRESETS["unit"].pe)
    params = top_component("cluster", "unit", l2=True).params
    assert (params.l2, params.core) == (L2Params(), CoreParams(TMAU_PRESETS["unit"].replace(cores=2, prefetches=True)))
    params = top_component("cluster", "unit", without=["lanes"], engines=["tmau", "conv"], cores=1).params
    assert params.core.conv.smem == params.smem and "lanes" not in params.tmau.features


def test_verilog_is_made_once(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(testbench, "CACHE", tmp_path)
    monkeypatch.setattr(export, "to_verilog", lambda component, name: made.append(name) or f"module {name};")
    assert top_verilog("pe", "unit") == top_verilog("pe", "unit") == "module tw_unit_pe;"
    assert top_verilog("pe", "unit", "chip") == "module chip_pe;"
    assert made == ["tw_unit_pe", "chip_pe"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(testbench, "CACHE", tmp_path / "file")
    monkeypatch.setattr(export, "to_verilog", lambda component, name: "text")
    assert top_verilog("pe", "unit") == "text"


def test_lists_of_features():
    assert feature_list("lanes") == ("lanes",)
    assert feature_list("lanes,im2col") == ("lanes", "im2col")
    with pytest.raises(ArgumentTypeError, match=r"must be of im2col, .*, not 'lane'"):
        feature_list("lane")
    with pytest.raises(ArgumentTypeError, match="not ''"):
        feature_list("")


@pytest.mark.parametrize("top", ["tmau", "core"])
def test_a_top_without_lanes(top):
    params = top_component(top, "unit", without=("lanes",)).params
    features = (params.tmau if top == "core" else params).features
    assert features == tuple(name for name in FEATURES if name != "lanes")


def test_what_is_not_there_cannot_be_left_out():
    assert top_component("tmau", "lean", without=("lanes",)).params.features == ("swizzle", "stores")


@pytest.mark.parametrize(
    ("top", "names", "message"),
    [
        ("pe", ("lanes",), "lanes cannot be left out of pe: it has no access unit"),
        ("tmau", ("stores",), "stores cannot be left out: feature reductions_global needs stores"),
    ],
)
def test_impossible_features(top, names, message):
    with pytest.raises(UsageError, match=message):
        top_component(top, "unit", without=names)
