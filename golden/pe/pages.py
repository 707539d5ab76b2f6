"""The page table: where pages are, and whether (docs/pe.md, "Logical addresses")."""

import numpy as np

from ..smem.swizzle import swizzle
from ..spec.pe.errors import PeError
from ..spec.pe.segment import PAGE_ENTRY

__all__ = ["PageNotLoadedError", "PageTable"]

_ADDRESS_MASK = 0xFFFFFFFF
_CHUNK_MASK = 0xFFFFFFF0


class PageNotLoadedError(RuntimeError):
    """An access to a page that is valid but not loaded: hardware would wait until somebody loads it."""


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
        """Addresses of elements, and what is wrong with them.

        Parameters
        ----------
        segment : Segment
        coordinates : integers of shape (..., rank)
        touched : bool, of shape (...)
            The elements that are accessed; all of them are inside. What is said of others means nothing.
        size_bytes : int
            Bytes of shared memory.

        Returns
        -------
        addresses, codes : two arrays of shape (...)
            Of an element with a code other than ``PeError.NONE``, or that is not touched, the address is 0.
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
