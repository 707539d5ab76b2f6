"""Tensors in lanes, element by element as docs/layouts.md says, and back."""

import itertools

import numpy as np
import pytest

from tilewright.golden.tmau.lanes import lane_copy
from tilewright.spec import LaneLayout

SHAPE = (2, 6, 3, 5)  # N C H W; X + 2 channels for four lanes
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
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint64])
def test_every_element_there_and_back(dtype, layout, start):
    rng = np.random.default_rng(20261121)
    array = rng.integers(0, 256, (*SHAPE, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]
    smem = rng.integers(0, 256, SMEM, np.uint8)
    before = smem.copy()
    where = {"lanes": LANES, "eu_bytes": EU_BYTES, "start_lane": start}
    lane_copy(array, smem, 64, layout, **where)

    wanted = before.copy()
    size = array.itemsize
    for index in itertools.product(*map(range, SHAPE)):
        lane, offset = element_offset(index, start, layout, size)
        place = lane * SMEM // LANES + 64 + offset
        wanted[place : place + size] = array[index].reshape(1).view(np.uint8)
    assert (smem == wanted).all(), "elements in their places, and padding as it was"

    back = np.zeros_like(array)
    lane_copy(back, smem, 64, layout, store=True, **where)
    assert (back == array).all()


def test_a_tensor_that_does_not_fit_its_lane_is_refused():
    smem = np.zeros(1024, np.uint8)
    with pytest.raises(ValueError, match="must end before byte 256 of its lane, not at 272"):
        lane_copy(np.zeros((1, 4, 16, 16), np.uint8), smem, 16, LaneLayout.COMPACT, lanes=4)
