"""Byte-addressed memories of the golden model."""

import numpy as np

from .arguments import integer, numbers, room, shown
from .open_bytes import OpenBytes

__all__ = ["GlobalMemory", "Memory", "as_bytes", "check_global", "check_shared", "memory_bytes"]

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
