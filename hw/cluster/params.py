"""Parameters of a cluster, and the named presets."""

from dataclasses import dataclass, replace

from tilewright.spec.cluster import MOST_CORES

from ..core.params import CORE_PRESETS, CoreParams
from ..lib.parameters import check_sizes
from .l2.params import L2Params

__all__ = ["CLUSTER_PRESETS", "ClusterParams"]


@dataclass(frozen=True)
class ClusterParams:
    """Sizes of a cluster of equal cores.

    Attributes
    ----------
    cores : int
        1 to 16.
    core : CoreParams
        The same for each core, with an access unit; the cluster decides its ``cores`` and ``prefetches``.
    l2 : L2Params or None
        The cache between the cores and global memory; None: there is none.
    """

    cores: int = 4
    core: CoreParams = CORE_PRESETS["default"]
    l2: L2Params | None = None

    def __post_init__(self):
        check_sizes(self, {"cores": (1, MOST_CORES)}, ())
        if not isinstance(self.core, CoreParams):
            raise TypeError(f"core must be CoreParams, not {self.core!r}")
        if not self.core.tmau:
            raise ValueError("core must have an access unit: tmau is None")
        if not isinstance(self.l2, L2Params | None):
            raise TypeError(f"l2 must be L2Params or None, not {self.l2!r}")
        tmau = self.tmau.replace(cores=self.cores, prefetches=self.l2 is not None)
        object.__setattr__(self, "core", self.core.replace(tmau=tmau))

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)

    @property
    def tmau(self):
        """The TmauParams of each core."""
        return self.core.tmau

    @property
    def read_words(self):
        """Bus words that a core may have asked for: as many as its bursts have, or what 240 cycles of latency need."""
        return min(256, self.tmau.max_outstanding * self.tmau.max_burst)

    @property
    def smem(self):
        """The SmemParams of each core."""
        return self.core.smem


CLUSTER_PRESETS = {
    #: Two of the smallest cores: quick to simulate.
    "pair": ClusterParams(2, CORE_PRESETS["unit"]),
    "quad": ClusterParams(4, CORE_PRESETS["default"]),
}
