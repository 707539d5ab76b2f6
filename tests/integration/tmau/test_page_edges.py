"""Rows and blocks around the ends of 4 KiB pages: which bus words are asked for, in which bursts."""

import numpy as np
import pytest

from tilewright import golden
from tilewright.golden import Memory, TensorMap, limits
from tilewright.golden.patterns import mix_pattern
from tilewright.golden.spec import DESCRIPTOR
from tilewright.sim.compare.batch_run import expected_words, requested_words
from tilewright.sim.session.tmau import TmauSession

PAGE = 4096
BYTES = 8 * PAGE

#: Rank, box in bytes and rows, pitch of the rows in bytes, and first coordinates.
SHAPES = {
    "chunk": ((16,), (), (0,)),
    "row": ((256,), (), (0,)),
    "row that begins before the tensor": ((256,), (), (-32,)),
    "row that ends after the tensor": ((256,), (), (40,)),
    "adjoining chunks": ((16, 32), (16,), (0, 0)),
    "adjoining rows": ((256, 10), (256,), (0, 0)),
    "rows that share words": ((48, 20), (48,), (0, 0)),
    "rows with gaps": ((48, 20), (112,), (0, 3)),
    "a row in every page": ((64, 4), (PAGE,), (0, 0)),
    "rows across every edge": ((128, 3), (PAGE,), (0, 0)),
    "adjoining planes": ((32, 4, 16), (32, 128), (0, 0, 0)),
}


@pytest.fixture(
    scope="module", params=["unit", *(pytest.param(name, marks=pytest.mark.long) for name in ("default", "ecp5"))]
)
def session(request):
    with TmauSession(request.param, latency=10) as session:
        session.global_memory.write(0, mix_pattern(BYTES, 1))
        yield session


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("offset", [-128, -64, -48, -32, -16, 0, 16])
def test_bursts_at_a_page_edge(session, shape, offset):
    box, stride, coords = shape
    params, memory = session.params, Memory(mix_pattern(BYTES, 1))
    tmap = TensorMap(element="u8", address=PAGE + offset, size=box, stride=stride, box=box)
    before = np.full(params.smem.size_bytes, 0xA5, np.uint8)
    session.reset()
    session.shared_memory.write(0, before)
    run = session.load(tmap, coords, trace=True)
    trace = run.trace

    assert run.violations == ()
    assert (run.shared == golden.load(tmap, coords, memory, before.copy())).all()
    last = trace.request_address + trace.request_beats * params.bus_bytes - 1
    assert (trace.request_address // PAGE == last // PAGE).all()

    # Every needed word crosses the bus once, in order, and no other does.
    asked = requested_words(trace, params.bus_bytes)
    needed = limits(tmap, coords, params.bus_bytes).words
    assert asked.tolist() == expected_words(tmap, coords, params.bus_bytes).tolist()
    assert len(set(asked.tolist())) == len(asked) == run.data_beats == needed
    inside = (asked + params.bus_bytes > tmap.address) & (asked < tmap.address + tensor_bytes(tmap))
    assert inside.all()

    # The descriptor is read as it lies, once.
    first = session.descriptor(tmap)
    fetched = requested_words(trace, params.bus_bytes, number=1)
    assert fetched.tolist() == list(range(first, first + DESCRIPTOR.bytes, params.bus_bytes))


def tensor_bytes(tmap):
    """From the first byte of the tensor to the end of its last."""
    return tmap.size[0] + sum((size - 1) * step for size, step in zip(tmap.size[1:], tmap.stride, strict=True))
