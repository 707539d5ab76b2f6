"""Tensors in lanes, element by element from docs/layouts.md, in both directions."""

import itertools

import numpy as np
import pytest

from tilewright.golden import Machine, Memory, command_word
from tilewright.spec import LaneLayout

SHAPE = (2, 6, 3, 5)  # N C H W
LANES, EU_BYTES = 4, 32
SMEM = 8192
IN_LANES = [LaneLayout.ALIGNED, LaneLayout.COMPACT, LaneLayout.ROW_ALIGNED]


def element_offset(index, start, layout, element_bytes):
    """Lane and byte offset of an element: the page's formulas, with everything in elements."""
    n, c, h, w = index
    _, channels, height, width = SHAPE
    eu = EU_BYTES // element_bytes
    h_stride = -(-width // eu) * eu if layout == LaneLayout.ROW_ALIGNED else width
    c_stride = {
        LaneLayout.ALIGNED: -(-height * width // eu) * eu,
        LaneLayout.COMPACT: height * width,
        LaneLayout.ROW_ALIGNED: height * h_stride,
    }[layout]
    n_stride = -(-(start + channels) // LANES) * c_stride
    lane = (start + c) % LANES
    return lane, (n * n_stride + (start + c) // LANES * c_stride + h * h_stride + w) * element_bytes


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("layout", IN_LANES)
@pytest.mark.parametrize("element", ["u8", "u16", "u64"])
def test_every_element_in_both_directions(element, layout, start):
    size = int(element[1:]) // 8
    rng = np.random.default_rng(20261121)
    array = rng.integers(0, 256, (*SHAPE, size), np.uint8)
    gmem, smem = np.zeros(4096, np.uint8), rng.integers(0, 256, SMEM, np.uint8)
    gmem[: array.size] = array.ravel()
    expected, machine = smem.copy(), Machine(Memory(gmem), smem)
    common = {"element": element, "shape": SHAPE[::-1], "lanes_log2": 2, "eu_log2": 5}
    to_lanes = {"destination": 64, "destination_layout": layout, "destination_lane": start}
    assert machine.execute(command_word("lanes", **common, **to_lanes)) == array.size
    for index in itertools.product(*map(range, SHAPE)):
        lane, offset = element_offset(index, start, layout, size)
        expected[lane * SMEM // LANES + 64 + offset :][:size] = array[index]
    assert (smem == expected).all(), "elements in their places, and padding unchanged"

    from_lanes = {"source": 64, "source_layout": layout, "source_lane": start, "destination": 2048}
    assert machine.execute(command_word("lanes", **common, **from_lanes)) == array.size
    assert (gmem[2048:][: array.size] == array.ravel()).all()
