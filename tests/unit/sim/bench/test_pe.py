"""The benchmark's products: they fit their engines, and the golden model computes what numpy does."""

import pytest

from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.bench.pe import products, program_and_result
from tilewright.sim.harness.records import PE_SCRIPT_DEPTH


def test_golden_agrees_with_numpy():
    params = PE_PRESETS["unit"]
    for product in products("unit", params):
        program, result = program_and_result(product, params)
        assert (program.run() == result).all(), product.name


@pytest.mark.parametrize("preset", PE_PRESETS)
def test_every_preset_has_products_of_its_types(preset):
    params = PE_PRESETS[preset]
    assert {product.kind.family for product in products(preset, params)} == set(params.types)


@pytest.mark.parametrize("preset", ["unit", "ecp5", pytest.param("default", marks=pytest.mark.long)])
def test_programs_fit_the_script_and_names_differ(preset):
    params = PE_PRESETS[preset]
    cases = list(products(preset, params))
    assert len({product.name for product in cases}) == len(cases)
    for product in cases:
        program, _ = program_and_result(product, params)
        assert len(program.words) <= PE_SCRIPT_DEPTH, product.name


def test_limits_by_hand():
    params = PE_PRESETS["default"]
    cases = {product.name: product for product in products("default", params)}
    assert cases["mm8, ka1 kb1, t0"].limit(params) == 256 * 4096 // 8
    assert cases["mm8, ka2 kb2, t1"].limit(params) == 256 * 4096 // 8 // 4
    assert cases["mm16 bf16, ka1 kb1, t1"].limit(params) == 256 * 2048 // 4
    assert cases["mm16 f16, ka1 kb1, t1"].lines == 2048 * 256 * 2 // 16
