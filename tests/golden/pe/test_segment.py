"""Segments and pages: wrong segments, and addresses of elements, by hand and element by element."""

from itertools import product

import numpy as np
import pytest

from tilewright.golden.pe.segment import PageNotLoadedError, PageTable, Segment, wrong_segment
from tilewright.spec import Swizzle
from tilewright.spec.pe import PAGE_ENTRY, SEGMENT, PeError, SegmentElement

PAGES = 32
GOOD = {
    "one page": Segment(SegmentElement.S8, (60, 7), (6, 3), base=0x410),
    "pages": Segment(SegmentElement.F16, (100, 9, 3), (3, 2, 0), paged=True, first_entry=5, swizzle=Swizzle.B32),
    "rank 4": Segment(SegmentElement.U32, (5, 4, 3, 2), (3, 2, 2, 1), Swizzle.B128),
    "largest page": Segment(SegmentElement.S8, (65535, 1), (15, 5), paged=True),
    "widest row": Segment(SegmentElement.BF16, (32768,), (15,)),
}
#: Errors, and the fields that make the first good segment wrong.
WRONG = {
    "no element": {"element": 3},
    "no elements": {"size": (60, 0)},
    "a size too many": {"size": (60, 7, 1)},
    "pages too many": {"page_log2": (6, 3, 1)},
    "less than 16 bytes": {"size": (8, 7), "page_log2": (3, 3)},
    "more than 1048576 bytes": {"page_log2": (15, 6)},
    "larger than the only page": {"size": (65, 7)},
    "not a multiple of 16": {"base": 0x418},
    "without pages has no first entry": {"first_entry": 1},
    "paged segment has no base": {"paged": 1},
    "7 pages from entry 26": {"paged": 1, "base": 0, "page_log2": (6, 0), "first_entry": 26},
}
SENTENCES = {"a size too many": "uses no further dimension", "pages too many": "uses no further dimension",
             "no element": "there is no element 3", "no elements": "has no elements"}  # fmt: skip


@pytest.mark.parametrize("segment", GOOD.values(), ids=GOOD)
def test_good_segments_survive_packing(segment):
    assert wrong_segment(segment.pack(), 8192) is None
    assert Segment.unpack(segment.pack()) == segment


@pytest.mark.parametrize(("name", "changes"), WRONG.items(), ids=WRONG)
def test_wrong_segments(name, changes):
    word = SEGMENT.pack(**vars(GOOD["one page"]) | {"rank": 2} | changes)
    assert SENTENCES.get(name, name) in wrong_segment(word, PAGES)


def test_reserved_bits_are_wrong():
    word = GOOD["one page"].pack()
    for bit in range(SEGMENT.bits):
        if SEGMENT.reserved_mask >> bit & 1:
            assert wrong_segment(word | 1 << bit, PAGES) == "a reserved bit is set"


def test_pages_are_counted_up_to_the_last_entry():
    word = SEGMENT.pack(**vars(GOOD["one page"]) | {"rank": 2, "paged": 1, "base": 0, "page_log2": (6, 0)})
    assert wrong_segment(word | 25 << 16, PAGES) is None
    assert wrong_segment(word | 26 << 16, PAGES)


def test_the_seeds_image_has_four_pages_of_16_pixels():
    # 8 by 8 pixels in four pages; each pixel has 32 bits here.
    image = Segment(SegmentElement.U32, (8, 8), (2, 2), paged=True)
    number, offset = image.locate([(0, 0), (3, 3), (4, 0), (1, 5), (7, 7)])
    assert number.tolist() == [0, 0, 1, 2, 3]
    assert offset.tolist() == [0, 60, 0, 20, 60]


@pytest.mark.parametrize("name", ["pages", "rank 4"])
def test_locations_equal_nested_loops(name):
    segment = GOOD[name]
    pages, places = {}, {}
    for number, coordinates in enumerate(product(*(range(pages) for pages in segment.pages[::-1]))):
        pages[coordinates[::-1]] = number
    for place, coordinates in enumerate(product(*(range(1 << log2) for log2 in segment.page_log2[::-1]))):
        places[coordinates[::-1]] = place * segment.element.bytes
    for coordinates in product(*(range(size) for size in segment.size)):
        number, offset = segment.locate(coordinates)
        pairs = [divmod(c, 1 << log2) for c, log2 in zip(coordinates, segment.page_log2, strict=True)]
        assert number == pages[tuple(page for page, _ in pairs)]
        assert offset == places[tuple(place for _, place in pairs)]


def test_inside():
    segment = GOOD["one page"]
    assert segment.inside(np.array([(0, 0), (59, 6), (60, 0), (0, 7), (2**32 - 1, 0)])).tolist() == [1, 1, 0, 0, 0]


SIZE = 4096
PAGES_SEGMENT = Segment(SegmentElement.U8, (64,), (4,), paged=True, first_entry=2)


def table(*entries):
    """A page table whose entries from 2 on have these fields."""
    pages = PageTable(8)
    for index, fields in enumerate(entries, 2):
        pages.write(index, PAGE_ENTRY.pack(**{"valid": 1, "loaded": 1, "on_chip": 1} | fields))
    return pages


def translate(pages, coordinates, segment=PAGES_SEGMENT, touched=None):
    coordinates = np.array(coordinates)[:, np.newaxis]
    touched = np.ones(len(coordinates), bool) if touched is None else np.array(touched)
    addresses, codes = pages.translate(segment, coordinates, touched, SIZE)
    return addresses.tolist(), codes.tolist()


def test_page_addresses_are_those_of_entries():
    pages = table({"address": 0x200}, {"address": 0x100}, {"address": 0xFF0})
    assert translate(pages, [0, 15, 16, 47]) == ([0x200, 0x20F, 0x100, 0xFFF], [0] * 4)


def test_low_bits_of_page_addresses_are_ignored():
    assert translate(table({"address": 0x20F}), [3]) == ([0x203], [0])


def test_errors_of_entries():
    pages = table({"valid": 0, "on_chip": 0}, {"on_chip": 0, "address": SIZE}, {"address": SIZE})
    addresses, codes = translate(pages, [0, 16, 32])
    assert addresses == [0, 0, 0]
    assert codes == [PeError.UNMAPPED, PeError.OFF_CHIP, PeError.MEMORY]


def test_an_access_to_an_invalid_page_does_not_wait():
    assert translate(table({"valid": 0, "loaded": 0}), [0])[1] == [PeError.UNMAPPED]


def test_an_access_to_an_unloaded_page_waits():
    pages = table({}, {"loaded": 0, "on_chip": 0})
    with pytest.raises(PageNotLoadedError, match="page entry 3 is valid but not loaded"):
        translate(pages, [0, 16])


def test_untouched_elements_have_no_errors():
    pages = table({"loaded": 0}, {"valid": 0}, {"address": 0x80})
    assert translate(pages, [0, 16, 33, 1 << 32], touched=[0, 0, 1, 0]) == ([0, 0, 0x81, 0], [0] * 4)


def test_addresses_wrap():
    segment = Segment(SegmentElement.U8, (64,), (6,), base=2**32 - 16)
    assert translate(PageTable(1), [15, 16, 31], segment) == ([0, 0, 15], [PeError.MEMORY, 0, 0])


@pytest.mark.parametrize(
    ("swizzle", "chunk"), [(Swizzle.NONE, 2), (Swizzle.B32, 3), (Swizzle.B64, 1), (Swizzle.B128, 5)]
)
def test_swizzle(swizzle, chunk):
    # Chunk 2 of line 7: its number is XORed with as many bits of the line's as the span has.
    segment = Segment(SegmentElement.U32, (256,), (8,), swizzle, base=0x400)
    assert translate(PageTable(1), [7 * 32 + 2 * 4 + 1], segment) == ([0x780 + 16 * chunk + 4], [0])
