"""Options of a top: as text they make the same top again."""

import argparse
import shlex

import pytest

from tilewright.sim.hdl.settings import Setting
from tilewright.sim.hdl.tops import TOPS
from tilewright.tools.package.choice import Choice, choices, configure_choice

SETTINGS = (Setting("tmau", "features", ("swizzle", "stores")), Setting("smem", "size_bytes", 8192))


def chosen(options):
    parser = argparse.ArgumentParser()
    configure_choice(parser)
    return choices(parser.parse_args(shlex.split(options)))


@pytest.mark.parametrize(
    "choice",
    [
        Choice("pe", "default"),
        Choice("tmau", "unit", without=("lanes", "im2col"), processors=3, prefix="_mine"),
        Choice("core", "unit", engines=("tmau", "conv"), settings=(*SETTINGS, Setting("conv", "queue_depth", 4))),
        Choice(
            "cluster", "unit", engines=("tmau", "pe"), l2=True, cores=5, settings=(*SETTINGS, Setting("l2", "ways", 4))
        ),
        Choice("cluster", "ecp5", cores=3, processors=2, without=("lanes",)),
    ],
    ids=lambda choice: choice.options,
)
def test_options_make_the_same_top(choice):
    assert chosen(choice.options) == [choice]


def test_each_top_has_the_settings_of_its_engines():
    """Of all tops only those with an access unit have its settings; shared memory is in every one."""
    every = chosen("--preset unit --set tmau.max_burst=2,smem.size_bytes=32768,conv.results=2 --name my")
    assert [choice.top for choice in every] == list(TOPS)
    for choice in every:
        groups = {"smem"} | {"tmau": {"tmau"}, "core": {"tmau"}, "cluster": {"tmau"}, "conv": {"conv"}}.get(
            choice.top, set()
        )
        assert {setting.group for setting in choice.settings} == groups
        assert choice.component().params.smem.size_bytes == 32768
        assert choice.name == f"my_{choice.top}"
