"""Placement: tensors come back, pages are tiles as the TMAU loads them, and refusals."""

import numpy as np
import pytest

from tilewright.golden.pe.machine import Pe
from tilewright.golden.pe.placement import Placement
from tilewright.golden.pe.sizes import PeSizes
from tilewright.spec import Swizzle
from tilewright.spec.pe import SegmentElement


@pytest.mark.parametrize("swizzle", Swizzle)
def test_tensors_survive(swizzle):
    rng = np.random.default_rng(20261121)
    placement = Placement(1 << 16)
    tensors = {}
    for element, size, paged in (
        (SegmentElement.U8, (300, 9), None),
        (SegmentElement.F16, (20, 3, 5), True),
        (SegmentElement.S32, (33, 17), None),
        (SegmentElement.U8, (5,), False),
    ):
        tensor = rng.integers(0, 256, (*size[::-1], element.bytes), np.uint8).view(f"<u{element.bytes}")[..., 0]
        number = placement.add(size, element, swizzle=swizzle, paged=paged)
        placement.put(number, tensor)
        tensors[number] = tensor
    for number, tensor in tensors.items():
        assert (placement.get(number) == tensor).all()
    pe = Pe(placement.smem)
    placement.load(pe)
    assert pe.segments[:4] == placement.segments
    assert pe.pages.valid.sum() == len(placement.entries) == 3 + 1 + 2


def test_pages_are_tiles_of_128_bytes_by_rows():
    placement = Placement(4096)
    tensor = np.arange(256 * 8, dtype=np.int64).astype(np.uint8).reshape(8, 256)
    placement.put(placement.add((256, 8), SegmentElement.U8, swizzle=Swizzle.B128), tensor)
    lines = placement.smem[:2048].reshape(2, 8, 8, 16)  # page, row, chunk
    for row in range(8):
        for chunk in range(8):
            assert (lines[1, row, chunk ^ row] == tensor[row, 128 + 16 * chunk :][:16]).all()


def test_a_page_takes_only_lines_with_elements():
    placement = Placement(1024)
    placement.add((32, 5), SegmentElement.U8)
    placement.add((128, 6), SegmentElement.U8)
    assert [segment.base for segment in placement.segments] == [0, 256]
    with pytest.raises(ValueError, match="1024 bytes of shared memory do not hold all operands: split the product"):
        placement.add((1,), SegmentElement.U8)


def test_repeated_pages_share_memory():
    tile = np.random.default_rng(1).integers(0, 256, (4, 128), np.uint8)
    placement = Placement(1024)
    number = placement.add((512, 4), SegmentElement.U8, repeated=True)
    placement.put(number, np.tile(tile, 4))
    assert len(placement.entries) == 4 and len(set(placement.entries)) == 1
    with pytest.raises(ValueError, match="does not repeat itself"):
        placement.put(number, np.arange(2048).astype(np.uint8).reshape(4, 512) // 7)


def test_refusals():
    placement = Placement(1 << 16, PeSizes(pages=4, segments=1))
    with pytest.raises(ValueError, match="5 pages from entry 0 on, of 4 entries"):
        placement.add((640, 4), SegmentElement.U8)
    number = placement.add((16, 4), SegmentElement.U8)
    with pytest.raises(ValueError, match="all 1 segments are in use"):
        placement.add((16, 4), SegmentElement.U8)
    for wrong in (np.zeros((16, 4), np.uint8), np.zeros((4, 16), np.uint16)):
        with pytest.raises(ValueError, match="does not fit"):
            placement.put(number, wrong)
