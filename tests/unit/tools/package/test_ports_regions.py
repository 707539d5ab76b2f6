"""Regions, and what registers read after reset; the hardware is asked in ``tests/integration/test_package.py``."""

from tilewright.hw.core.params import CORE_PRESETS
from tilewright.hw.core.top import Core
from tilewright.sim.hdl.tops import top_component
from tilewright.tools.package.ipxact import component_file
from tilewright.tools.package.ports import maps_of, regions_of


def test_regions_and_resets_by_hand():
    tmau, pe, smem = regions_of(top_component("core", "unit"))
    assert [(region.name, region.base, region.size) for region in (tmau, pe, smem)] == [
        ("tmau", 0, 4096), ("pe", 0x1000, 512), ("smem", 0x4000, 0x4000),
    ]  # fmt: skip
    resets = {register.name: reset for register, reset in tmau.registers}
    assert resets["id"] == 0x54575254
    assert resets["status"] == 1
    assert resets["params0"] == 16 | 32 << 8 | top_component("core", "unit").params.tmau.queue_depth << 16 | (
        top_component("core", "unit").params.tmau.cache_entries << 24
    )
    assert resets["params2"] == 0x4000
    assert resets["irq_enable"] == 0
    assert {register.name: reset for register, reset in pe.registers}["params3"] == 0x4000
    assert smem.registers == ()


def test_regions_of_the_convolution_engine_by_hand():
    conv, smem = regions_of(top_component("core", "unit", engines=["conv"]))
    assert (conv.name, conv.base, smem.base) == ("conv", 0, 0x4000)
    resets = {register.name: reset for register, reset in conv.registers}
    assert resets["params0"] == 16 | 2 << 8 | 2 << 16 | 1 << 24
    assert resets["params2"] == 1024


def test_registers_of_a_core_in_a_cluster():
    tmau, _ = regions_of(top_component("cluster", "unit", cores=3))
    resets = {register.name: reset for register, reset in tmau.registers}
    assert (resets["core"], resets["isolation"]) == (3 << 8, 0xFFFFFFFF)
    alone, _ = regions_of(top_component("cluster", "unit", cores=1))
    assert "isolation" not in {register.name for register, _ in alone.registers}


def test_registers_of_a_cache_lie_behind_a_port_of_its_own():
    assert list(maps_of(top_component("cluster", "unit"))) == ["s_axil"]
    maps = maps_of(top_component("cluster", "unit", l2=True))
    (cache,) = maps["l2_axil"]
    resets = {register.name: reset for register, reset in cache.registers}
    assert (resets["params0"], resets["params1"], resets["status"]) == (256 << 10, 8 | 64 << 8, 1)
    assert cache.size == 4096


def test_windows_of_a_processor():
    """They are the last regions, the register ``features`` says so, and other tools are told."""
    params = CORE_PRESETS["unit"]
    core = Core(params.replace(tmau=params.tmau.replace(command_window=True, barrier_window=True)))
    tmau, _, smem, commands, barriers = regions_of(core)
    assert [(region.name, region.base, region.size) for region in (smem, commands, barriers)] == [
        ("smem", 0x4000, 0x4000), ("commands", 0x8000, 128), ("barriers", 0x10000, 16),
    ]  # fmt: skip
    features = {register.name: reset for register, reset in tmau.registers}["features"]
    without, *_ = regions_of(Core(params))
    assert features == {register.name: reset for register, reset in without.registers}["features"] | 0b11 << 30
    assert [register.name for register, _ in commands.registers] == [*(f"word{n}" for n in range(16)), "ended"]
    assert [register.name for register, _ in barriers.registers] == ["address", "operation", "result"]
    text = component_file(core, "core", "0")
    assert text.count("write-only") > 2 * 18
    assert "TRY_WAIT" in text
