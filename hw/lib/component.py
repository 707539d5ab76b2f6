"""Bundles of ports, and connections that check what flows through them."""

from types import SimpleNamespace

from amaranth.lib.wiring import Signature, connect

__all__ = ["Port", "alike", "bundle", "join"]


class Port(Signature):
    """A bundle of members with a class of its own: equal to those of its class with the same members."""

    def __eq__(self, other):
        return type(self) is type(other) and self.members == other.members


def bundle(component, signature):
    """The members of ``signature`` that ``component`` has among its own, as one interface.

    For tops whose ports keep their plain names, to be connected at once to a block that has the signature as a port.
    """
    return SimpleNamespace(signature=signature, **{name: getattr(component, name) for name in signature.members})


def join(m, **ports):
    """Connects two interfaces, and makes sure that they mean the same.

    ``amaranth.lib.wiring.connect`` compares widths only: a stream of one structure would silently join a stream of
    another as wide.

    Parameters
    ----------
    m : Module
    **ports
        Two interfaces of opposite direction; the names tell them apart in errors.

    Raises
    ------
    TypeError
        If their signatures differ.
    """
    (name, port), (other_name, other) = ports.items()
    if port.signature.flip() != other.signature:
        raise TypeError(
            f"{name} and {other_name} must have one signature, not {port.signature!r} and {other.signature!r}"
        )
    connect(m, **ports)


def alike(platform, component, *parameters):
    """``component``, or what stands for it on a platform that writes a module once for all components that are alike.

    Elaborating each of them takes hundreds of megabytes and many minutes in large designs. On all other platforms
    nothing changes.

    Parameters
    ----------
    platform : object
        As ``elaborate`` is given it. One with a method ``instance`` is asked for what stands for the component.
    component : wiring.Component
        In the domain ``sync``. It is connected by its ports alone, and changed by nothing such as ``ResetInserter``.
    *parameters
        With the class they decide what it is made of.

    Returns
    -------
    Elaboratable or Instance
    """
    return platform.instance(component, parameters) if hasattr(platform, "instance") else component
