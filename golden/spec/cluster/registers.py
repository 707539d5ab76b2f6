"""Registers that a TMAU has in a cluster beside its others (docs/cluster.md, "Registers")."""

from ..fields import Field
from ..registers import Access, Register, counter
from .delivery import MOST_CORES

__all__ = ["CLUSTER_REGISTERS"]

_ALL = (1 << MOST_CORES) - 1

CLUSTER_REGISTERS = (
    Register("core", 0x18, Access.RO, "Where the unit is. Its reset value is in the hardware.", (
        Field("number", 0, 8, "Number of this core."),
        Field("cores", 8, 8, "Cores of the cluster."),
    )),
    Register("isolation", 0x8C, Access.RW, "Masks of cores. Change them only while the cluster is idle.", (
        Field("reach", 0, MOST_CORES, "Cores that commands of this one may name."),
        Field("accepts", MOST_CORES, MOST_CORES, "Cores whose commands may write here."),
    ), reset=_ALL << MOST_CORES | _ALL),
    Register("stop", 0xA0, Access.RW, "Whether the core is stopped. It is when it is idle too.", (
        Field("stop", 0, 1, "Take no command, instruction or job at ports; refuse those that have not begun."),
    )),
    counter("bytes_received", 0x9C, "Bytes of transfers that have landed here, whichever core issued them."),
)  # fmt: skip
