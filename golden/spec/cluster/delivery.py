"""Where a command of a core in a cluster reads and writes shared memory (docs/cluster.md, "Fields of a command")."""

from ..fields import Field, Format

__all__ = ["DELIVERY", "MOST_CORES"]

MOST_CORES = 16

#: Bits of a command that belong to no field of a core alone, which ignores them.
DELIVERY = Format(
    "delivery",
    512,
    "What LOAD and COPY_BLOCK have in a cluster beside their own fields.",
    (
        Field("multicast", 400, 1, "1: what lands in shared memory goes to the cores of ``cores``; 0: to the issuer."),
        Field("remote_source", 401, 1, "COPY_BLOCK from shared memory: 1: that of ``source_core``; 0: the issuer's."),
        Field("cores", 416, MOST_CORES, "Mask of the receivers: bit i is core i."),
        Field("source_core", 432, 4, "Number of the core that is read."),
    ),
)
