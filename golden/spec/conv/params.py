"""Parameters of the convolution engine, and the named presets (docs/conv.md, "Parameters")."""

from dataclasses import dataclass, replace

from ..fields import one_line
from ..pe.instruction import MM_FAMILIES, families

__all__ = ["CHANNELS_AT_ONCE", "CONV_PRESETS", "FOLDS", "KERNEL_ROWS", "ConvParams"]

#: T: channels that a slave computes at once, for which it has result buffers.
CHANNELS_AT_ONCE = 4
#: Rows of the kernel that stay in lane-private mode: two kernels of 5 × 5, or one of 8 × 8.
KERNEL_ROWS = 64

#: Chunks of shared memory that are read in a cycle.
_CHUNKS = 8
#: Parts of a row at most, and accumulators of a unit for each channel: rows are folded up to so many times.
FOLDS = 16

_RANGES = {
    "row_bytes": (16, 64),
    "slaves": (1, 64),
    "units": (1, 8),
    "feature_rows": (2, 128),
    "weight_rows": (2, 64),
    "weight_bytes": (256, 1 << 20),
    "results": (1, 128),
    "queue_depth": (2, 64),
}
_POWERS = {"row_bytes", "slaves", "units", "weight_bytes", "results", "queue_depth"}


@dataclass(frozen=True)
class ConvParams:
    """Sizes of one convolution engine.

    Attributes
    ----------
    row_bytes : int
        M: bytes that a compute unit multiplies in a cycle, 16 to 64, a power of two.
    slaves : int
        NS: circuits with different output channels, 1 to 64, a power of two.
    units : int
        NCU: compute units of a slave, with neighbouring output points, 1 to 8, a power of two.
    feature_rows : int
        L1: rows of the first buffer, which holds what is broadcast, ``units`` to 128.
    weight_rows : int
        L2: rows of the second buffer, which holds what a slave has alone, 2 to 64.
    weight_bytes : int
        Bytes of a slave's weight memory, 256 to 1 MiB, a power of two.
    results : int
        R: results that post-processing finishes in a cycle, 1 to 128, a power of two.
    queue_depth : int
        Jobs that wait, 2 to 64, a power of two.
    rotation : bool
        Whether slaves can have rows that lie in each other's memories, in lane-private mode: what is fetched serves
        several columns of the kernel then, and groups go on across the ends of lines.
    types : tuple of str
        What is multiplied, one or more of ``i8``, ``i16`` (integers of 8 and of 16 bits), ``f16`` and ``bf16``.
    """

    row_bytes: int = 32
    slaves: int = 8
    units: int = 4
    feature_rows: int = 128
    weight_rows: int = 9
    weight_bytes: int = 32 * 1024
    results: int = 32
    queue_depth: int = 4
    rotation: bool = True
    types: tuple[str, ...] = ("i8", "i16")

    def __post_init__(self):
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be an int, not {one_line(value)}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be {low} to {high}, not {value!r}")
            if name in _POWERS and value & value - 1:
                raise ValueError(f"{name} must be a power of two, not {value!r}")
        if not isinstance(self.rotation, bool):
            raise TypeError(f"rotation must be a bool, not {one_line(self.rotation)}")
        if self.feature_rows < self.units:
            raise ValueError(f"feature_rows must be units ({self.units}) or more, not {self.feature_rows!r}")
        object.__setattr__(self, "types", families(self.types))

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)

    @property
    def lanes(self):
        """Pieces of up to 16 bytes that are fetched in a cycle: 8, or as many as all units take in a cycle."""
        return min(_CHUNKS, self.units * self.row_bytes // 16)

    @property
    def write_bytes(self):
        """W: bytes of results that are written in a cycle."""
        return max(16, CHANNELS_AT_ONCE * self.slaves)

    @property
    def writes_pairs(self):
        """Whether half as many bytes of two points are written in a cycle: as results come faster than one point's."""
        return self.units > 1 and self.results > self.write_bytes // 2 >= 16

    @property
    def line_pairs(self):
        """Whether two output lines are computed at once in lane-private mode: units have room for two rows."""
        return self.rotation and FOLDS * self.units >= 2 * self.row_bytes

    @property
    def peak(self):
        """MACs of 8 bits in a cycle."""
        return self.row_bytes * self.slaves * self.units


CONV_PRESETS = {
    "unit": ConvParams(16, 2, 2, feature_rows=8, weight_bytes=1024, results=1, queue_depth=2, types=("i8",)),
    "ecp5": ConvParams(16, 4, 2, feature_rows=32, weight_bytes=8 * 1024, results=2, rotation=False, types=("i8",)),
    "default": ConvParams(),
    "full": ConvParams(64, 16, 4, feature_rows=64, weight_bytes=64 * 1024, results=64, types=MM_FAMILIES),
}
