"""Where the bytes of a command land in a cluster, and which commands may name whom.

Functions of values, combinational; their users choose where the registers are.

Specification: docs/cluster.md, "Multicast", "Isolation".
"""

from amaranth import Cat, Const, Mux

from tilewright.golden.spec.cluster.delivery import DELIVERY, MOST_CORES

from ...bus.commands import command_view

__all__ = ["lands_apart", "named_owner", "named_receivers", "unnameable", "unreadable"]


def named_receivers(params, command):
    """Mask of the cores that a command names as receivers; 0: none, its bytes land in the issuer's shared memory."""
    delivery = command_view(DELIVERY, command)
    return Mux(delivery.multicast, delivery.cores[: params.cores], 0)


def unnameable(params, windows, command):
    """Whether a multicast names no core, or one that does not exist or that the core may not name.

    Parameters
    ----------
    params : TmauParams
    windows : View of WindowsLayout
    command : View of command_layout()
    """
    delivery, count = command_view(DELIVERY, command), params.cores
    strange = (delivery.cores[:count] & ~windows.allowed).any() | delivery.cores[count:].any()
    return delivery.multicast & (strange | (delivery.cores == 0))


def unreadable(params, windows, command):
    """Whether a command names as source a core that does not exist or that the core may not name."""
    delivery = command_view(DELIVERY, command)
    return delivery.remote_source & ~_of_all(params, windows.allowed).bit_select(delivery.source_core, 1)


def named_owner(params, windows, command):
    """Mask of the one core beside the issuer whose shared memory a COPY_BLOCK from shared memory reads; 0: none."""
    delivery = command_view(DELIVERY, command)
    return Mux(delivery.remote_source, (1 << delivery.source_core)[: params.cores] & ~windows.own, 0)


def lands_apart(params, windows, command):
    """Whether the shared memory that is read is not among those in which bytes land."""
    delivery, own = command_view(DELIVERY, command), _of_all(params, windows.own)
    receivers = Mux(delivery.multicast, delivery.cores, own)
    return ~(receivers & Mux(delivery.remote_source, 1 << delivery.source_core, own)).any()


def _of_all(params, cores):
    """A mask of the cores that exist, as one of all that there may be."""
    return Cat(cores, Const(0, MOST_CORES - params.cores))
