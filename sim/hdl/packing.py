"""Rows of bytes and Amaranth layouts: items of scripts are packed one by one, logs are unpacked as numpy columns."""

from functools import cache

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data

__all__ = ["pack", "pack_rows", "row_bytes", "unpack_column"]


def pack(shape, value):
    """The bits of ``value`` as an int.

    Parameters
    ----------
    shape : shape-like
    value : int, dict or sequence
        Dictionaries for structures, sequences for arrays; what is left out is zero. Of either, an int is all bits.

    Raises
    ------
    ValueError
        If a number does not fit or there is no such field.
    """
    fields = _fields(shape)
    if fields and not isinstance(value, int):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        word = 0
        for name, member in members:
            if name not in fields:
                raise ValueError(f"there is no field {name!r} among {', '.join(map(str, fields))}")
            inner, offset = fields[name]
            word |= pack(inner, member) << offset
        return word
    low, width = _range(shape)
    number = int(value)
    if not low <= number < low + (1 << width):
        raise ValueError(f"{number} does not fit {width} bits")
    return number & (1 << width) - 1


def row_bytes(shape):
    """Bytes of a row, the last one filled up with zeros."""
    return -(-_range(shape)[1] // 8)


def pack_rows(shape, values):
    """Packed ``values`` as a uint8 array, one row each, least significant byte first."""
    count = row_bytes(shape)
    raw = b"".join(pack(shape, value).to_bytes(count, "little") for value in values)
    return np.frombuffer(raw, np.uint8).reshape(-1, count)


def unpack_column(layout, rows, *path):
    """One field of every row: int64 if it has less than 64 bits, uint64 if 64, rows of bytes if it has more.

    Parameters
    ----------
    layout : data.StructLayout
    rows : uint8 array
        As :func:`pack_rows` makes them.
    *path : str or int
        Name of the field, and of a field in it.
    """
    offset, shape = 0, layout
    for name in path:
        shape, start = _fields(shape)[name]
        offset += start
    _, width = _range(shape)
    first, after = offset // 8, -(-(offset + width) // 8)
    if width > 64:
        if offset % 8 or width % 8:
            raise ValueError(f"field {path[-1]!r} of {width} bits does not lie on bytes")
        return rows[:, first:after]
    # A field of 64 bits that does not begin on a byte spans nine.
    low = np.zeros((len(rows), 16), np.uint8)
    low[:, : after - first] = rows[:, first:after]
    words = np.ascontiguousarray(low).view("<u8")
    shift = np.uint64(offset % 8)
    column = words[:, 0] >> shift
    if shift:
        column |= words[:, 1] << (np.uint64(64) - shift)
    column &= np.uint64((1 << width) - 1)
    return column if width == 64 else column.astype(np.int64)


@cache
def _fields(shape):
    """Shape and offset of each field; empty for what is not a layout."""
    if not isinstance(shape, data.Layout):
        return {}
    return {name: (field.shape, field.offset) for name, field in shape}


@cache
def _range(shape):
    """Lowest value, and bits."""
    shape = Shape.cast(shape)
    return -(1 << shape.width - 1) if shape.signed else 0, shape.width
