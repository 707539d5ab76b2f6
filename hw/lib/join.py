"""Connections that check what flows through them."""

from amaranth.lib.wiring import connect

__all__ = ["join"]


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
