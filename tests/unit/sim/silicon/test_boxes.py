"""Which tiles are timed on a GPU, and where their boxes lie."""

import math

import numpy as np
import pytest

from tilewright.golden.spec import Element, Swizzle
from tilewright.golden.tmau.tile import counts, extent
from tilewright.sim.silicon.boxes import SHAPE, shapes

SIZE = 1 << 24
NAMED = ("halo_c64", "halo_c8", "rows_4d", "2-D, rows of 64 bytes", "2-D, rows of 128 bytes")


@pytest.fixture(scope="module")
def timed():
    return shapes(SIZE)


def test_named_tiles_and_most_others_are_timed(timed):
    names = [boxes.name for boxes in timed]
    assert set(NAMED) < set(names)
    assert len(names) > 20
    assert not any("unaligned" in name or "outside" in name or name[-11:] == "from byte 1" for name in names)
    assert "rows of 128 bytes from byte 16" in names


def test_boxes_lie_side_by_side_in_the_tensor_and_fill_it(timed):
    for boxes in timed:
        tmap = boxes.tmap
        assert tmap.address + extent(tmap) <= SIZE, boxes.name
        assert extent(tmap) > 0.95 * SIZE, boxes.name
        assert boxes.step == counts(tmap)
        last = boxes.coords(math.prod(boxes.count) - 1)
        assert boxes.coords(0) == list(boxes.first)
        for first, coord, step, size in zip(boxes.first, last, boxes.step, tmap.size, strict=True):
            assert 0 <= first <= coord <= size - step, boxes.name
        assert last[-1] > tmap.size[-1] - 2 * boxes.step[-1], boxes.name


def test_dimension_0_of_box_numbers_counts_fastest(timed):
    (rows,) = (boxes for boxes in timed if boxes.name == "rows_4d")
    assert rows.count[:3] == (8, 4, 2)
    assert [rows.coords(n) for n in (1, 8, 32, 64)] == [[8, 0, 0, 0], [0, 4, 0, 0], [0, 0, 8, 0], [0, 0, 0, 8]]


def test_bytes_and_sectors(timed):
    halo, adjoining, rows = (next(b for b in timed if b.name == name) for name in ("halo_c64", "halo_c8", NAMED[3]))
    assert halo.bytes == math.prod(halo.count) * 100 * 16
    assert halo.sector_bytes == 2 * halo.bytes, "half of each sector"
    assert adjoining.sector_bytes == adjoining.bytes
    assert rows.sector_bytes == rows.bytes == math.prod(rows.count) * 2048


def test_record(timed):
    (boxes,) = (boxes for boxes in timed if boxes.name == "swizzle 128B, rows of 64 bytes")
    record = np.frombuffer(boxes.record(), SHAPE)[0]
    assert record["map"]["rank"] == 2
    assert record["map"]["swizzle"] == Swizzle.B128
    assert record["first"].tolist() == [0] * 5
    assert record["count"].tolist() == [*boxes.count, 1, 1, 1]
    assert record["step"].tolist() == [64, 32, 0, 0, 0]
    assert record["extent"].tolist() == [64, 32, 1, 1, 1]
    assert (record["unit_bytes"], record["stage_bytes"]) == (1, 32 * 128)


def test_nothing_beyond_silicon_is_timed(timed):
    for boxes in timed:
        assert not (boxes.tmap.unaligned or boxes.tmap.gather0)
        assert boxes.tmap.element in (Element.U8, Element.F16)
