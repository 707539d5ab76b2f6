"""A product whose rows are shared out to four cores, with their processing engines: every element, speed, words read.

Specification: docs/cluster.md, "Speed".
"""

import numpy as np
import pytest

from tilewright.golden import multiply
from tilewright.sim.bench.cluster import PRODUCT, product_cluster
from tilewright.sim.session.cluster import ClusterSession
from tilewright.sim.session.products import run_product
from tilewright.spec.pe import MmType

SEED = 5


@pytest.fixture(scope="module")
def quad():
    """The model of the benchmark."""
    with ClusterSession(params=product_cluster("unit"), latency=100) as session:
        yield session


def operands(m, k, n):
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    return rng.integers(-128, 128, (m, k), np.int8), rng.integers(-128, 128, (k, n), np.int8)


@pytest.mark.long
def test_four_cores_are_four_times_as_fast_and_read_b_once(quad):
    a, b = operands(*PRODUCT)
    wanted = a.astype(np.int32) @ b.astype(np.int32)
    one, two, four = (run_product(quad, a, b, MmType.S8S8, cores) for cores in (1, 2, 4))
    for run in (one, two, four):
        assert (run.c == wanted).all()
    assert one.cycles >= 1.95 * two.cycles and one.cycles >= 3.8 * four.cycles
    # What four read beyond one is tables of offsets, of which each core has its own.
    assert four.words - one.words < b.nbytes // quad.params.tmau.bus_bytes // 8


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "shape"), [(MmType.S8U8, (16, 80, 48)), (MmType.S8U8, (20, 80, 48)), (MmType.F16, (12, 24, 12))]
)
def test_other_products(quad, kind, shape):
    """Shapes that fill no pages; floats, rounded as on golden; rows that cannot be shared out."""
    m, k, n = shape
    rng = np.random.default_rng(SEED)
    if kind == MmType.F16:
        a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    else:
        a, b = rng.integers(-128, 128, (m, k), np.int8), rng.integers(0, 256, (k, n), np.uint8)
    run = run_product(quad, a, b, kind, 4)
    assert (run.c == multiply(a, b, kind, sizes=quad.params.core.pe, size_bytes=quad.params.smem.size_bytes)).all()
    with pytest.raises(ValueError, match=r"^each of 4 cores must have as many rows, not 10 rows in all$"):
        run_product(quad, a[:10], b, kind, 4)
