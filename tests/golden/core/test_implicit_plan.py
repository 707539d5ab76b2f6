"""How convolutions are cut to products: whatever is chosen fits, and what should be chosen is."""

import numpy as np
import pytest

from tilewright.golden import ConvShape, PeSizes
from tilewright.golden.core.implicit_plan import plan_implicit
from tilewright.golden.pe.elements import mm_type

MACHINES = {
    "unit": (PeSizes(threads=4, regs=32, segments=8, pages=32), 16 * 1024),
    "ecp5": (PeSizes(threads=8, regs=128, segments=8, pages=64), 32 * 1024),
    "default": (PeSizes(threads=16, regs=320, segments=16, pages=256), 128 * 1024),
}


def shape_of(size, out_channels, kernel, element_bytes=1):
    return ConvShape.of(size, out_channels, kernel, element_bytes=element_bytes, result_bytes=4)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", ["s8s8", "f16"])
def test_what_is_chosen_fits(machine, kind):
    sizes, smem_bytes = MACHINES[machine]
    rng = np.random.default_rng(4)
    element_bytes = mm_type(kind).bytes
    planned = 0
    for _ in range(30):
        channels = 16 // element_bytes * int(rng.integers(1, 20))
        kernel = tuple(rng.integers(1, 4, 2).tolist())
        size = (1, *(rng.integers(4, 30, 2)).tolist(), channels)
        shape = shape_of(size, int(rng.integers(1, 200)), kernel, element_bytes)
        try:
            plan = plan_implicit(shape, mm_type(kind), sizes, smem_bytes)
        except ValueError as error:
            if "hold no part of the kernel" in str(error):
                continue
            raise
        planned += 1
        assert plan.gemm.m * plan.tiles >= shape.points > plan.gemm.m * (plan.tiles - 1)
        assert plan.gemm.n * plan.parts >= shape.out_channels > plan.gemm.n * (plan.parts - 1)
        assert plan.gemm.k * element_bytes == shape.taps * plan.blocks * plan.row_bytes
        pages = [page for number in (*plan.a, plan.b, *plan.c) for page in plan.pages(number)]
        assert len(pages) == len(set(pages)) == len(plan.placement.entries)
    assert planned > 10


@pytest.mark.parametrize(
    ("size", "out_channels", "kernel", "chosen"),
    [
        ((1, 8, 8, 64), 64, (3, 3), {"parts": 1, "row_bytes": 64, "blocks": 1}),
        ((1, 8, 8, 48), 64, (3, 3), {"parts": 1, "row_bytes": 16, "blocks": 3}),  # no zeros among 48
        ((1, 8, 8, 256), 512, (1, 1), {"parts": 2, "row_bytes": 128, "blocks": 2}),
    ],
)
def test_choice(size, out_channels, kernel, chosen):
    plan = plan_implicit(shape_of(size, out_channels, kernel), mm_type("s8"), *MACHINES["default"])
    assert {name: getattr(plan, name) for name in chosen} == chosen
