"""Amaranth layouts made from the formats of ``tilewright.spec``."""

from amaranth.hdl import Shape
from amaranth.lib import data

from tilewright.spec import COMMAND

__all__ = ["command_layout", "command_view", "packed_layout", "struct_layout"]


def _shape(field):
    # Enumerations stay plain numbers: hardware must be able to hold, and refuse, values that they do not have.
    element = Shape(field.width, signed=field.signed)
    return data.ArrayLayout(element, field.count) if field.count else element


def packed_layout(fmt):
    """Layout of a ``Format`` in memory: every element at its documented bit.

    Returns
    -------
    amaranth.lib.data.FlexibleLayout
        ``fmt.bits`` wide. An array field ``name`` becomes scalars ``name0``, ``name1``, … and, if its elements are
        contiguous, also an array ``name``. Numbers are as stored: a bias is not added.
    """
    members = {}
    for field in fmt.fields:
        for index, lsb in enumerate(field.lsbs):
            name = f"{field.name}{index}" if field.count else field.name
            members[name] = data.Field(Shape(field.width, signed=field.signed), lsb)
        # A field called ``shape`` would hide the method of views, so it is available by its elements only.
        if field.count and field.pitch == field.width and not hasattr(data.View, field.name):
            members[field.name] = data.Field(_shape(field), field.lsb)
    return data.FlexibleLayout(fmt.bits, members)


def struct_layout(fmt, **shapes):
    """Layout of the fields of ``fmt`` without its reserved bits, for streams and queues.

    Parameters
    ----------
    **shapes
        Another shape for a field, where a parameter makes it narrower than its format.
    """
    unknown = set(shapes) - {field.name for field in fmt.fields}
    if unknown:
        raise ValueError(f"{fmt.name} has no field {sorted(unknown)[0]!r}")
    return data.StructLayout({field.name: shapes.get(field.name, _shape(field)) for field in fmt.fields})


def command_layout():
    """A command of the TMAU as a processor issues it: 512 bits with the fields of ``spec.COMMAND``."""
    return packed_layout(COMMAND)


def command_view(fmt, command):
    """The bits of a command as another one of ``spec.FORMATS``."""
    return data.View(packed_layout(fmt), command.as_value())
