"""A convolution as a program of the processing engine and of the convolution engine: the same sums, on hardware."""

from pathlib import Path

import numpy as np
import pytest

from support.sessions import session_fixture
from tilewright.golden import ConvLayer, ImplicitGemm, LayerProgram, convolve
from tilewright.hw.core.params import ENGINES, core_params
from tilewright.results import record
from tilewright.sim.bench.core import lines, run
from tilewright.sim.bench.line import rows
from tilewright.tools.docs.figures import stale

ROOT = Path(__file__).parents[2]
PARAMS = core_params("unit", ENGINES)
#: X, K, options: several tiles, the last one not full; several parts of the kernel; and neither.
LAYERS = {
    "3x3": ((1, 7, 9, 16), (12, 3, 3, 16), {"padding": (1, 1, 1, 1)}),
    "parts": ((1, 4, 3, 32), (64, 3, 2, 32), {"stride": (2, 1), "padding": (1, 0, 0, 1)}),
    "1x1": ((2, 6, 7, 48), (7, 1, 1, 48), {}),
}


session = session_fixture(params=PARAMS, latency=20, memory_bytes=1 << 16)


@pytest.mark.parametrize("stall", [0.0, 0.3])
@pytest.mark.parametrize("name", LAYERS)
def test_products_and_convolution_engine_agree(session, name, stall):
    session.configure(latency=20, stall=stall, seed=5)
    rng = np.random.default_rng(6)
    x_shape, k_shape, options = LAYERS[name]
    x, k = (rng.integers(-128, 128, shape, np.int8) for shape in (x_shape, k_shape))
    expected = convolve(x, k, "s8s8", **options)

    product = ImplicitGemm(x, k, "s8s8", **options, sizes=PARAMS.pe, smem_bytes=PARAMS.smem.size_bytes)
    assert (product.plan.tiles > 1) == (name == "3x3") and (product.plan.parts > 1) == (name == "parts")
    assert (product.result(run(session, product)[0]) == expected).all()

    layer = ConvLayer(x, k, "s8s8", **options, params=PARAMS.conv.conv)
    program = LayerProgram(layer, PARAMS.smem.size_bytes)
    assert (layer.result(run(session, program)[0]) == expected).all()


def test_cycles_are_those_of_the_page(session):
    """Of docs/performance.md, "The command processor"."""
    session.configure(latency=100, stall=0.0)
    measured = list(lines(session, "unit"))
    record("bench-core-unit", lines=len(measured), rows=rows(measured))
    assert not stale("bench-core-unit", ROOT)
