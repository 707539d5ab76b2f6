"""Payloads as numbers by name: what ``data.Const`` is, for the millions of payloads that tests look at."""

from functools import cache

from amaranth.hdl import Shape, ShapeCastable
from amaranth.lib import data

__all__ = ["unpacked", "unpacker"]


def unpacked(shape, bits):
    """The value of ``bits`` in ``shape``: the inverse of ``packed``.

    Returns
    -------
    data.Const for a layout; what its ``from_bits`` returns for another shape-castable, as an enumeration; else int

    Raises
    ------
    ValueError
        If the bits do not fit the shape, or are no member of an enumeration.
    """
    width = Shape.cast(shape).width
    if bits >> width:
        raise ValueError(f"{bits:#x} does not fit the {width} bits of {shape!r}")
    return unpacker(shape)(bits)


@cache
def unpacker(shape):
    """The function from bits, which fit, to values: looked up once where many are unpacked."""
    if isinstance(shape, type) and issubclass(shape, data.Struct | data.Union):
        shape = data.Layout.cast(shape)
    if isinstance(shape, data.Layout):
        fields = {name: (field.offset, (1 << field.width) - 1, unpacker(field.shape)) for name, field in shape}
        return lambda bits: _Constant(shape, fields, bits)
    if isinstance(shape, ShapeCastable):
        return shape.from_bits
    shape = Shape.cast(shape)
    if shape.signed:
        mask, sign = (1 << shape.width) - 1, 1 << shape.width >> 1
        return lambda bits: (bits & mask ^ sign) - sign
    return lambda bits: bits


class _Constant(data.Const):
    """A constant that finds its members in a table, one for all constants of a layout.

    ``data.Const`` works out the size of its layout, and where a member is, anew each time.
    """

    def __init__(self, layout, fields, bits):
        # The base class is not set up, as this is what takes its time: all that it does is overridden.
        self._layout, self._fields, self._bits = layout, fields, bits

    def shape(self):
        return self._layout

    def as_bits(self):
        return self._bits

    def as_value(self):
        return _plain(self).as_value()

    def __getitem__(self, key):
        try:
            offset, mask, unpack = self._fields[key]
        except (KeyError, TypeError):
            return _plain(self)[key]  # a slice, an index from the end, or an error
        return unpack(self._bits >> offset & mask)

    def __getattr__(self, name):
        if name.startswith("_"):
            return self.__getattribute__(name)  # an error: such members are for indexing
        if name not in self._fields:
            return getattr(_plain(self), name)  # an error that lists the members
        value = self.__dict__[name] = self[name]
        return value

    def __len__(self):
        return len(_plain(self))

    def __hash__(self):
        return hash(_plain(self))

    def __eq__(self, other):
        if isinstance(other, _Constant) and other._fields is self._fields:
            return self._bits == other._bits
        return _plain(self) == _plain(other)

    def __ne__(self, other):
        return _plain(self) != _plain(other)

    def __repr__(self):
        return f"Const({{{', '.join(f'{name!r}: {self._shown(name)}' for name in self._fields)}}})"

    def _shown(self, name):
        try:
            return repr(self[name])
        except ValueError:  # anything may be in a member that is not used
            offset, mask, _ = self._fields[name]
            return f"{self._bits >> offset & mask:#x}"


def _plain(value):
    return data.Const(value._layout, value._bits) if isinstance(value, _Constant) else value
