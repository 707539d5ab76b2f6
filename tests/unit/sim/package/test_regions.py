"""Regions, and what registers read after reset; the hardware is asked in ``tests/integration/test_package.py``."""

from tilewright.sim.hdl.export import top_component
from tilewright.sim.package.regions import maps_of, regions_of


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
    conv, smem = regions_of(top_component("conv_subsystem", "unit"))
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
    maps = maps_of(top_component("cluster", "unit", more=["l2"]))
    (cache,) = maps["l2_axil"]
    resets = {register.name: reset for register, reset in cache.registers}
    assert (resets["params0"], resets["params1"], resets["status"]) == (256 << 10, 8 | 64 << 8, 1)
    assert cache.size == 4096
