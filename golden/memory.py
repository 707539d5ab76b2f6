"""Byte-addressed memories of the golden model, their initial contents, and bytes that the specification leaves open."""

import numpy as np

from .arguments import integer, numbers, room, shown

__all__ = [
    "GlobalMemory", "Memory", "OpenBytes", "as_bytes", "check_global", "check_shared", "fill_pattern", "hex_pattern",
    "memory_bytes", "mix_pattern", "whole_elements",
]  # fmt: skip

_ADDRESSES = (1 << 64) - 1
_ANY = 255  # mark of a byte that may have any value


def whole_elements(marks, element_bytes):
    """``marks``, bools whose last axis holds whole elements, but all bytes of an element are marked if one is."""
    elements = marks.reshape(*marks.shape[:-1], -1, element_bytes)
    return elements.any(axis=-1).repeat(element_bytes, axis=-1)


class OpenBytes:
    """The bytes of a memory that the specification leaves open, and their legal values (docs/golden.md).

    An open byte may have any value; or it belongs to an element that is, as a whole, either in its current or in its
    previous state. Places are indices of bytes in the memory, in arrays of any shape.

    Parameters
    ----------
    memory : uint8 array
        The memory itself, which the model keeps changing.

    Attributes
    ----------
    undecided : str or None
        The first result, other than contents of memory, that depended on an open byte: after it nothing is certain.
    """

    def __init__(self, memory):
        self._memory = memory
        self._marks = None  # 0, _ANY, or the bytes of an element with two states
        self._previous = None  # the other state
        self.undecided = None

    def __bool__(self):
        """Whether a byte is open."""
        return self._marks is not None and bool(self._marks.any())

    def at(self, places):
        """Which of the bytes at ``places`` are open, as a bool array."""
        return np.zeros(np.shape(places), bool) if self._marks is None else self._marks[places] != 0

    def spoil(self, places):
        """From now on the bytes at ``places`` may have any value."""
        self.marks[places] = _ANY

    def write(self, places, marks=None, element_bytes=0):
        """Notes that bytes have been written.

        Parameters
        ----------
        places : integers
        marks : bool array or None
            Of the same shape: which of them come from open bytes; None: none.
        element_bytes : int
            0: they replaced the old bytes. Otherwise elements of this size were combined with the old ones, and the
            last axis holds whole elements.
        """
        if not self and (marks is None or not marks.any()):
            return
        marks = np.zeros(np.shape(places), bool) if marks is None else marks
        if element_bytes:
            marks = whole_elements(marks | self.at(places), element_bytes)
        self.marks[places] = np.where(marks, _ANY, 0)

    def choose(self, places, previous):
        """Each element at ``places``, elements by bytes, is in its current or its ``previous`` state.

        Elements with an open byte stay open.
        """
        closed = ~self.at(places).any(axis=-1)
        self.marks[places[closed]] = places.shape[-1]
        self._previous[places[closed]] = previous[closed]

    @property
    def marks(self):
        """A uint8 array as large as the memory: 0 for bytes that are not open. To open a byte, 255 is written there."""
        if self._marks is None:
            self._marks, self._previous = np.zeros_like(self._memory), np.zeros_like(self._memory)
        return self._marks

    def rely_on(self, places, name):
        """Notes it if ``name``, words for a sentence, depends on open bytes among those at ``places``."""
        if self.at(places).any():
            self.undecide(name)

    def undecide(self, name):
        """Notes that ``name``, words for a sentence, depends on open bytes."""
        self.undecided = self.undecided or f"{name} depends on what is open"

    def wrong(self, other):
        """Which bytes of ``other``, another copy of this memory or of its beginning, are illegal, as a bool array."""
        count = len(other)
        differs = other != self._memory[:count]
        if not self:
            return differs
        marks, previous = self._marks[:count], self._previous[:count]
        wrong = differs & (marks == 0)
        for size in np.unique(marks[(marks != 0) & (marks != _ANY)]).tolist():
            chosen = marks == size
            element = np.flatnonzero(chosen) // size
            # If an element was partly overwritten since, its remaining bytes still are in one of both states.
            not_current, not_previous = np.zeros(count // size + 1, bool), np.zeros(count // size + 1, bool)
            not_current[element[differs[chosen]]] = True
            not_previous[element[(other != previous)[chosen]]] = True
            wrong[chosen] = (not_current & not_previous)[element] & differs[chosen]
        return wrong

    def settled(self, other):
        """``other``, as in :meth:`wrong`, with this memory's value of each open byte; a new array."""
        count = len(other)
        return np.where(self.at(slice(count)), self._memory[:count], other) if self else other.copy()


def memory_bytes(array):
    """The bytes that ``array`` spans in its own memory, as a flat view; the gaps of a strided view are included.

    Strides must not be negative, and the last axis must be contiguous.
    """
    if array.dtype.hasobject:
        raise TypeError(f"data must be bytes or a numpy array of numbers, not {shown(array)}")
    if array.size == 0:
        return np.zeros(0, np.uint8)
    step = array.dtype.itemsize
    reach = sum((n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True) if n > 1) + step
    if min(array.strides, default=0) < 0 or reach % step:
        raise ValueError(f"strides must be positive multiples of the {step}-byte element, not {array.strides}")
    plain = array.view(f"V{step}")  # numpy cannot lay out all types of ml_dtypes
    flat = np.lib.stride_tricks.as_strided(plain, (reach // step,), (step,), writeable=array.flags.writeable)
    return flat.view(np.uint8)


def as_bytes(data):
    """``data``, bytes or an array of numbers, as a flat uint8 array; TypeError otherwise."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return np.frombuffer(data, np.uint8)
    array = np.asarray(data) if isinstance(data, (np.ndarray, np.generic)) else None
    if array is None or array.dtype.hasobject:
        raise TypeError(f"data must be bytes or a numpy array of numbers, not {shown(data)}")
    return np.frombuffer(array.tobytes(), np.uint8)


def check_global(gmem):
    """TypeError unless ``gmem`` is a memory."""
    if not isinstance(gmem, Memory):
        raise TypeError(f"gmem must be a golden.Memory, which golden.Memory(data) makes, not {shown(gmem)}")


def check_shared(smem, *, written=True):
    """TypeError unless ``smem`` can be shared memory; ValueError if it is ``written`` and read-only."""
    if not isinstance(smem, np.ndarray) or smem.dtype != np.uint8 or smem.ndim != 1 or not smem.flags.c_contiguous:
        raise TypeError(f"smem must be a contiguous one-dimensional uint8 array, not {shown(smem)}")
    if written and not smem.flags.writeable:
        raise ValueError(f"smem must be an array that can be written, not one that is read-only: {shown(smem)}")


class Memory:
    """Bytes at the addresses from ``base``; an access outside raises IndexError.

    Parameters
    ----------
    data : int, bytes or one-dimensional uint8 array
        A size in bytes (all zero), or the contents. An array is used in place, not copied.
    name : str
        Name in error messages.
    base : int
        Address of the first byte.
    """

    def __init__(self, data, name="memory", base=0):
        if isinstance(data, np.ndarray):
            if data.dtype != np.uint8 or data.ndim != 1:
                raise TypeError(
                    f"data of {name} must be one-dimensional uint8, not {data.ndim}-dimensional {data.dtype}"
                )
            self.data = data
        elif isinstance(data, (bytes, bytearray)):
            self.data = np.frombuffer(bytes(data), np.uint8).copy()
        else:
            self.data = np.zeros(room(f"bytes of {name}", data), np.uint8)
        #: Bytes that the specification leaves open.
        self.open_bytes = OpenBytes(self.data)
        self.name = name
        self.base = integer(f"base of {name}", base, 0)

    def __repr__(self):
        return f"{type(self).__name__}({len(self)} bytes of {self.name} from {self.base:#x} on)"

    def __len__(self):
        return len(self.data)

    def holds(self, addresses, count):
        """Whether ``count`` bytes from each of ``addresses`` (one or many) lie in this memory, as a bool array."""
        count = integer("count", count, 0, _ADDRESSES)
        first = np.atleast_1d(numbers("addresses", addresses, np.uint64)) - np.uint64(self.base)
        # An address below base has wrapped to far above.
        return (first <= np.uint64(len(self))) & (np.uint64(count) <= np.uint64(len(self)) - first)

    def _index(self, address, count):
        address, count = integer("address", address), integer("count", count, 0)
        if not self.base <= address or address + count > self.base + len(self):
            raise IndexError(f"{count} bytes at {address:#x} leave the {len(self)} bytes of {self.name}")
        return slice(address - self.base, address - self.base + count)

    def read(self, address, count):
        """A copy of ``count`` bytes, as a uint8 array."""
        return self.data[self._index(address, count)].copy()

    def write(self, address, data):
        """Writes ``data``: bytes, or an array of any type in row-major order."""
        raw = as_bytes(data)
        place = self._index(address, len(raw))
        self._check_writable()
        self.data[place] = raw

    def at(self, addresses):
        """The byte at each of ``addresses``, as a uint8 array of the same shape."""
        return self.data[self.places(addresses)]

    def put(self, addresses, data):
        """Writes one byte of ``data`` at each of ``addresses``; the last one of equal addresses remains."""
        places, data = self.places(addresses), numbers("data", data, np.uint8)
        if data.shape not in ((), places.shape):
            raise ValueError(f"data must have a byte for each of the {places.shape} addresses, not shape {data.shape}")
        self._check_writable()
        self.data[places] = data

    def _check_writable(self):
        """ValueError if the contents are read-only."""
        if not self.data.flags.writeable:
            raise ValueError(f"{self!r} cannot be written: the array that it was made of is read-only")

    def places(self, addresses):
        """Indices in ``data`` of the bytes at ``addresses``, as an int64 array of the same shape."""
        addresses = numbers("addresses", addresses, np.uint64)
        inside = self.holds(addresses, 1)
        if not inside.all():
            self._index(int(addresses[~inside][0]), 1)
        return (addresses - np.uint64(self.base)).astype(np.int64)


class GlobalMemory(Memory):
    """Global memory from address 0, with an allocator that never frees."""

    def __init__(self, data):
        super().__init__(data, "global memory")
        self._free = 0

    def place(self, array, align=128):
        """Copies ``array`` (or bytes) to the next free multiple of ``align`` and returns the address.

        A strided view keeps its strides: all bytes that it spans are copied.
        """
        raw = memory_bytes(array) if isinstance(array, np.ndarray) else as_bytes(array)
        align = integer("align", align, 1)
        address = -(-self._free // align) * align
        self.write(address, raw)
        self._free = address + len(raw)
        return address


# Initial contents of memories, as replay files name them (docs/replay.md, "Memory").


def fill_pattern(size, value):
    """``size`` times the byte ``value``."""
    return np.full(size, value, np.uint8)


def mix_pattern(size, seed):
    """Bytes that differ with address and ``seed``: the byte at address a is
    ``((((a + 1) * 0x9E3779B1 + seed * 0x85EBCA6B) mod 2**32) >> 24)``.
    """
    mixed = np.arange(1, size + 1, dtype=np.uint32)
    mixed *= np.uint32(0x9E3779B1)
    mixed += np.uint32(seed * 0x85EBCA6B & 0xFFFFFFFF)
    return (mixed >> np.uint32(24)).astype(np.uint8)


def hex_pattern(size, digits):
    """The bytes of the hexadecimal ``digits`` from address 0; all others are zero."""
    contents = np.zeros(size, np.uint8)
    raw = np.frombuffer(bytes.fromhex(digits), np.uint8)
    contents[: len(raw)] = raw
    return contents
