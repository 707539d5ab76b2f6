"""Segments, tensors that instructions address by element, and the page table (docs/pe.md, "Logical addresses")."""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.spec import CHUNK_BYTES, Swizzle
from tilewright.spec.pe import MAX_PAGE_LOG2, PAGE_ENTRY, SEGMENT, PeError, SegmentElement

from ..arguments import integer, packed
from ..smem import swizzle

__all__ = ["PageNotLoadedError", "PageTable", "Segment", "wrong_segment"]

_ADDRESS_MASK = 0xFFFFFFFF
_CHUNK_MASK = 0xFFFFFFF0


@dataclass(frozen=True)
class Segment:
    """A segment; lists run from the innermost dimension, number 0, outwards.

    Attributes
    ----------
    element : SegmentElement
    size, page_log2 : tuple of int
        Elements of each dimension, and log2 of the elements of a page.
    swizzle : Swizzle
    paged : bool
        Page entries from ``first_entry`` hold the addresses of pages; otherwise there is one page, at ``base``.
    """

    element: SegmentElement
    size: tuple[int, ...]
    page_log2: tuple[int, ...]
    swizzle: Swizzle = Swizzle.NONE
    paged: bool = False
    first_entry: int = 0
    base: int = 0

    @classmethod
    def unpack(cls, word):
        """The segment of a packed ``word`` that is not wrong."""
        values = SEGMENT.unpack(packed("segment", word, SEGMENT.bits))
        if values["element"] not in set(SegmentElement):
            raise ValueError(f"there is no element {values['element']}")
        rank = values.pop("rank")
        values["size"], values["page_log2"] = tuple(values["size"][:rank]), tuple(values["page_log2"][:rank])
        values["element"], values["swizzle"] = SegmentElement(values["element"]), Swizzle(values["swizzle"])
        return cls(**values | {"paged": bool(values["paged"])})

    def pack(self):
        """The word of 256 bits, whether or not it is wrong."""
        return SEGMENT.pack(**vars(self), rank=self.rank)

    @property
    def rank(self):
        """Number of dimensions."""
        return len(self.size)

    @property
    def pages(self):
        """Number of pages in each dimension."""
        return tuple(-(-size >> log2) for size, log2 in zip(self.size, self.page_log2, strict=True))

    @property
    def page_bytes(self):
        """Bytes of a page."""
        return self.element.bytes << sum(self.page_log2)

    def inside(self, coordinates):
        """Which of the ``coordinates``, integers of shape (..., rank), belong to an element; shape (...)."""
        return (coordinates < np.array(self.size)).all(axis=-1)

    def locate(self, coordinates):
        """Page number and byte offset in the page of elements that are inside; two arrays of shape (...)."""
        coordinates = np.asarray(coordinates, np.int64)
        number = np.zeros(coordinates.shape[:-1], np.int64)
        place = np.zeros_like(number)
        pages_below, elements_log2 = 1, 0
        for d, (pages, log2) in enumerate(zip(self.pages, self.page_log2, strict=True)):
            coordinate = coordinates[..., d]
            number += (coordinate >> log2) * pages_below
            place += (coordinate & (1 << log2) - 1) << elements_log2
            pages_below *= pages
            elements_log2 += log2
        return number, place * self.element.bytes


def wrong_segment(word, pages):
    """What is wrong with the packed segment ``word`` on a machine with ``pages`` page entries: a sentence, or None."""
    word, pages = packed("segment", word, SEGMENT.bits), integer("pages", pages, 0)
    values = SEGMENT.unpack(word)
    if values["element"] not in set(SegmentElement):
        return f"there is no element {values['element']}"
    if word & SEGMENT.reserved_mask:
        return "a reserved bit is set"
    rank = values["rank"]
    if 0 in values["size"][:rank]:
        return f"a dimension has no elements: {values['size'][:rank]}"
    if any(values["size"][rank:]) or any(values["page_log2"][rank:]):
        return f"rank {rank} uses no further dimension, but there are sizes or pages of one"
    return _wrong_pages(Segment.unpack(word), pages)


def _wrong_pages(segment, pages):
    if segment.element.bytes << segment.page_log2[0] < CHUNK_BYTES:
        return f"a row of a page has less than {CHUNK_BYTES} bytes"
    if segment.page_bytes > 1 << MAX_PAGE_LOG2:
        return f"a page has more than {1 << MAX_PAGE_LOG2} bytes"
    if segment.paged:
        if segment.base:
            return "a paged segment has no base"
        if segment.first_entry + math.prod(segment.pages) > pages:
            return f"{math.prod(segment.pages)} pages from entry {segment.first_entry} on, of {pages} entries"
    elif math.prod(segment.pages) > 1:
        return f"size {segment.size} is larger than the only page"
    elif segment.base % CHUNK_BYTES:
        return f"base {segment.base:#x} is not a multiple of {CHUNK_BYTES}"
    elif segment.first_entry:
        return "a segment without pages has no first entry"
    return None


class PageNotLoadedError(RuntimeError):
    """An access to a page that is valid but not loaded: hardware would wait until it is loaded."""


class PageTable:
    """Page entries; none is valid at first.

    Attributes
    ----------
    address, valid, loaded, on_chip : arrays
        The fields of all entries.
    """

    def __init__(self, count):
        self.address = np.zeros(count, np.int64)
        self.valid = np.zeros(count, bool)
        self.loaded = np.zeros(count, bool)
        self.on_chip = np.zeros(count, bool)

    def write(self, index, word):
        """Writes entry ``index``, a packed word; the low four bits of its address are ignored."""
        for name, value in PAGE_ENTRY.unpack(word).items():
            getattr(self, name)[index] = value
        self.address[index] &= _CHUNK_MASK

    def translate(self, segment, coordinates, touched, size_bytes):
        """Addresses and errors of elements.

        Parameters
        ----------
        segment : Segment
        coordinates : integers of shape (..., rank)
        touched : bool, of shape (...)
            The accessed elements, which are inside. Results for others are meaningless.
        size_bytes : int
            Bytes of shared memory.

        Returns
        -------
        addresses, codes : two arrays of shape (...)
            The address is 0 for elements that are not touched or have a code other than ``PeError.NONE``.
        """
        number, offset = segment.locate(np.where(touched[..., np.newaxis], coordinates, 0))
        codes = np.full(number.shape, int(PeError.NONE))
        page_address = segment.base
        if segment.paged:
            entry = segment.first_entry + number
            valid, loaded = self.valid[entry], self.loaded[entry]
            waiting = touched & valid & ~loaded
            if waiting.any():
                raise PageNotLoadedError(
                    f"page entry {entry[waiting][0]} is valid but not loaded: the access would wait"
                )
            page_address = self.address[entry]
            codes = np.where(self.on_chip[entry], codes, int(PeError.OFF_CHIP))
            codes = np.where(valid, codes, int(PeError.UNMAPPED))
        addresses = swizzle(page_address + offset & _ADDRESS_MASK, segment.swizzle)
        codes = np.where((codes == PeError.NONE) & (addresses >= size_bytes), int(PeError.MEMORY), codes)
        codes = np.where(touched, codes, int(PeError.NONE))
        return np.where(touched & (codes == PeError.NONE), addresses, 0), codes
