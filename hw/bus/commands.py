"""Commands of the TMAU as processors issue them."""

from amaranth.lib import data

from tilewright.golden.spec import COMMAND

from ..lib.formats import packed_layout

__all__ = ["command_layout", "command_view"]


def command_layout():
    """A command as a processor issues it: 512 bits, seen as ``golden.spec.COMMAND``; see :func:`command_view`."""
    return packed_layout(COMMAND)


def command_view(fmt, command):
    """The same bits as another of the formats of ``golden.spec.FORMATS``."""
    return data.View(packed_layout(fmt), command.as_value())
