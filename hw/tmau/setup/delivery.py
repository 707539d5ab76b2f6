"""Where the bytes of a command land in a cluster, and which commands may name whom.

Functions of values, combinational; their users choose where the registers are.

Specification: docs/cluster.md, "Multicast", "Isolation".
"""

from amaranth import Cat, Const, Mux

from tilewright.golden.spec.cluster.delivery import DELIVERY, MOST_CORES

from ...bus.commands import command_view

__all__ = ["lands_apart", "named_receivers", "reads_apart", "unnameable"]


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


def lands_apart(params, windows, command):
    """Whether the issuer's shared memory is not among those in which bytes land."""
    delivery = command_view(DELIVERY, command)
    return delivery.multicast & ~(delivery.cores[: params.cores] & windows.own).any()


def reads_apart(params, windows, command):
    """Whether a COPY_BLOCK reads the shared memory of another core, or of one that does not exist."""
    delivery = command_view(DELIVERY, command)
    own = Cat(windows.own, Const(0, MOST_CORES - params.cores))
    return delivery.remote_source & ~own.bit_select(delivery.source_core, 1)
