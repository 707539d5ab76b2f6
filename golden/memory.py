"""Bytes of a memory that the specification leaves open (docs/golden.md, "What is left open")."""

import numpy as np

from .arguments import integer, numbers, room, shown

__all__ = ["GlobalMemory", "Memory", "OpenBytes", "as_bytes", "check_global", "check_shared", "fill_pattern",
           "hex_pattern", "memory_bytes", "mix_pattern", "whole_elements"]  # fmt: skip

_ANY = 255  # mark of a byte that may hold anything


def whole_elements(marks, element_bytes):
    """``marks``, bools whose last axis holds whole elements, with all bytes marked of an element of which one is."""
    elements = marks.reshape(*marks.shape[:-1], -1, element_bytes)
    return elements.any(axis=-1).repeat(element_bytes, axis=-1)


class OpenBytes:
    """Which bytes of a memory the specification leaves open, and what they may hold.

    An open byte may hold anything; or it belongs to an element that is either as the memory has it or as it was before,
    as a whole. Places are indices of bytes in the memory, in arrays of any shape.

    Parameters
    ----------
    memory : uint8 array
        The memory itself, which the model goes on changing.

    Attributes
    ----------
    undecided : str or None
        The first thing that depended on an open byte beyond the contents of memory: after it nothing is certain.
    """

    def __init__(self, memory):
        self._memory = memory
        self._marks = None  # 0, _ANY, or the bytes of an element of which there is a choice
        self._kept = None  # the other choice
        self.undecided = None

    def __bool__(self):
        """Whether a byte is open."""
        return self._marks is not None and bool(self._marks.any())

    def at(self, places):
        """Which of the bytes at ``places`` are open, as a bool array."""
        return np.zeros(np.shape(places), bool) if self._marks is None else self._marks[places] != 0

    def spoil(self, places):
        """The bytes at ``places`` may hold anything from now on."""
        self._allocate()
        self._marks[places] = _ANY

    def write(self, places, marks=None, element_bytes=0):
        """Notes that bytes have been written.

        Parameters
        ----------
        places : integers
        marks : bool array or None
            Of the same shape: which of them come from open bytes; None: none.
        element_bytes : int
            0: they were written as they are. Otherwise elements of so many bytes were made of old and new ones, and the
            last axis holds whole elements.
        """
        if not self and (marks is None or not marks.any()):
            return
        self._allocate()
        marks = np.zeros(np.shape(places), bool) if marks is None else marks
        if element_bytes:
            marks = whole_elements(marks | self.at(places), element_bytes)
        self._marks[places] = np.where(marks, _ANY, 0)

    def choose(self, places, kept):
        """Each element at ``places``, elements by bytes, is as it is or as ``kept`` has it. What is open stays open."""
        closed = ~self.at(places).any(axis=-1)
        self._allocate()
        self._marks[places[closed]] = places.shape[-1]
        self._kept[places[closed]] = kept[closed]

    @property
    def marks(self):
        """A uint8 array as large as the memory: 0 for bytes that are not open. Who opens a byte writes 255 there."""
        self._allocate()
        return self._marks

    def rely_on(self, places, what):
        """Notes it if ``what``, words for a sentence, depends on open bytes among those at ``places``."""
        if self.at(places).any():
            self.undecide(what)

    def undecide(self, what):
        """Notes that ``what``, words for a sentence, depends on what is open."""
        self.undecided = self.undecided or f"{what} depends on what is open"

    def wrong(self, seen):
        """Which bytes of ``seen`` the specification does not allow, as a bool array.

        ``seen`` is another such memory, or as much of its beginning as is to be compared.
        """
        count = len(seen)
        differs = seen != self._memory[:count]
        if not self:
            return differs
        marks, kept = self._marks[:count], self._kept[:count]
        wrong = differs & (marks == 0)
        for size in np.unique(marks[(marks != 0) & (marks != _ANY)]).tolist():
            chosen = marks == size
            element = np.flatnonzero(chosen) // size
            # Of an element that was written in part since, what is left of it still is of one of both.
            torn = np.zeros(count // size + 1, bool), np.zeros(count // size + 1, bool)
            torn[0][element[differs[chosen]]] = True
            torn[1][element[(seen != kept)[chosen]]] = True
            wrong[chosen] = (torn[0] & torn[1])[element] & differs[chosen]
        return wrong

    def settled(self, seen):
        """``seen``, as of :meth:`wrong`, with what this memory has wherever a byte is open; a new array."""
        count = len(seen)
        return np.where(self.at(slice(count)), self._memory[:count], seen) if self else seen.copy()

    def _allocate(self):
        if self._marks is None:
            self._marks, self._kept = np.zeros_like(self._memory), np.zeros_like(self._memory)


_ADDRESSES = (1 << 64) - 1


def memory_bytes(array):
    """The bytes that ``array`` spans in its own memory, as a flat view: also of a strided view, its gaps included.

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
    """``data``, bytes or an array of numbers, as a flat uint8 array; TypeError if it is neither."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return np.frombuffer(data, np.uint8)
    array = np.asarray(data) if isinstance(data, (np.ndarray, np.generic)) else None
    if array is None or array.dtype.hasobject:
        raise TypeError(f"data must be bytes or a numpy array of numbers, not {shown(data)}")
    return np.frombuffer(array.tobytes(), np.uint8)


def check_global(gmem):
    """Raises unless ``gmem`` is a memory."""
    if not isinstance(gmem, Memory):
        raise TypeError(f"gmem must be a golden.Memory, which golden.Memory(data) makes, not {shown(gmem)}")


def check_shared(smem, *, written=True):
    """Raises unless ``smem`` can be shared memory, and if it is ``written``, unless it may be."""
    if not isinstance(smem, np.ndarray) or smem.dtype != np.uint8 or smem.ndim != 1 or not smem.flags.c_contiguous:
        raise TypeError(f"smem must be a contiguous one-dimensional uint8 array, not {shown(smem)}")
    if written and not smem.flags.writeable:
        raise ValueError(f"smem must be an array that can be written, not one that is read-only: {shown(smem)}")


class Memory:
    """``data`` at the addresses from ``base`` on.

    Parameters
    ----------
    data : int, bytes or one-dimensional uint8 array
        A size in bytes (all zero), or the contents. An array is used in place, not copied.
    name : str
        What errors call this memory.
    base : int
        Address of the first byte.

    Reading or writing outside raises IndexError.
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
        """Whether ``count`` bytes from each of ``addresses`` (one or many) on lie in this memory, as a bool array."""
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
        """Writes ``data``: bytes, or an array of any type, whose memory is taken in row-major order."""
        raw = as_bytes(data)
        place = self._index(address, len(raw))
        self._check_writable()
        self.data[place] = raw

    def at(self, addresses):
        """The byte at each of ``addresses``, as a uint8 array of the same shape."""
        return self.data[self.places(addresses)]

    def put(self, addresses, data):
        """Writes one byte of ``data`` at each of ``addresses``; of equal addresses the last one stays."""
        places, data = self.places(addresses), numbers("data", data, np.uint8)
        if data.shape not in ((), places.shape):
            raise ValueError(f"data must have a byte for each of the {places.shape} addresses, not shape {data.shape}")
        self._check_writable()
        self.data[places] = data

    def _check_writable(self):
        """ValueError if the contents must not change."""
        if not self.data.flags.writeable:
            raise ValueError(f"{self!r} cannot be written: the array that it was made of is read-only")

    def places(self, addresses):
        """Where the bytes at ``addresses`` lie in ``data``, as an int64 array of the same shape."""
        addresses = numbers("addresses", addresses, np.uint64)
        held = self.holds(addresses, 1)
        if not held.all():
            self._index(int(addresses[~held][0]), 1)
        return (addresses - np.uint64(self.base)).astype(np.int64)


class GlobalMemory(Memory):
    """Global memory from address 0 on, with an allocator that only goes up."""

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
    """The bytes that ``digits`` spell, from address 0 on; the rest is zero."""
    contents = np.zeros(size, np.uint8)
    raw = np.frombuffer(bytes.fromhex(digits), np.uint8)
    contents[: len(raw)] = raw
    return contents
