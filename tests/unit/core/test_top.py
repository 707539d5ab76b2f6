"""The top of a core: its register regions and ports.

Engines at work are in tests/integration, both of them in test_core.py and one of them in folders of their names.
"""

from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS, Core

PARAMS = CORE_PRESETS["unit"]
#: With the convolution engine too, which tests/integration/test_core_conv.py runs.
THREE = PARAMS.replace(conv=CONV_UNIT_PRESETS["unit"])


def test_a_convolution_engine_has_registers_and_ports_of_its_own():
    two, three = Core(PARAMS), Core(THREE)
    assert [(name, region.base, region.size) for name, region in three.regions.items()] == [
        ("tmau", 0, 4096), ("pe", 0x1000, 512), ("conv", 0x2000, 128), ("smem", 0x4000, 0x4000),
    ]  # fmt: skip
    assert "conv" not in two.regions
    assert set(three.signature.members) - set(two.signature.members) == {"jobs", "job_ended", "job_end"}


def test_windows_move_nothing():
    """They are the last regions; all others stay where they are."""
    tmau = PARAMS.tmau.replace(command_window=True, barrier_window=True)
    two, more = Core(PARAMS), Core(PARAMS.replace(tmau=tmau))
    assert dict(list(more.regions.items())[:-2]) == two.regions
    assert [(name, region.size) for name, region in more.regions.items()][-2:] == [("commands", 128), ("barriers", 16)]
    assert set(more.signature.members) == set(two.signature.members)
