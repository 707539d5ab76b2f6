"""Where the parts of a top lie."""

from itertools import pairwise

import pytest

from tilewright.hw.bus.address_map import Region, address_map, map_addr_width
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.conv.subsystem import ConvSubsystem
from tilewright.hw.core.params import CORE_PRESETS
from tilewright.hw.core.top import Core
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.pe.subsystem import PeSubsystem
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.subsystem import TmauSubsystem


def test_regions_by_hand():
    assert address_map(a=12) == {"a": Region(None, 12)}
    # A small part comes right behind a larger one; a larger one at a multiple of its size.
    regions = address_map(a=12, b=9, c=17, d=17)
    assert [(region.base, region.size) for region in regions.values()] == [
        (0, 4096), (0x1000, 512), (0x20000, 1 << 17), (0x40000, 1 << 17),
    ]  # fmt: skip
    assert map_addr_width(regions) == 19
    assert map_addr_width(address_map(a=12)) == 12


@pytest.mark.parametrize("preset", CORE_PRESETS)
def test_regions_of_the_tops_do_not_overlap(preset):
    tops = (
        Core(CORE_PRESETS[preset]),
        PeSubsystem(PE_PRESETS[preset]),
        TmauSubsystem(TMAU_PRESETS[preset]),
        ConvSubsystem(CONV_UNIT_PRESETS[preset]),
    )
    for top in tops:
        regions = list(top.regions.values())
        assert all(region.base % region.size == 0 for region in regions)
        assert all(low.base + low.size <= high.base for low, high in pairwise(regions))
        assert regions[-1].base + regions[-1].size <= 1 << top.s_axil.signature.addr_width
        assert regions[-1].size == top.params.smem.size_bytes
