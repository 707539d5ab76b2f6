"""Windows of memory, as registers hold them."""

from amaranth.hdl import Mux

__all__ = ["LINE_LOG2", "PAGE_LOG2", "window_units"]

#: Log2 of the bytes that windows of global memory consist of, and those of shared memory.
PAGE_LOG2, LINE_LOG2 = 12, 7


def window_units(base, limit, low, high):
    """First and last unit of 2^``low`` bytes of a window in a memory of 2^``high`` bytes.

    A window that begins behind the memory holds nothing.

    Parameters
    ----------
    base, limit : Value
        Byte addresses of its first and its last byte; low bits are ignored.
    """
    ones = (1 << high - low) - 1
    behind, through = base[high:].any(), limit[high:].any()
    return Mux(behind, ones, base[low:high]), Mux(behind, 0, Mux(through, ones, limit[low:high]))
