"""Channels of AXI4 ports as streams, for the drivers of streams."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Value
from amaranth.lib import data

__all__ = ["axi_channel"]


def axi_channel(axi, name):
    """A channel with the members of a stream: what ``send``, ``receive`` and ``watch_stream`` take.

    Parameters
    ----------
    axi : interface
        With this channel.
    name : str
        ``"ar"``, ``"r"``, ``"aw"``, ``"w"`` or ``"b"``.

    Returns
    -------
    SimpleNamespace
        ``payload`` has the channel's members without the name in front: ``id``, ``addr``, ``len``.
    """
    members = {
        member[len(name) :]: getattr(axi, member)
        for member in axi.signature.members
        if member.startswith(name) and member[len(name) :] not in ("valid", "ready")
    }
    shape = data.StructLayout({key: signal.shape() for key, signal in members.items()})
    return SimpleNamespace(
        payload=data.View(shape, Cat(Value.cast(signal) for signal in members.values())),
        valid=getattr(axi, name + "valid"),
        ready=getattr(axi, name + "ready"),
    )
