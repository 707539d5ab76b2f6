"""Tops without some features, from the command line."""

from argparse import ArgumentTypeError

import pytest

from tilewright.golden.spec.tmau.features import FEATURES
from tilewright.sim.hdl.export import feature_list, top_component
from tilewright.sim.usage import UsageError


def test_lists():
    assert feature_list("lanes") == ("lanes",)
    assert feature_list("lanes,im2col") == ("lanes", "im2col")
    with pytest.raises(ArgumentTypeError, match=r"must be of im2col, .*, not 'lane'"):
        feature_list("lane")
    with pytest.raises(ArgumentTypeError, match="not ''"):
        feature_list("")


@pytest.mark.parametrize("top", ["tmau", "tmau_subsystem", "core"])
def test_a_top_without_lanes(top):
    params = top_component(top, "unit", ("lanes",)).params
    features = (params.tmau if top == "core" else params).features
    assert features == tuple(name for name in FEATURES if name != "lanes")


def test_what_is_not_there_cannot_be_left_out():
    assert top_component("tmau", "lean", ("lanes",)).params.features == ("swizzle", "stores")


@pytest.mark.parametrize(
    ("top", "names", "message"),
    [
        ("pe", ("lanes",), "lanes cannot be left out of pe: it has no access unit"),
        ("tmau", ("stores",), "stores cannot be left out: feature reductions_global needs stores"),
    ],
)
def test_impossible(top, names, message):
    with pytest.raises(UsageError, match=message):
        top_component(top, "unit", names)
