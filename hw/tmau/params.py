"""Parameters of the tensor memory access unit, and the named presets."""

from dataclasses import dataclass, field, replace

from tilewright.spec.cluster import MOST_CORES
from tilewright.spec.tmau_registers import FEATURES, MOST_PROCESSORS, features

from ..lib.parameters import check_sizes
from ..smem.params import SmemParams

__all__ = ["MAX_GROUPS", "TMAU_PRESETS", "TmauParams"]

_RANGES = {
    "addr_width": (16, 64),
    "bus_bytes": (16, 64),
    "max_outstanding": (4, 1024),
    "max_burst": (1, 256),
    "queue_depth": (2, 64),
    "cache_entries": (1, 64),
    "commands_in_flight": (2, 1024),
    "exchange_bytes": (128, 4096),
    "cores": (1, MOST_CORES),
    "processors": (1, MOST_PROCESSORS),
}
_POWERS = {"bus_bytes", "max_outstanding", "max_burst", "queue_depth", "cache_entries", "commands_in_flight",
           "exchange_bytes"}  # fmt: skip

#: Committed groups that may be unfinished.
MAX_GROUPS = 16


@dataclass(frozen=True)
class TmauParams:
    """Sizes and features of one TMAU.

    Attributes
    ----------
    addr_width : int
        Bits of a global byte address, 16 to 64. Descriptors hold 64; addresses wrap modulo 2^addr_width.
    bus_bytes : int
        Bytes of a bus word (AXI data width / 8): 16, 32 or 64.
    max_outstanding : int
        Read bursts in flight, 4 to 1024, a power of two. One memory of this depth tracks them. The latency of the
        memory is hidden as long as ``max_outstanding`` exceeds it, in cycles, by about ten.
    max_burst : int
        Bus words of the longest burst, 1 to 256, a power of two. No burst crosses a 4 KiB boundary.
    queue_depth : int
        Commands that wait, 2 to 64, a power of two.
    cache_entries : int
        Descriptors in the cache, 1 to 64, a power of two. With one, the next descriptor is not fetched while the
        current command is being set up.
    commands_in_flight : int
        Commands whose data are in transfer, 2 to 1024, a power of two; one memory of this depth. A quarter of
        ``max_outstanding`` keeps the bus busy with boxes of four words.
    exchange_bytes : int
        Bytes of a piece of a copy within one memory, 128 to 4096, a power of two. The queues between the load path and
        the store path hold four pieces each: one for copies within shared memory, one for copies within global memory.
    cores : int
        Cores of the cluster that the unit is part of, 1 to 16 (docs/cluster.md); 1 without a cluster.
    processors : int
        Processors that share the unit, 1 to 16, each with a command port and windows of its own (docs/cluster.md,
        "Several processors").
    prefetches : bool
        The unit reports the lines of a PREFETCH to an external cache (docs/cluster.md, "L2").
    prefer_bram : bool
        Queues and descriptors lie in block RAM instead of LUTs: bus words, runs, steps, bursts in flight, commands and
        all fields of descriptors. Some stages have a latency of one cycle more; the throughput is the same.
    command_window : bool
        A processor can also write commands word by word over AXI4-Lite (docs/from_a_processor.md). Needs
        ``processors=1``.
    barrier_window : bool
        A processor can also operate on barriers over AXI4-Lite, in designs that contain the shared memory.
    features : tuple of str
        What is built, of ``spec.tmau_features.FEATURES``: ``im2col``, ``interleave``, ``unaligned``, ``gather``,
        ``swizzle``, ``stores``, ``reductions_global``, ``reductions_shared``, ``reductions_float``, ``lanes``,
        ``local_copies``, ``windows`` and ``tf32``. Commands that need another feature are refused (docs/tmau.md,
        "Features").
    smem : SmemParams
        The shared memory.
    """

    addr_width: int = 48
    bus_bytes: int = 64
    max_outstanding: int = 128
    max_burst: int = 16
    queue_depth: int = 8
    cache_entries: int = 8
    commands_in_flight: int = 32
    exchange_bytes: int = 4096
    cores: int = 1
    processors: int = 1
    prefetches: bool = False
    prefer_bram: bool = False
    command_window: bool = False
    barrier_window: bool = False
    features: tuple[str, ...] = tuple(FEATURES)
    smem: SmemParams = field(default_factory=SmemParams)

    def __post_init__(self):
        check_sizes(self, _RANGES, _POWERS)
        object.__setattr__(self, "features", features(self.features))
        for name in ("prefetches", "prefer_bram", "command_window", "barrier_window"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if self.command_window and self.processors > 1:
            raise ValueError(f"command_window needs one processor, not {self.processors}")
        if not isinstance(self.smem, SmemParams):
            raise TypeError(f"smem must be SmemParams, not {self.smem!r}")
        if self.max_burst * self.bus_bytes > 4096:
            raise ValueError(f"max_burst of {self.max_burst} words of {self.bus_bytes} bytes is longer than 4096 bytes")

    @property
    def line_words(self):
        """Bytes of a word on the write port of the shared memory; None for whole lines, as in a cluster."""
        return self.bus_bytes if self.cores == 1 else None

    def replace(self, **changes):
        """A copy with some parameters changed."""
        return replace(self, **changes)

    def has(self, feature):
        """Whether a feature is built."""
        return feature in self.features

    @property
    def window_owners(self):
        """Processors with their own windows; 1 if one pair of windows confines all commands."""
        return self.processors if self.has("windows") else 1

    @property
    def confines_apart(self):
        """Whether each processor has its own windows."""
        return self.window_owners > 1

    @property
    def bus_width(self):
        """Bits of a bus word."""
        return 8 * self.bus_bytes

    @property
    def bus_log2(self):
        """Bits of a byte offset in a bus word."""
        return self.bus_bytes.bit_length() - 1

    @property
    def folds_pixels(self):
        """Whether contiguous pixels form one run. A bus of 16 bytes gains nothing: each pixel is at least one word."""
        return self.has("im2col") and self.bus_bytes > 16

    @property
    def strides_over(self):
        """Whether a walk can skip indices: traversals other than 1."""
        return self.has("gather") or self.has("im2col")

    @property
    def exchange_words(self):
        """Depth in bus words of each queue between the paths.

        Four pieces: one that is being read, one that is ready, and two that cover the latency of the store path or of
        the memory.
        """
        return 4 * self.exchange_bytes // self.bus_bytes

    @property
    def old_words(self):
        """Most words that reductions into global memory may have requested and not yet used."""
        return min(max(2 * self.max_outstanding, self.max_burst), 1024)

    @property
    def word_width(self):
        """Bits of a bus-word address."""
        return self.addr_width - self.bus_log2


def _without(*missing):
    return tuple(name for name in FEATURES if name not in missing)


TMAU_PRESETS = {
    #: The smallest legal sizes: quick to simulate, and every queue fills.
    "unit": TmauParams(addr_width=32, bus_bytes=16, max_outstanding=4, max_burst=4, queue_depth=2, cache_entries=2,
                       commands_in_flight=2, exchange_bytes=256, smem=SmemParams(4096)),
    #: A Lattice ECP5-85 beside other logic: one 16-byte DRAM word a cycle.
    "ecp5": TmauParams(addr_width=32, bus_bytes=16, max_outstanding=128, max_burst=16, queue_depth=4, cache_entries=4,
                       commands_in_flight=32, exchange_bytes=1024, features=_without("reductions_float"),
                       smem=SmemParams(32 * 1024, chunks_a_cycle=4, writes_a_cycle=2)),
    "default": TmauParams(),
    #: A mover of tiles and little else: what compares with an N-D DMA engine.
    "lean": TmauParams(prefer_bram=True, features=("swizzle", "stores")),
    #: For memories 400 cycles away.
    "full": TmauParams(addr_width=64, max_outstanding=512, queue_depth=16, cache_entries=16, commands_in_flight=128,
                       smem=SmemParams(256 * 1024)),
}  # fmt: skip
