"""Parameters of a cluster, and the named presets."""

from dataclasses import dataclass, field, replace

from tilewright.spec.cluster import MOST_CORES

from ..core.params import CORE_PRESETS, CoreParams
from ..lib.parameters import check_sizes
from ..tmau.params import TmauParams
from .l2.params import L2Params

__all__ = ["CLUSTER_PRESETS", "ClusterParams"]


@dataclass(frozen=True)
class ClusterParams:
    """Sizes of a cluster of equal cores.

    Attributes
    ----------
    cores : int
        1 to 16.
    core : CoreParams or TmauParams
        Of each core; with TmauParams a core is a ``TmauSubsystem``. What it says of ``cores`` and ``prefetches`` does
        not count.
    l2 : L2Params or None
        The cache in front of global memory; None: there is none.
    """

    cores: int = 4
    core: CoreParams | TmauParams = field(default_factory=CoreParams)
    l2: L2Params | None = None

    def __post_init__(self):
        check_sizes(self, {"cores": (1, MOST_CORES)}, ())
        if not isinstance(self.core, CoreParams | TmauParams):
            raise TypeError(f"core must be CoreParams or TmauParams, not {self.core!r}")
        if not isinstance(self.l2, L2Params | None):
            raise TypeError(f"l2 must be L2Params or None, not {self.l2!r}")
        if (self.tmau.cores, self.tmau.prefetches) != (self.cores, self.l2 is not None):
            object.__setattr__(self, "core", self._within())

    def _within(self):
        """The core, as one of this cluster."""
        tmau = self.tmau.replace(cores=self.cores, prefetches=self.l2 is not None)
        return self.core.replace(tmau=tmau) if isinstance(self.core, CoreParams) else tmau

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)

    @property
    def tmau(self):
        """The TmauParams of each core."""
        return self.core.tmau if isinstance(self.core, CoreParams) else self.core

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
