"""The page table: errors of entries, waiting, wrapping and swizzled addresses."""

import numpy as np
import pytest

from tilewright.golden.pe.pages import PageNotLoadedError, PageTable
from tilewright.golden.pe.segment import Segment
from tilewright.golden.spec import Swizzle
from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.segment import PAGE_ENTRY, SegmentElement

SIZE = 4096
SEGMENT = Segment(SegmentElement.U8, (64,), (4,), paged=True, first_entry=2)


def table(*entries):
    """A page table whose entries from 2 on have these fields."""
    pages = PageTable(8)
    for index, fields in enumerate(entries, 2):
        pages.write(index, PAGE_ENTRY.pack(**{"valid": 1, "loaded": 1, "on_chip": 1} | fields))
    return pages


def translate(pages, coordinates, segment=SEGMENT, touched=None):
    coordinates = np.array(coordinates)[:, np.newaxis]
    touched = np.ones(len(coordinates), bool) if touched is None else np.array(touched)
    addresses, codes = pages.translate(segment, coordinates, touched, SIZE)
    return addresses.tolist(), codes.tolist()


def test_each_page_lies_where_its_entry_says():
    pages = table({"address": 0x200}, {"address": 0x100}, {"address": 0xFF0})
    assert translate(pages, [0, 15, 16, 47]) == ([0x200, 0x20F, 0x100, 0xFFF], [0] * 4)


def test_low_bits_of_an_address_do_not_count():
    assert translate(table({"address": 0x20F}), [3]) == ([0x203], [0])


def test_errors_of_entries():
    pages = table({"valid": 0, "on_chip": 0}, {"on_chip": 0, "address": SIZE}, {"address": SIZE})
    addresses, codes = translate(pages, [0, 16, 32])
    assert addresses == [0, 0, 0]
    assert codes == [PeError.UNMAPPED, PeError.OFF_CHIP, PeError.MEMORY]


def test_an_invalid_page_is_not_waited_for():
    assert translate(table({"valid": 0, "loaded": 0}), [0])[1] == [PeError.UNMAPPED]


def test_an_access_to_a_page_that_is_not_loaded_waits():
    pages = table({}, {"loaded": 0, "on_chip": 0})
    with pytest.raises(PageNotLoadedError, match="page entry 3 is valid but not loaded"):
        translate(pages, [0, 16])


def test_elements_that_are_not_touched_meet_nothing():
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
