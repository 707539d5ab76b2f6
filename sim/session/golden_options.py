"""The parameters of hardware that the golden model needs to judge it."""

from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core.params import CoreParams

__all__ = ["core_options", "machine_options"]


def machine_options(params):
    """Keyword arguments of ``Machine`` and ``Cluster`` for an access unit: TmauParams, or the params of what has some.

    Not among them are shared memory, which is given as an array of ``smem.size_bytes``, and windows, which are set.
    """
    tmau = params.tmau if isinstance(params, CoreParams | ClusterParams) else params
    return {"bus_bytes": tmau.bus_bytes, "addr_width": tmau.addr_width, "features": tmau.features}


def core_options(params):
    """Keyword arguments of ``Core`` for CoreParams."""
    return machine_options(params) | {"pe": params.pe, "conv": params.conv and params.conv.conv}
