"""Tensors in shared memory: where they lie, and the segments and page entries by which instructions find them."""

import numpy as np

from tilewright.spec import CHUNK_BYTES, LINE_BYTES, Swizzle
from tilewright.spec.pe import PAGE_ENTRY, SEGMENT, SegmentElement

from ..arguments import integers, member, pair, room, shown, truth
from .segment import PageTable, Segment, wrong_segment
from .sizes import sizes_or_default

__all__ = ["Placement"]


class Placement:
    """Shared memory that is filled from its beginning.

    Parameters
    ----------
    size_bytes : int
        Bytes of shared memory.
    sizes : PeSizes, or anything with its attributes

    Attributes
    ----------
    smem : uint8 array
    segments : list of Segment
        In the order of their numbers.
    entries : list of int
        Packed page entries, from entry 0.
    """

    def __init__(self, size_bytes, sizes=None):
        self.sizes = sizes_or_default(sizes)
        self.smem = np.zeros(room("size_bytes", size_bytes), np.uint8)
        self.segments = []
        self.entries = []
        self._pages = PageTable(self.sizes.pages)
        self._end = 0

    def add(self, size, element, *, page_log2=None, swizzle=Swizzle.NONE, paged=None, repeated=False):
        """Reserves memory for a tensor; returns the number of its segment.

        Parameters
        ----------
        size : tuple of int
            Elements of each dimension, innermost first.
        element : SegmentElement or str
        page_log2 : tuple of int, optional
            Log2 of the elements of a page in each dimension. By default, pages are tiles as the TMAU loads them: rows
            of 128 bytes, or of the next power of two if they are shorter, and all elements of the other dimensions.
        swizzle : Swizzle or str
        paged : bool, optional
            Whether there are page entries; by default, if there is more than one page.
        repeated : bool
            All pages share one address: a tensor that repeats itself and may be larger than the memory.

        Raises
        ------
        ValueError
            If the segment would be wrong or does not fit. The caller must then split the product: by rows, by columns,
            or along K with C accumulated.
        """
        element, swizzle = member("element", SegmentElement, element), member("swizzle", Swizzle, swizzle)
        size, repeated = integers("size", size), truth("repeated", repeated)
        if not 1 <= len(size) <= SEGMENT["size"].count:
            raise ValueError(f"size must have 1 to {SEGMENT['size'].count} entries, not {shown(size)}")
        page_log2 = pair("page_log2", _tile_log2(size, element.bytes) if page_log2 is None else page_log2, len(size))
        for name, values in (("size", size), ("page_log2", page_log2)):
            low, high = SEGMENT[name].range
            if not all(low <= value <= high for value in values):
                raise ValueError(f"{name} must have values of {low} to {high}, not {shown(values)}")
        segment = Segment(element, size, page_log2, swizzle)
        count = int(np.prod(segment.pages))
        if count > 1 if paged is None else truth("paged", paged):
            segment = Segment(**vars(segment) | {"paged": True, "first_entry": len(self.entries)})
        else:
            segment = Segment(**vars(segment) | {"base": self._end})
        wrong = wrong_segment(segment.pack(), self.sizes.pages)
        if wrong:
            raise ValueError(f"{segment} is wrong, split the product or change the pages: {wrong}")
        if len(self.segments) == self.sizes.segments:
            raise ValueError(f"all {self.sizes.segments} segments are in use")
        address = self._end
        for number in range(count):
            if number == 0 or not repeated:
                address = self._take_page(segment)
            if segment.paged:
                self._add_entry(address)
        self.segments.append(segment)
        return len(self.segments) - 1

    def put(self, number, array):
        """Writes a tensor of raw bits: ``array``, with the outermost dimension first, of any type of the right size."""
        segment = self.segments[number]
        contents = np.ascontiguousarray(array)
        if contents.shape != segment.size[::-1] or contents.itemsize != segment.element.bytes:
            raise ValueError(f"a tensor of shape {contents.shape} and {contents.dtype} does not fit {segment}")
        self.smem[self._addresses(segment)] = contents.view(np.uint8).reshape(-1, segment.element.bytes)
        if self.get(number).tobytes() != contents.tobytes():
            raise ValueError(f"segment {number} has pages that share memory, and the tensor does not repeat itself")

    def get(self, number, smem=None):
        """The raw bits of the tensor in ``smem``, or in this shared memory, with the outermost dimension first."""
        segment = self.segments[number]
        contents = (self.smem if smem is None else smem)[self._addresses(segment)]
        return contents.view(f"<u{segment.element.bytes}").reshape(segment.size[::-1])

    def load(self, pe):
        """Writes all segments and page entries to ``pe``."""
        for index, segment in enumerate(self.segments):
            pe.write_segment(index, segment.pack())
        for index, word in enumerate(self.entries):
            pe.write_page(index, word)

    def _take_page(self, segment):
        """Reserves memory for a page; returns its address."""
        last = [min(size, 1 << log2) - 1 for size, log2 in zip(segment.size, segment.page_log2, strict=True)]
        bytes_used = int(segment.locate(np.array(last))[1]) + segment.element.bytes
        address = self._end
        self._end += -(-bytes_used // LINE_BYTES) * LINE_BYTES
        if self._end > len(self.smem):
            raise ValueError(f"{len(self.smem)} bytes of shared memory do not hold all operands: split the product")
        return address

    def _add_entry(self, address):
        word = PAGE_ENTRY.pack(address=address, valid=1, loaded=1, on_chip=1)
        self._pages.write(len(self.entries), word)
        self.entries.append(word)

    def _addresses(self, segment):
        """Addresses of the bytes of all elements, of shape (elements, bytes), with dimension 0 fastest."""
        coordinates = np.indices(segment.size[::-1]).reshape(segment.rank, -1)[::-1].T
        touched = np.ones(len(coordinates), bool)
        addresses, _ = self._pages.translate(segment, coordinates, touched, len(self.smem))
        return addresses[:, np.newaxis] + np.arange(segment.element.bytes)


def _tile_log2(size, element_bytes):
    """Log2 of the elements of a page with rows of 16 to 128 bytes and all elements of the other dimensions."""
    row_bytes = min(max(size[0] * element_bytes, CHUNK_BYTES), LINE_BYTES)
    row = -(-row_bytes // element_bytes)
    return ((row - 1).bit_length(), *((count - 1).bit_length() for count in size[1:]))
