"""Errors that only a cluster has; codes continue those of the TMAU (docs/cluster.md, "Errors")."""

from enum import IntEnum

__all__ = ["ClusterError"]


class ClusterError(IntEnum):
    """Code of an error record; its lower-case name is the ``error`` of a replay result."""

    CORES = 38  #: the mask names no core, or a core that does not exist or may not be named
    REMOTE = 39  #: cores that the command named refused it; value is their mask
    STOPPED = 40  #: the core was stopped before the command began
